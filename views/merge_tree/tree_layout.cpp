// Geometry of the merge-and-reduce tree: batches at their tokens' places in the stream, nodes above the middle of their
// input.
#include "views/merge_tree/tree_layout.h"

#include "views/common/chart.h"

#include <algorithm>
#include <string>

namespace kvscope {

constexpr double kWideNode = 46, kNarrowNode = 2;
constexpr double kLeastShare = 0.45;  // of the full width, so that a small set stays visible
constexpr double kLeastNumbered = 10; // height of a node that holds a number
constexpr double kLabelPitch = 13;

TreeLayout::TreeLayout(const TreeState& state, const Viewport& viewport, double top, bool withHistogram, bool withParts)
    : m_withParts(withParts) {
    const bool wide = viewport.width >= 480;
    axisTitle = !isLowDock(viewport);
    const double right = 22, bottom = (axisTitle ? 42 : 24) + (viewport.forExport ? 16 : 0);
    plot = {34, top, 0, std::max(24.0, viewport.height - top - bottom)};
    placeRows(state.tree().nodes.size());
    twoLineLabels = wide && pitch >= 34;
    oneLineLabels = wide && !twoLineLabels && pitch >= kLabelPitch;
    plot.x = twoLineLabels || oneLineLabels ? 112 : 34;
    plot.width = viewport.width - plot.x - right;
    if (withHistogram && axisTitle && viewport.width >= 640) {
        histogram = {viewport.width - 196, top + 18, 176, plot.height - 18};
        plot.width -= 210;
    }
    xHigh = state.tree().rows.empty() ? 1 : static_cast<double>(state.tree().rows.back()) + 1;
    if (viewport.range) {
        xLow = viewport.range->xMin;
        xHigh = viewport.range->xMax;
    }
    m_numbered.push_back(false); // batches have ticks
    for (std::int64_t level = 1; level <= state.levels(); ++level)
        m_numbered.push_back(std::ranges::all_of(state.tree().nodes[level - 1], [&](const BalanceNode& node) {
            return nodeHeight >= kLeastNumbered && numberWidth(node.output.size()) <= fullWidth(state, level);
        }));
}

bool TreeLayout::hasNumbers() const { return std::ranges::find(m_numbered, true) != m_numbered.end(); }

void TreeLayout::placeRows(std::size_t levels) {
    const double below = 20; // the batches' own height
    // From the top to the middle of the first row: the number of the cursor stands between.
    constexpr double kBelowChip = 22;
    const auto pitchUnder = [&](double above) {
        return std::max(10.0, plot.height - above - below) / static_cast<double>(std::max<std::size_t>(1, levels));
    };
    pitch = pitchUnder(40); // for the percentages, below the cursor's number
    if (!showsParts())
        pitch = m_withParts ? std::min(kPartsPitch - 1, pitchUnder(kBelowChip))
                            : pitchUnder(kBelowChip); // no percentages are written
    const double gap = showsParts() ? 28 : std::clamp(0.3 * pitch, 4.0, 12.0);
    const double least = std::min(8.0, 0.7 * pitch); // rows that are low keep a gap
    nodeHeight = std::clamp(pitch - gap, least, showsParts() ? 24.0 : 18.0);
    leafHeight = std::clamp(pitch - gap, least, 16.0);
    numberSize = nodeHeight >= 18 ? 12 : 10;
    for (std::size_t level = 0; level <= levels; ++level)
        rows.push_back(plot.bottom() - below - pitch * static_cast<double>(level));
}

double TreeLayout::fullWidth(const TreeState& state, std::int64_t level) const {
    return std::min(kWideNode, pitchOf(state, level) * 0.96);
}

double TreeLayout::numberWidth(std::size_t number) const {
    constexpr double kDigit = 0.6, kMargins = 4; // a digit of the monospaced face, in ems
    return kDigit * numberSize * static_cast<double>(std::to_string(number).size()) + kMargins;
}

double TreeLayout::beginOf(const TreeState& state, std::int64_t batch) const {
    const auto& all = state.tree().rows;
    const auto row = static_cast<std::size_t>(state.beginOf(batch));
    return row < all.size() ? all[row] : all.empty() ? 0 : static_cast<double>(all.back()) + 1;
}

Point TreeLayout::centreOf(const TreeState& state, std::int64_t level, std::int64_t place) const {
    const double begin = beginOf(state, state.firstBatch(level, place));
    const double end = beginOf(state, level == 0 ? place + 1 : state.lastBatch(level, place));
    return {xOf((begin + end) / 2), rows[level]};
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
        return {begin, centre.y - leafHeight / 2, std::max(1.0, end - begin),
                leafHeight}; // a gap would put ticks outside of their batch
    }
    const auto size = state.node(level, place).output.size();
    const double full = fullWidth(state, level);
    const double share = std::min(1.0, 2 * static_cast<double>(size) / static_cast<double>(state.tree().batch));
    const double least = isNumbered(level) ? numberWidth(size) : kNarrowNode;
    const double width = std::max(least, full * (kLeastShare + (1 - kLeastShare) * share));
    return {centre.x - width / 2, centre.y - nodeHeight / 2, width, nodeHeight};
}

TreeState::TreeState(const BalanceTree& tree, TokenIndex cursor, bool erased)
    : m_tree(tree), m_cursor(cursor), m_erased(erased),
      m_seen(std::ranges::lower_bound(tree.rows, cursor) - tree.rows.begin()), m_sets(tree.setsAt(cursor)) {
    if (erased)
        for (auto& set : m_sets) set.clear();
    m_inMemory.assign(tree.rows.empty() ? 0 : static_cast<std::size_t>(tree.rows.back()) + 1, 0);
    for (const auto& set : m_sets)
        for (const TokenIndex row : set) m_inMemory[row] = 1;
}

std::int64_t TreeState::nodeCount(std::int64_t level) const {
    if (level > 0) return std::ssize(m_tree.nodes[level - 1]);
    return (std::ssize(m_tree.rows) + m_tree.batch - 1) / m_tree.batch;
}

std::int64_t TreeState::firstBatch(std::int64_t level, std::int64_t place) const {
    return level == 0 ? place : place << (level - 1);
}

std::int64_t TreeState::beginOf(std::int64_t batch) const {
    return std::min(batch * m_tree.batch, std::ssize(m_tree.rows));
}

NodeState TreeState::stateOf(std::int64_t level, std::int64_t place) const {
    if (level == 0) {
        if (beginOf(place) >= m_seen) return NodeState::Future;
        const bool reduced = levels() > 0 && place < batches();
        return reduced || m_erased ? NodeState::Merged : NodeState::Filling;
    }
    const auto made = batches() >> (level - 1);
    if (place >= made) return NodeState::Future;
    const bool isLast = level == levels() || place >= made - made % 2;
    return isLast && !m_erased ? NodeState::Live : NodeState::Merged;
}

std::int64_t TreeState::stored() const {
    std::int64_t sum = 0;
    for (const auto& set : m_sets) sum += std::ssize(set);
    return sum;
}

std::int64_t TreeState::weightedCount() const {
    std::int64_t sum = 0;
    for (std::size_t level = 0; level < m_sets.size(); ++level) sum += std::ssize(m_sets[level]) << level;
    return sum;
}

bool TreeState::inMemory(TokenIndex row) const {
    return 0 <= row && static_cast<std::size_t>(row) < m_inMemory.size() && m_inMemory[row] != 0;
}

TreeState::Path TreeState::pathOf(TokenIndex row) const {
    Path path;
    const auto at = std::ranges::lower_bound(m_tree.rows, row);
    if (at == m_tree.rows.end() || *at != row || row >= m_cursor) return path;
    path.batch = (at - m_tree.rows.begin()) / m_tree.batch;
    for (std::int64_t level = 1; level <= levels(); ++level) {
        const std::int64_t place = path.batch >> (level - 1);
        if (place >= nodeCount(level) || stateOf(level, place) == NodeState::Future) break;
        const auto& output = node(level, place).output;
        if (std::ranges::find(output, row) == output.end()) {
            path.droppedAt = level;
            break;
        }
        path.kept.push_back(place);
    }
    return path;
}

} // namespace kvscope
