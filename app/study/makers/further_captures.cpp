// Other captures of the same model on which a view repeats its runs.
#include "app/study/makers/further_captures.h"

#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/capture/open_capture.h"
#include "core/run/stage_cache.h"
#include "views/common/view_options.h"

#include <fmt/format.h>

#include <filesystem>

namespace kvscope {

namespace {

using Reader = std::shared_ptr<const CaptureReader>;

Reader kept(const std::string& path, const LayerRunner& runner, const ViewDataRequest& request,
            const Checkpoint& checkpoint) {
    const std::string key = runner.keyOf(request.capture) + "reader|" + path + "@" + pathStamp(path);
    return *runner.cache().get<Reader>(key, checkpoint, [&] {
        return StageCache::Made<Reader>{openCapture(path), 4096};
    });
}

void checkHead(const CaptureReader& capture, const ViewDataRequest& request) {
    const CaptureInfo& info = capture.info();
    info.layerInfo(request.layer); // throws, naming the existing layers
    if (request.kvHead.value >= info.numKvHeads)
        throw Error({fmt::format("{} has {} KV heads, so none with the number {}", info.fileName, info.numKvHeads,
                                 request.kvHead.value),
                     "captures", "Choose captures of the same model", info.path});
}

} // namespace

std::vector<Reader> capturesWith(const std::string& files, const LayerRunner& runner, const ViewDataRequest& request,
                                 const Checkpoint& checkpoint) {
    std::vector<Reader> captures = {request.capture};
    for (const std::string& path : filesOf(files)) {
        const Reader reader = kept(path, runner, request, checkpoint);
        checkHead(*reader, request);
        std::error_code unknown;
        for (const Reader& other : captures)
            if (std::filesystem::equivalent(other->info().path, path, unknown))
                throw Error({fmt::format("{} is named twice, and would count twice", reader->info().fileName),
                             "captures", "Name each capture once; the open one is always there", path});
        captures.push_back(reader);
    }
    return captures;
}

RunRequest onCapture(const PaneRequest& pane, const Reader& capture) {
    if (capture == pane.run.capture) return resolvePane(pane);
    if (pane.run.random)
        throw Error({"replayed random numbers belong to one capture", "captures",
                     "Draw them (without --uniforms and --sketch), or leave the further captures out"});
    PaneRequest there = pane;
    there.isSecond = true;
    there.run.capture = capture;
    there.run.cut = Cut::resolve(pane.run.cut.text, *capture);
    return resolvePane(there);
}

} // namespace kvscope
