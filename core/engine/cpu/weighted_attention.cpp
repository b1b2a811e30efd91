// Attention over a weighted sample of the tokens before the cut: numerator and denominator may be different samples
// with their own weights; from the cut on every token is exact.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/kept_sums.h"
#include "core/engine/cpu/logit_block.h"
#include "core/engine/cpu/turns.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace kvscope::cpu {

namespace {

/// All terms of one kept set in order: numerator, denominator where it differs, then tokens [cut, n).
struct TermList {
    std::vector<TokenIndex> tokens;
    std::vector<double> numerator, denominator; ///< weight of each term in each sum; 0: not in that sum
    std::vector<std::int64_t> ends;             ///< where the terms of each nested family end, then those of all

    void add(TokenIndex token, double numeratorWeight, double denominatorWeight) {
        tokens.push_back(token);
        numerator.push_back(numeratorWeight);
        denominator.push_back(denominatorWeight);
    }
};

/// The terms of the first family, then what each family adds to the one before it, then the rest.
TermList nestedTerms(const WeightedAttentionInput& input, std::size_t set, std::int64_t end) {
    TermList list;
    for (std::int64_t i = input.cut; i < end; ++i) list.add(static_cast<TokenIndex>(i), 1, 1);
    std::vector<std::uint8_t> isIn(static_cast<std::size_t>(input.cut));
    const auto add = [&](TokenIndex token) {
        if (!std::exchange(isIn[token], 1)) list.add(token, 1, 1);
    };
    for (const std::vector<WeightedSet>& family : input.nested) {
        std::ranges::for_each(family[set].numerator, add);
        list.ends.push_back(std::ssize(list.tokens));
    }
    for (TokenIndex i = 0; i < input.cut; ++i) add(i);
    list.ends.push_back(std::ssize(list.tokens));
    return list;
}

TermList termsOf(const WeightedAttentionInput& input, std::size_t set, std::int64_t end) {
    if (!input.nested.empty()) return nestedTerms(input, set, end);
    TermList list;
    if (input.kept.empty())
        for (TokenIndex i = 0; i < input.cut; ++i) list.add(i, 1, 1);
    else
        forEachTerm(input.kept[set], [&](TokenIndex token, float x, float y) { list.add(token, x, y); });
    for (std::int64_t i = input.cut; i < end; ++i) list.add(static_cast<TokenIndex>(i), 1, 1);
    list.ends = {std::ssize(list.tokens)};
    return list;
}

/// ||z - a|| / ||a|| of dv numbers; NaN for a reference a of (nearly) zero.
float relativeError(const float* z, const float* a, std::int64_t dv) {
    constexpr double kSmallestNorm = 1e-12;
    double difference = 0, norm = 0;
    for (std::int64_t c = 0; c < dv; ++c) {
        const double delta = static_cast<double>(z[c]) - a[c];
        difference += delta * delta;
        norm += static_cast<double>(a[c]) * a[c];
    }
    return std::sqrt(norm) < kSmallestNorm ? std::numeric_limits<float>::quiet_NaN()
                                           : static_cast<float>(std::sqrt(difference) / std::sqrt(norm));
}

class WeightedBlocks {
public:
    WeightedBlocks(const Kernels& kernels, const WeightedAttentionInput& input, const Checkpoint& checkpoint)
        : m_kernels(kernels), m_input(input), m_checkpoint(checkpoint) {}

    /// The lists are made on the first call, because an update of kept sums needs none.
    const TermList& termsOfHead(std::int64_t head) const {
        std::call_once(m_once, [this] {
            const std::int64_t end = m_input.firstQuery + m_input.queries.size(1);
            const std::size_t given = m_input.nested.empty() ? m_input.kept.size() : m_input.nested.front().size();
            const std::size_t sets = std::max(given, static_cast<std::size_t>(m_input.keys.size(0)));
            for (std::size_t set = 0; set < sets; ++set) m_terms.push_back(termsOf(m_input, set, end));
        });
        return m_terms[m_input.setOf(head)];
    }

    /// Computes blocks of one KV head and kept set: for each block the sums over each nested family, then over all.
    std::vector<std::vector<LaneSums>> compute(std::span<const QueryBlock> queries, const HeadCache& cache,
                                               BlockScratch& scratch, Progress& progress) const {
        if (queries.empty()) return {};
        const TermList& terms = termsOfHead(queries.front().head);
        const auto count = static_cast<std::int64_t>(terms.tokens.size());
        std::vector<LogitBlock> blocks;
        for (const QueryBlock& some : queries) {
            const HeadRows own(m_input.queries, some.head, some.begin, some.end);
            blocks.emplace_back(m_kernels, m_input.rule, queryLanesOf(m_input, some, own), m_input.queries.size(2),
                                scratch[blocks.size()], count);
        }
        LogitBlock::append(blocks, {cache.keys.data(), 0, count, terms.tokens.data()}, progress);
        std::vector<std::vector<LaneSums>> sums;
        for (LogitBlock& block : blocks) {
            auto& ofBlock = sums.emplace_back();
            for (const std::int64_t end : terms.ends) {
                const auto denominators = block.exponentiate(end, terms.denominator.data());
                const auto squares = block.weigh(end, terms.numerator.data());
                ofBlock.push_back({block.lanes(), {}, denominators, squares, {}});
                for (std::size_t lane = 0; std::cmp_less(lane, block.lanes()); ++lane)
                    ofBlock.back().shifts[lane] = block.rowMax(lane);
            }
        }
        addWeightedValues(blocks, terms, cache.values.data(), sums);
        return sums;
    }

private:
    /// [dv, lanes]: sum over the terms of weight e^(l - rowMax) v, a tile of values at a time.
    void addWeightedValues(std::span<const LogitBlock> blocks, const TermList& terms, const float* values,
                           std::vector<std::vector<LaneSums>>& sums) const {
        const std::int64_t dv = m_input.values.size(2);
        for (std::size_t i = 0; i < blocks.size(); ++i)
            sums[i].front().values.resize(static_cast<std::size_t>(dv * blocks[i].lanes()));
        Panel tile(m_kernels, dv);
        std::int64_t first = 0;
        for (std::size_t part = 0; part < terms.ends.size(); ++part) {
            if (part > 0)
                for (std::vector<LaneSums>& of : sums) of[part].values = of[part - 1].values;
            while (first < terms.ends[part]) first = addTile(blocks, terms, values, first, part, tile, sums);
        }
    }

    std::int64_t addTile(std::span<const LogitBlock> blocks, const TermList& terms, const float* values,
                         std::int64_t first, std::size_t part, Panel& tile,
                         std::vector<std::vector<LaneSums>>& sums) const {
        const std::int64_t dv = m_input.values.size(2);
        m_checkpoint.stopPoint();
        const std::int64_t count = std::min(stepOf(blocks.size()), terms.ends[part] - first);
        const double* rows = tile.fill(values, 0, count, terms.tokens.data() + first);
        for (std::size_t i = 0; i < blocks.size(); ++i)
            m_kernels.product({.lanes = blocks[i].values() + first * blocks[i].lanes(),
                               .laneStride = blocks[i].lanes(),
                               .laneCount = blocks[i].lanes(),
                               .factors = rows,
                               .factorCount = dv,
                               .factorStride = 1,
                               .depthStride = dv,
                               .depth = count,
                               .out = sums[i][part].values.data(),
                               .outStride = blocks[i].lanes(),
                               .accumulate = true});
        return first + count;
    }

    const Kernels& m_kernels;
    const WeightedAttentionInput& m_input;
    const Checkpoint& m_checkpoint;
    mutable std::once_flag m_once;
    mutable std::vector<TermList> m_terms; ///< of each set
};

/// Output or error to `reference` [Hq, w, dv], and logarithms, of the queries of a block.
void write(const WeightedAttentionInput& input, const float* reference, const QueryBlock& queries, const LaneSums& sums,
           WeightedAttention& result) {
    constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
    const std::int64_t dv = input.values.size(2);
    std::vector<float> output(static_cast<std::size_t>(dv));
    for (std::int64_t query = queries.begin; query < queries.end; ++query) {
        const std::int64_t lane = query - queries.begin, pair = queries.head * input.queries.size(1) + query;
        const double denominator = sums.denominators[lane], square = sums.squares[lane], shift = sums.shifts[lane];
        // Written as <= so that NaN passes through; a query that sees no key gives 0 and lse -infinity.
        const bool nothing = denominator <= 0;
        for (std::int64_t c = 0; c < dv; ++c)
            output[c] = nothing ? 0.0F : static_cast<float>(sums.values[c * sums.lanes + lane] / denominator);
        result.logDenominator.data[pair] = nothing ? kMinusInfinity : static_cast<float>(std::log(denominator) + shift);
        result.logNorm.data[pair] = square <= 0 ? kMinusInfinity : static_cast<float>(0.5 * std::log(square) + shift);
        if (!reference)
            std::ranges::copy(output, result.output.data.begin() + pair * dv);
        else
            result.outputError.data[pair] = relativeError(output.data(), reference + pair * dv, dv);
    }
}

/// The same for all nested families and for everything, which is their reference. Sums are in units of the largest term
/// of all: where those of a family are so small that terms may have underflowed, the logarithm becomes NaN.
void writeAll(const WeightedAttentionInput& input, const float* reference, const QueryBlock& queries,
              std::span<const LaneSums> sums, WeightedAttention& result) {
    constexpr double kSmallestSum = 1e-140; // the sum of squares is a number, too
    write(input, reference, queries, sums.back(), result);
    for (std::size_t i = 0; i + 1 < sums.size(); ++i) {
        WeightedAttention& family = result.nested[i];
        write(input, result.output.data.data(), queries, sums[i], family);
        for (std::int64_t query = queries.begin; query < queries.end; ++query)
            if (!(sums[i].denominators[query - queries.begin] >= kSmallestSum))
                family.logDenominator.data[queries.head * input.queries.size(1) + query] =
                    std::numeric_limits<float>::quiet_NaN();
    }
}

/// Blocks of queries that read the same keys and values: those of the query heads of a KV head and kept set, `most` at
/// a time.
using BlockGroup = std::vector<QueryBlock>;

std::vector<BlockGroup> groupsOf(const WeightedAttentionInput& input, std::size_t most) {
    std::map<std::pair<std::int32_t, std::size_t>, std::vector<std::int64_t>> readers;
    for (std::int64_t head = 0; head < input.queries.size(0); ++head)
        readers[{input.rule.gqaGroupOf[head], input.setOf(head)}].push_back(head);
    std::vector<BlockGroup> groups;
    for (const auto& [read, heads] : readers) {
        groups.emplace_back();
        for (std::int64_t begin = 0; begin < input.queries.size(1); begin += kMaxLanes)
            for (const std::int64_t head : heads) {
                if (groups.back().size() == most) groups.emplace_back();
                groups.back().push_back({head, begin, std::min(input.queries.size(1), begin + kMaxLanes)});
            }
    }
    return groups;
}

/// All groups in one round, or one round per KV head.
std::vector<std::span<const BlockGroup>> roundsOf(std::span<const BlockGroup> groups,
                                                  const std::vector<std::int32_t>& gqaGroupOf, bool byKvHead) {
    std::vector<std::span<const BlockGroup>> rounds;
    while (!groups.empty()) {
        const auto kvOf = [&](const BlockGroup& group) { return gqaGroupOf[group.front().head]; };
        const auto end = std::ranges::find_if(
            groups, [&](const BlockGroup& group) { return byKvHead && kvOf(group) != kvOf(groups.front()); });
        rounds.push_back(groups.first(static_cast<std::size_t>(end - groups.begin())));
        groups = groups.subspan(rounds.back().size());
    }
    return rounds;
}

} // namespace

WeightedAttention CpuEngine::weightedAttention(const WeightedAttentionInput& input,
                                               const Checkpoint& checkpoint) const {
    const std::int64_t heads = input.queries.size(0), w = input.queries.size(1), dv = input.values.size(2);
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == heads);
    assert(input.firstQuery + w <= input.keys.size(1));
    assert(input.nested.empty() || (input.kept.empty() && input.reference.empty()));
    const WeightedBlocks blocks(m_kernels, input, checkpoint);
    const std::unique_ptr<KeptSumsPass> pass =
        KeptSumsPass::fits(input) ? std::make_unique<KeptSumsPass>(m_kernels, input, m_workers) : nullptr;
    const KeptSumsPass* kept = pass && pass->runs() ? pass.get() : nullptr;
    double work = kept ? kept->work() : 0;
    for (std::int64_t head = 0; !kept && head < heads; ++head)
        work += static_cast<double>(w) * static_cast<double>(blocks.termsOfHead(head).tokens.size());

    const HostTensor table = HostTensor::filled({heads, w});
    WeightedAttention result{{}, table, table, {}};
    if (input.reference.empty())
        result.output = HostTensor::filled({heads, w, dv});
    else
        result.outputError = table;
    result.nested.assign(input.nested.size(), {{}, table, table, table});
    const float* reference = input.reference.empty() ? nullptr : viewOf(input.reference).head(0);
    Progress progress(checkpoint, work);
    const std::int64_t blockCount = input.queries.size(0) * ((w + kMaxLanes - 1) / kMaxLanes);
    const std::vector<BlockGroup> groups =
        groupsOf(input, blocksAtOnce(blockCount, input.keys.size(1), m_workers.threads()));
    tbb::enumerable_thread_specific<BlockScratch> scratch;
    // If the cache stays in its file, one KV head at a time is in memory.
    const bool onDemand = input.keys.storage()->isOnDemand() || input.values.storage()->isOnDemand();
    const auto turn = turnFor(input.keys, checkpoint);
    for (const std::span<const BlockGroup> round : roundsOf(groups, input.rule.gqaGroupOf, onDemand)) {
        std::map<std::int64_t, HeadCache> caches;
        for (const BlockGroup& group : round) {
            const std::int64_t kv = input.rule.gqaGroupOf[group.front().head];
            if (!caches.contains(kv))
                caches.emplace(kv, HeadCache{{input.keys, kv, checkpoint}, {input.values, kv, checkpoint}});
        }
        m_workers.each(std::ssize(round), [&](std::int64_t piece) {
            const BlockGroup& group = round[piece];
            const HeadCache& cache = caches.at(input.rule.gqaGroupOf[group.front().head]);
            std::vector<std::optional<LaneSums>> updated(group.size());
            if (kept) updated = kept->compute(group, cache, progress);
            BlockGroup rest;
            for (std::size_t i = 0; i < group.size(); ++i)
                if (updated[i])
                    write(input, reference, group[i], *updated[i], result);
                else
                    rest.push_back(group[i]);
            const auto sums = blocks.compute(rest, cache, scratch.local(), progress);
            for (std::size_t i = 0; i < rest.size(); ++i) writeAll(input, reference, rest[i], sums[i], result);
        });
    }
    if (kept) kept->remember();
    for (WeightedAttention& family : result.nested)
        if (std::ranges::any_of(family.logDenominator.data, [](float x) { return std::isnan(x); })) family = {};
    return result;
}

} // namespace kvscope::cpu
