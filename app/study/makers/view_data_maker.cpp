// Keys of view data as texts: data are computed again exactly when their key changes.
#include "app/study/makers/view_data_maker.h"

#include "core/base/error.h"
#include "core/engine/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kvscope {

namespace {

std::string scopeKey(DataScope scope, const ViewDataRequest& request) {
    switch (scope) {
    case DataScope::Layer: return std::to_string(request.layer.value);
    case DataScope::KvHead: return std::to_string(request.kvHead.value);
    case DataScope::QueryHead: return std::to_string(request.queryHead.value);
    case DataScope::Cut: return std::to_string(request.cut.token) + (request.cut.evaluatedOnSeen ? "s" : "");
    case DataScope::Panes: return panesKey(request);
    case DataScope::Policies: {
        std::string key;
        for (PaneRequest pane : request.panes) {
            pane.run.budget = {};
            key += resultKey(pane) + ";";
        }
        return key;
    }
    case DataScope::ActivePane:
    case DataScope::ActivePolicy: {
        if (request.panes.empty()) return {};
        PaneRequest pane = request.shownPane();
        if (scope == DataScope::ActivePolicy) pane.run.budget = {};
        return std::to_string(request.activePane) + resultKey(pane);
    }
    case DataScope::Selection: return fmt::format("{}", fmt::join(request.selected, ","));
    case DataScope::Seed: return std::to_string(request.seed);
    case DataScope::Compared:
        return request.compared ? fmt::format("{}{}", static_cast<const void*>(request.compared.get()),
                                              request.compared->info().hash)
                                : std::string();
    case DataScope::Frame: break; // in key(), not in identity()
    }
    return {};
}

} // namespace

RunRequest ViewDataRequest::loggedRun(const PolicySpec& policy) const {
    return {capture, layer, policy, {}, cut, seed, /*measure=*/false, nullptr, nullptr, /*recordSteps=*/true};
}

std::string panesKey(const ViewDataRequest& request) {
    std::string key;
    for (const PaneRequest& pane : request.panes) key += resultKey(pane) + ";";
    return key;
}

const PaneRequest& ViewDataRequest::shownPane() const {
    const auto active = static_cast<std::size_t>(activePane);
    if (active >= panes.size()) throw Error({"no policy is shown", "", "Add a pane"});
    return panes[active];
}

bool ViewDataMaker::dependsOn(DataScope scope) const { return std::ranges::find(scopes, scope) != scopes.end(); }

std::string ViewDataMaker::identity(const ViewDataRequest& request) const {
    std::string key = fmt::format("{}|{}|{}|{}", id, static_cast<const void*>(request.capture.get()),
                                  request.capture->info().hash, request.options.key(Stage::Features));
    for (const DataScope scope : scopes) key += "|" + scopeKey(scope, request);
    return key;
}

std::string ViewDataMaker::key(const ViewDataRequest& request) const {
    std::string key = identity(request) + "|" + request.options.key(Stage::Combine);
    if (detail) key += "|" + detail(request);
    if (!dependsOn(DataScope::Frame)) return key;
    key += fmt::format("|{}x{}", request.width, request.height);
    if (const auto& r = request.range) key += fmt::format("|{},{},{},{}", r->xMin, r->xMax, r->yMin, r->yMax);
    return key;
}

HostTensor downloadHead(const Engine& engine, const Tensor& tensor, std::int64_t head) {
    constexpr std::int64_t kRows = 4096;
    const std::int64_t n = tensor.size(1), d = tensor.size(2);
    HostTensor out{{n, d}, {}};
    out.data.reserve(static_cast<std::size_t>(n * d));
    for (std::int64_t begin = 0; begin < n; begin += kRows) {
        const std::int64_t end = std::min(n, begin + kRows);
        const HostTensor part = engine.download(engine.rows(tensor, begin, end));
        const auto from = part.data.begin() + head * (end - begin) * d;
        out.data.insert(out.data.end(), from, from + (end - begin) * d);
    }
    return out;
}

} // namespace kvscope
