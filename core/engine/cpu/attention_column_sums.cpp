// Accumulated attention from a window of queries: column sums of the softmax matrix per query head (SnapKV's
// observation window, TOVA's last query, H2O's accumulated scores).
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/fast_logit_block.h"
#include "core/engine/cpu/turns.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cassert>
#include <span>

namespace kvscope::cpu {

namespace {

/// Query heads of a GQA group that are computed together: as many as fill the lanes, at least one.
struct HeadGroup {
    std::int64_t kvHead;
    std::vector<std::int64_t> queryHeads;
};

std::vector<HeadGroup> groupsOf(const AttentionInput& input) {
    const std::int64_t heads = input.queries.size(0), w = input.queries.size(1);
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, kMaxLanes / std::max<std::int64_t>(1, w)));
    std::vector<HeadGroup> groups;
    for (std::int64_t kv = 0; kv < input.keys.size(0); ++kv) {
        bool open = false;
        for (std::int64_t h = 0; h < heads; ++h) { // the heads of a GQA group need not be neighbours
            if (input.rule.gqaGroupOf[h] != kv) continue;
            if (!open || groups.back().queryHeads.size() == most) groups.push_back({kv, {}});
            groups.back().queryHeads.push_back(h);
            open = true;
        }
    }
    return groups;
}

/// Key rows that some query in [earliest, latest] may see; positions ascend with the rows.
KeyTerms visibleKeys(const AttentionInput& input, const HeadRows& rows, std::int64_t kvHead, std::int64_t earliest,
                     std::int64_t latest) {
    const std::int64_t m = input.keys.size(1), window = input.rule.slidingWindow;
    const std::int64_t oldest = window > 0 ? std::max<std::int64_t>(0, earliest - window + 1) : 0;
    KeyTerms keys{rows.data(), std::min(oldest, m), 0};
    std::int64_t end = std::min(m, latest + 1);
    if (!input.keyPositions.empty()) {
        const auto& list = input.keyPositions[kvHead];
        assert(static_cast<std::int64_t>(list.size()) == m);
        keys.positions = list.data();
        keys.first = std::ranges::lower_bound(list, oldest) - list.begin();
        end = std::ranges::upper_bound(list, latest) - list.begin();
    }
    keys.count = std::max<std::int64_t>(0, end - keys.first);
    return keys;
}

class ColumnSums {
public:
    ColumnSums(const Kernels& kernels, const AttentionInput& input, bool fast, Progress& progress)
        : m_kernels(kernels), m_input(input), m_fast(fast), m_progress(progress) {}

    /// Writes the sums of some groups of one KV head (in fast arithmetic: of one group) into rows of out [Hq, m].
    void addGroups(std::span<const HeadGroup> groups, BlockScratch& scratch, std::vector<float>& out) const {
        const std::int64_t w = m_input.queries.size(1), m = m_input.keys.size(1);
        const HeadRows keys(m_input.keys, groups.front().kvHead, m_progress.checkpoint());
        std::vector<std::vector<double>> sums;
        for (const HeadGroup& group : groups) sums.emplace_back(group.queryHeads.size() * static_cast<std::size_t>(m));
        for (std::int64_t begin = 0; begin < w; begin += kMaxLanes) // in time order, which fixes the rounding
            addBlocks(groups, keys, begin, std::min(w, begin + kMaxLanes), scratch, sums);
        for (std::size_t i = 0; i < groups.size(); ++i)
            for (std::size_t g = 0; g < groups[i].queryHeads.size(); ++g) {
                const double* from = sums[i].data() + g * static_cast<std::size_t>(m);
                float* to = out.data() + groups[i].queryHeads[g] * m;
                std::transform(from, from + m, to, [](double x) { return static_cast<float>(x); });
            }
    }

private:
    void addBlocks(std::span<const HeadGroup> groups, const HeadRows& rows, std::int64_t begin, std::int64_t end,
                   BlockScratch& scratch, std::vector<std::vector<double>>& sums) const {
        const std::int64_t d = m_input.queries.size(2);
        const KeyTerms keys =
            visibleKeys(m_input, rows, groups.front().kvHead, m_input.firstQuery + begin, m_input.firstQuery + end - 1);
        std::vector<LogitBlock> blocks;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            std::vector<HeadRows> queries;
            std::vector<QueryLane> lanes; // head by head, so that each head is a run of lanes
            for (const std::int64_t h : groups[i].queryHeads) {
                queries.emplace_back(m_input.queries, h, begin, end);
                for (std::int64_t j = begin; j < end; ++j)
                    lanes.push_back(
                        {queries.back().data() + (j - begin) * d, m_input.firstQuery + j, m_input.rule.sinkOf(h)});
            }
            if (FastLogitBlock::pays(m_fast, lanes.size())) {
                assert(groups.size() == 1);
                FastLogitBlock block(m_kernels, m_input.rule, lanes, d, scratch[i], keys.count);
                block.append(keys, m_progress);
                return addSoftmaxColumns(block, groups[i], end - begin, sums[i].data() + keys.first);
            }
            blocks.emplace_back(m_kernels, m_input.rule, lanes, d, scratch[i], keys.count);
        }
        LogitBlock::append(blocks, keys, m_progress);
        for (std::size_t i = 0; i < groups.size(); ++i)
            addSoftmaxColumns(blocks[i], groups[i], end - begin, sums[i].data() + keys.first);
    }

    /// The lanes of each head are a run of `queries`; its sums are a row of [heads, m].
    template <class Block>
    void addSoftmaxColumns(Block& block, const HeadGroup& group, std::int64_t queries, double* sums) const {
        std::array<double, kMaxLanes> inverseSums{}; // 1 / softmax denominator; 0 for a query that sees no key
        const auto& rowSums = block.exponentiate();
        std::ranges::transform(rowSums, inverseSums.begin(), [](double x) { return x > 0 ? 1 / x : x; });
        for (std::int64_t h = 0; h < std::ssize(group.queryHeads); ++h, sums += m_input.keys.size(1))
            block.addAcrossLanes(0, block.terms(), inverseSums.data(), h * queries, (h + 1) * queries, sums);
    }

    const Kernels& m_kernels;
    const AttentionInput& m_input;
    bool m_fast;
    Progress& m_progress;
};

} // namespace

HostTensor CpuEngine::attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const {
    const std::int64_t heads = input.queries.size(0), w = input.queries.size(1), m = input.keys.size(1);
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == heads);
    std::vector<float> out(static_cast<std::size_t>(heads * m));
    Progress progress(checkpoint, static_cast<double>(heads * w) * static_cast<double>(m));
    const bool fast = m_arithmetic == Arithmetic::Fast;
    const ColumnSums columnSums(m_kernels, input, fast, progress);
    const std::vector<HeadGroup> groups = groupsOf(input);
    const std::size_t most = fast ? 1 : blocksAtOnce(std::ssize(groups), m, m_workers.threads());
    std::vector<std::span<const HeadGroup>> pieces; // the blocks of a piece share keys that are widened once
    for (const HeadGroup& group : groups)
        if (pieces.empty() || pieces.back().size() == most || pieces.back().front().kvHead != group.kvHead)
            pieces.emplace_back(&group, 1);
        else
            pieces.back() = {pieces.back().data(), pieces.back().size() + 1};
    tbb::enumerable_thread_specific<BlockScratch> scratch;
    // For keys that stay in their file, about half a gibibyte of keys and logits is in memory, on any number of cores.
    const auto turn = turnFor(input.keys, checkpoint);
    const std::int64_t all = std::ssize(pieces);
    const double bytes = static_cast<double>(m * (input.keys.size(2) + 2 * kMaxLanes) * 4) * static_cast<double>(most);
    const auto some = static_cast<std::int64_t>(std::max(1.0, (1 << 29) / bytes));
    const std::int64_t step = input.keys.storage()->isOnDemand() ? some : all;
    for (std::int64_t first = 0; first < all; first += step)
        m_workers.each(std::min(step, all - first),
                       [&](std::int64_t piece) { columnSums.addGroups(pieces[first + piece], scratch.local(), out); });
    return {{heads, m}, std::move(out)};
}

} // namespace kvscope::cpu
