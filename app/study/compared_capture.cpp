// Selection, shown ranges and scroll position belong to the tokens of one capture; everything else is shared.
#include "app/study/compared_capture.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace kvscope {

namespace {

std::vector<std::int32_t> layersOf(const CaptureInfo& info) {
    std::vector<std::int32_t> layers;
    for (const LayerInfo& layer : info.layers) layers.push_back(layer.layer.value);
    return layers;
}

std::string headsOf(const CaptureInfo& info) {
    return fmt::format("{} query heads, {} KV heads of dimension {} (values {})", info.numQueryHeads, info.numKvHeads,
                       info.headDim, info.valueDim);
}

/// The first fact that differs, as each capture states it; empty: nothing differs.
std::pair<std::string, std::string> differenceOf(const CaptureInfo& a, const CaptureInfo& b) {
    if (a.modelId != b.modelId && !a.modelId.empty() && !b.modelId.empty()) return {a.modelId, b.modelId};
    if (headsOf(a) != headsOf(b)) return {headsOf(a), headsOf(b)};
    const auto layersA = layersOf(a), layersB = layersOf(b);
    if (layersA != layersB)
        return {fmt::format("layers {}", fmt::join(layersA, ", ")), fmt::format("layers {}", fmt::join(layersB, ", "))};
    return {};
}

} // namespace

void checkComparable(const CaptureReader& capture, const CaptureReader& other) {
    const CaptureInfo &a = capture.info(), &b = other.info();
    if (isSameFile(a.path, b.path))
        throw Error({"a capture is compared with another one, and this one is open already", "",
                     "Choose another prompt of the same model", b.path});
    const auto [here, there] = differenceOf(a, b);
    if (here != there)
        throw Error({fmt::format("the captures are not of one model: {} has {}, {} has {}", a.fileName, here,
                                 b.fileName, there),
                     "", "Choose another prompt of the same model, captured with the same layers", b.path});
}

std::shared_ptr<const CaptureReader> openCompared(const Session& session, const CaptureReader& capture) {
    if (session.compared.path.empty()) return nullptr;
    auto other = openCapture(session.compared.path);
    checkComparable(capture, *other);
    return other;
}

void compareWith(Session& session, const CaptureReader& other) {
    const Session first = firstSession(other);
    session.compared = {other.info().path, first.selected, first.selectionName};
    session.look.comparedRanges.clear();
    session.look.comparedTop = 0;
}

void stopComparing(Session& session) {
    session.compared = {};
    session.look.comparedRanges.clear();
    session.look.comparedTop = 0;
}

Session comparedSession(const Session& session) {
    Session other = session;
    other.capturePath = session.compared.path;
    other.live = {};
    other.selected = session.compared.selected;
    other.selectionName = session.compared.selectionName;
    other.look.ranges = session.look.comparedRanges;
    other.look.stripTop = session.look.comparedTop;
    other.lesson.clear(); // the lesson is about the session's own capture
    stopComparing(other);
    other.isSecond = true;
    return other;
}

void adoptCompared(Session& session, const Session& edited) {
    Session next = edited;
    next.capturePath = session.capturePath;
    next.live = session.live;
    next.selected = session.selected;
    next.selectionName = session.selectionName;
    next.lesson = session.lesson;
    next.look.ranges = session.look.ranges;
    next.look.stripTop = session.look.stripTop;
    next.look.cursor = session.look.cursor; // `edited` may have clamped it to a shorter prompt
    next.isSecond = session.isSecond;
    next.compared = {session.compared.path, edited.selected, edited.selectionName, session.compared.unknownKeys};
    next.look.comparedRanges = edited.look.ranges;
    next.look.comparedTop = edited.look.stripTop;
    session = std::move(next);
}

} // namespace kvscope
