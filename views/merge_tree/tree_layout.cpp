// Geometry of the merge-and-reduce tree. Batches stand where their tokens stand in the stream, nodes above the middle of
// what they hold.
#include "views/merge_tree/tree_layout.h"

#include <algorithm>

namespace kvscope {

namespace {

constexpr double kWideNode = 46, kNarrowNode = 2;
constexpr double kLeastShare = 0.45; // of the full width, so that the number of a small set can be read

} // namespace

TreeLayout::TreeLayout(const TreeState& state, const Viewport& viewport, double top, bool withHistogram) {
    const bool wide = viewport.width >= 480;
    axisTitle = viewport.height >= 170;
    const double left = wide ? 112 : 34, right = 22, bottom = (axisTitle ? 42 : 24) + (viewport.forExport ? 16 : 0);
    plot = {left, top, viewport.width - left - right, std::max(24.0, viewport.height - top - bottom)};
    if (withHistogram && axisTitle && viewport.width >= 640) {
        histogram = {viewport.width - 196, top + 18, 176, plot.height - 18};
        plot.width -= 210;
    }
    xHigh = state.tree().rows.empty() ? 1 : static_cast<double>(state.tree().rows.back()) + 1;
    if (viewport.range) {
        xLow = viewport.range->xMin;
        xHigh = viewport.range->xMax;
    }
    placeRows(state.tree().nodes.size());
    twoLineLabels = wide && pitch >= 30;
}

void TreeLayout::placeRows(std::size_t levels) {
    const double below = 20; // the batches' own height
    const auto pitchUnder = [&](double above) {
        return std::max(10.0, plot.height - above - below) / static_cast<double>(std::max<std::size_t>(1, levels));
    };
    pitch = pitchUnder(34); // room of the percentages
    if (pitch < kPercentPitch)
        pitch = std::min(kPercentPitch - 1, pitchUnder(12)); // none are written
    const double least = std::min(8.0, 0.7 * pitch); // rows that are low keep a gap
    nodeHeight = std::clamp(pitch - 24, least, 24.0);
    leafHeight = std::clamp(pitch - 20, least, 16.0);
    for (std::size_t level = 0; level <= levels; ++level)
        rows.push_back(plot.bottom() - below - pitch * static_cast<double>(level));
}

double TreeLayout::beginOf(const TreeState& state, std::int64_t batch) const {
    const auto& all = state.tree().rows;
    const auto row = static_cast<std::size_t>(state.beginOf(batch));
    return row < all.size() ? all[row] : all.empty() ? 0 : static_cast<double>(all.back()) + 1;
}

Point TreeLayout::centreOf(const TreeState& state, std::int64_t level, std::int64_t place) const {
    const double begin = beginOf(state, state.firstBatch(level, place));
    const double end = beginOf(state, level == 0 ? place + 1 : state.lastBatch(level, place));
    return {xOf((begin + end) / 2), rows[static_cast<std::size_t>(level)]};
}

double TreeLayout::pitchOf(const TreeState& state, std::int64_t level) const {
    const std::int64_t batches = std::max<std::int64_t>(1, state.nodeCount(0));
    const double all = xOf(beginOf(state, batches)) - xOf(beginOf(state, 0));
    return all / static_cast<double>(batches) * static_cast<double>(level == 0 ? 1 : std::int64_t{1} << (level - 1));
}

Box TreeLayout::boxOf(const TreeState& state, std::int64_t level, std::int64_t place) const {
    const Point centre = centreOf(state, level, place);
    if (level == 0) {
        const double begin = xOf(beginOf(state, place)), end = xOf(beginOf(state, place + 1));
        const double gap = std::min(3.0, (end - begin) * 0.1);
        return {begin + gap, centre.y - leafHeight / 2, std::max(1.0, end - begin - 2 * gap), leafHeight};
    }
    const auto size = state.tree().nodes[static_cast<std::size_t>(level - 1)][static_cast<std::size_t>(place)].output.size();
    const double full = std::min(kWideNode, pitchOf(state, level) * 0.96);
    const double share = std::min(1.0, 2 * static_cast<double>(size) / static_cast<double>(state.tree().batch));
    const double width = std::max(kNarrowNode, full * (kLeastShare + (1 - kLeastShare) * share));
    return {centre.x - width / 2, centre.y - nodeHeight / 2, width, nodeHeight};
}

} // namespace kvscope
