// Accumulated attention inside chunks, without a causal mask (Compactor 3.3). A chunk of a KV head is one piece of work
// for its whole GQA group.
#include "core/base/portable_math.h"
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/fast_logit_block.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

/// Keys of longer chunks would leave the L2 cache: each block of queries widens them by the panel instead.
constexpr std::int64_t kWidenedOnce = 1024;

/// Logits, widened keys and column sums of one thread.
struct ChunkScratch {
    LogitScratch logits;
    AlignedMemory<double> keys;
    std::vector<double> sums;
};

/// One chunk of one KV head: its keys, including zero keys of a padded last chunk.
struct ChunkKeys {
    std::int64_t begin, count, terms;
    const float* rows;
    const double* wideRows;   ///< shared by all blocks of queries; null: each block widens the keys
    std::int64_t uniformRows; ///< padding rows of logits 0, which reach the keys of a short chunk only
    const TokenIndex* tokens; ///< of its keys, [terms]; null: key r is token r
    std::int64_t padding;     ///< zero keys have this token or later ones
};

class ChunkSums {
public:
    ChunkSums(const Kernels& kernels, const AttentionChunksInput& input, bool fast, Progress& progress)
        : m_kernels(kernels), m_input(input), m_rule(input.rule), m_fast(fast), m_progress(progress) {
        // Rows of a cache with gaps may lie further apart in time than the chunk is long.
        m_reach = m_rule.slidingWindow < input.chunk || !input.positions.empty() ? m_rule.slidingWindow : 0;
        m_rule.slidingWindow = 0;
    }

    std::int64_t chunks() const { return (m_input.keys.size(1) + m_input.chunk - 1) / m_input.chunk; }

    void compute(std::int64_t kvHead, std::int64_t chunk, ChunkScratch& scratch, std::vector<float>& out) const {
        const std::int64_t n = m_input.keys.size(1), d = m_input.keys.size(2), begin = chunk * m_input.chunk;
        const HeadRows rows(m_input.keys, kvHead, begin, std::min(begin + m_input.chunk, n));
        ChunkKeys keys{begin, std::min(m_input.chunk, n - begin), 0, rows.data(), nullptr, 0, nullptr, 0};
        keys.terms = keys.count;
        std::vector<float> padded;
        if (keys.count < m_input.chunk) {
            keys.uniformRows = m_input.uniformRows;
            keys.terms += m_input.zeroKeys;
            padded.assign(keys.rows, keys.rows + keys.count * d);
            padded.resize(static_cast<std::size_t>(keys.terms * d), 0.0F);
            keys.rows = padded.data();
        }
        keys.padding = keys.count;
        std::vector<TokenIndex> tokens;
        if (m_reach > 0 && !m_input.positions.empty()) {
            const auto from = m_input.positions[static_cast<std::size_t>(kvHead)].begin() + begin;
            tokens.assign(from, from + keys.count);
            keys.padding = std::int64_t{tokens.back()} + 1;
            tokens.resize(static_cast<std::size_t>(keys.terms), static_cast<TokenIndex>(keys.padding));
            keys.tokens = tokens.data();
        }
        if (!m_fast && keys.terms <= kWidenedOnce) {
            double* wide = scratch.keys.atLeast(keys.terms * d);
            m_kernels.widen(keys.rows, keys.terms * d, wide);
            keys.wideRows = wide;
        }
        for (std::size_t h = 0; h < m_rule.gqaGroupOf.size(); ++h) {
            if (m_rule.gqaGroupOf[h] != kvHead) continue;
            const auto head = static_cast<std::int64_t>(h);
            scratch.sums.assign(static_cast<std::size_t>(keys.terms), 0.0);
            for (std::int64_t row = 0; row < keys.count; row += kMaxLanes) // in time order, which fixes the rounding
                addQueries(head, keys, begin + row, std::min(kMaxLanes, keys.count - row), scratch);
            const double sink = m_rule.sinkOf(head), weight = std::isfinite(sink) ? portableExp(sink) : 0;
            const double uniform =
                static_cast<double>(keys.uniformRows) / (static_cast<double>(m_input.chunk) + weight);
            std::transform(scratch.sums.begin(), scratch.sums.begin() + keys.count, out.begin() + head * n + begin,
                           [&](double x) { return static_cast<float>(x + uniform); });
        }
    }

private:
    void addQueries(std::int64_t head, const ChunkKeys& keys, std::int64_t first, std::int64_t count,
                    ChunkScratch& scratch) const {
        const std::int64_t d = m_input.keys.size(2);
        const HeadRows queries(m_input.queries, head, first, first + count);
        std::vector<QueryLane> lanes;
        for (std::int64_t j = first; j < first + count; ++j) {
            const std::int64_t row = j - keys.begin, token = keys.tokens ? std::int64_t{keys.tokens[row]} : row;
            // Without a window a query is at the end of time: all keys are visible.
            lanes.push_back({queries.data() + (j - first) * d, m_reach > 0 ? token : keys.terms, m_rule.sinkOf(head)});
        }
        if (FastLogitBlock::pays(m_fast, lanes.size()))
            addSoftmaxColumns(FastLogitBlock(m_kernels, m_rule, lanes, d, scratch.logits, keys.terms), keys, count,
                              scratch.sums);
        else
            addSoftmaxColumns(LogitBlock(m_kernels, m_rule, lanes, d, scratch.logits, keys.terms), keys, count,
                              scratch.sums);
    }

    template <class Block>
    void addSoftmaxColumns(Block&& block, const ChunkKeys& keys, std::int64_t count, std::vector<double>& sums) const {
        block.append({.rows = keys.rows,
                      .first = 0,
                      .count = keys.terms,
                      .positions = keys.tokens,
                      .reach = m_reach,
                      .padding = keys.padding,
                      .wideRows = keys.wideRows},
                     m_progress);
        std::array<double, kMaxLanes> inverseSums{};
        const auto& rowSums = block.exponentiate();
        std::ranges::transform(rowSums, inverseSums.begin(), [](double x) { return 1 / x; });
        block.addAcrossLanes(0, keys.terms, inverseSums.data(), 0, count, sums.data());
    }

    const Kernels& m_kernels;
    const AttentionChunksInput& m_input;
    AttentionRule m_rule;
    std::int64_t m_reach; ///< the sliding window where it can hide keys of a chunk, else 0
    bool m_fast;
    Progress& m_progress;
};

} // namespace

HostTensor CpuEngine::attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const {
    const std::int64_t heads = input.queries.size(0), kvHeads = input.keys.size(0), n = input.keys.size(1);
    assert(input.queries.size(1) == n && static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == heads);
    assert(input.chunk >= 1 && input.zeroKeys >= 0 && input.uniformRows >= 0);
    assert(input.positions.empty() || static_cast<std::int64_t>(input.positions.size()) == kvHeads);
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    // Lanes are computed 8 at a time, so a short chunk costs slightly more than counted.
    Progress progress(checkpoint, static_cast<double>(heads * n) * static_cast<double>(std::min(n, input.chunk)));
    const ChunkSums sums(m_kernels, input, m_arithmetic == Arithmetic::Fast, progress);
    tbb::enumerable_thread_specific<ChunkScratch> scratch;
    m_workers.each(kvHeads * sums.chunks(), [&](std::int64_t piece) {
        sums.compute(piece / sums.chunks(), piece % sums.chunks(), scratch.local(), out);
    });
    return {{heads, n}, std::move(out)};
}

} // namespace kvscope::cpu
