// The cost of eviction: attention output a of each query over all tokens, output z over the kept ones, and their
// distance. The engine computes outputs and errors, this file computes masses and means.
#include "core/metrics/fidelity.h"

#include "core/engine/engine.h"
#include "core/engine/recent_sums.h"
#include "core/metrics/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

namespace kvscope {

namespace {

bool isPlain(const WeightedSet& set) {
    return set.numeratorWeights.empty() && set.denominatorWeights.empty() && set.denominator.empty();
}

/// The tokens of the numerator's sample, each once with weight 1.
std::vector<WeightedSet> plainSets(std::span<const WeightedSet> kept) {
    std::vector<WeightedSet> plain;
    for (const WeightedSet& set : kept) {
        WeightedSet once;
        for (std::size_t i = 0; i < set.numerator.size(); ++i)
            if (set.numeratorWeights.empty() || set.numeratorWeights[i] != 0)
                once.numerator.push_back(set.numerator[i]);
        std::ranges::sort(once.numerator);
        once.numerator.erase(std::unique(once.numerator.begin(), once.numerator.end()), once.numerator.end());
        plain.push_back(std::move(once));
    }
    return plain;
}

WeightedAttentionInput attentionOver(const FidelityInput& input, std::span<const WeightedSet> kept,
                                     const Tensor& reference) {
    return {.queries = input.queries,
            .keys = input.keys,
            .values = input.values,
            .firstQuery = input.firstQuery,
            .cut = input.cut,
            .rule = input.rule,
            .kept = kept,
            .reference = reference};
}

/// Attention over sets without weights: known in advance, or computed, by an engine that can from the sums of sets that
/// were compared before.
WeightedAttention comparedAttention(const Engine& engine, const FidelityInput& input, const ExactAttention& exact,
                                    std::span<const WeightedSet> plain, const Checkpoint& checkpoint) {
    for (std::size_t i = 0; i < exact.overNested.size(); ++i)
        if (!exact.overNested[i].logDenominator.empty() &&
            std::ranges::equal(exact.nested[i], plain, {}, &WeightedSet::numerator, &WeightedSet::numerator))
            return exact.overNested[i];
    WeightedAttentionInput attention = attentionOver(input, plain, exact.output);
    attention.recent = exact.recent.get();
    return engine.weightedAttention(attention, checkpoint);
}

/// `logKept`: log denominator over the kept tokens with weight 1. A query that sees no token of a sample has no output.
void fill(Fidelity& result, const WeightedAttention& left, const HostTensor& logKept, const ExactAttention& exact) {
    const std::size_t pairs = result.outputError.data.size();
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        const bool nothingLeft = std::isinf(left.logDenominator.data[pair]);
        const double error = nothingLeft ? NAN : double{left.outputError.data[pair]};
        // A part cannot exceed the whole: clamps the rounding of the two logarithms.
        const double mass =
            std::min(1.0, std::exp(static_cast<double>(logKept.data[pair]) - exact.logDenominator.data[pair]));
        result.outputError.data[pair] = static_cast<float>(error);
        result.retainedMass.data[pair] = static_cast<float>(mass);
        result.skipped += std::isnan(error) ? 1 : 0;
    }
    result.meanOutputError = rowMeans(result.outputError);
    result.meanRetainedMass = rowMeans(result.retainedMass);
}

} // namespace

WeightedAttention keptAttention(const Engine& engine, const FidelityInput& input, std::span<const WeightedSet> kept,
                                const Checkpoint& checkpoint, const Tensor& reference) {
    return engine.weightedAttention(attentionOver(input, kept, reference), checkpoint);
}

WeightedAttention leftAttention(const Engine& engine, const FidelityInput& input, std::span<const WeightedSet> kept,
                                const Checkpoint& checkpoint, const Tensor& reference) {
    if (!input.moved) return keptAttention(engine, input, kept, checkpoint, reference);
    const MovedCache& cache = *input.moved;
    const FidelityInput moved{cache.queries, cache.keys,        cache.values, cache.firstQuery,
                              cache.cut,     input.seenQueries, input.rule};
    return keptAttention(engine, moved, cache.kept, checkpoint, reference);
}

ExactAttention exactAttention(const Engine& engine, const FidelityInput& input, const Checkpoint& checkpoint,
                              std::vector<std::vector<WeightedSet>> nested) {
    WeightedAttentionInput attention = attentionOver(input, {}, {});
    attention.nested = nested;
    WeightedAttention all = engine.weightedAttention(attention, checkpoint);
    auto recent = std::make_shared<RecentSums>(all.logDenominator);
    if (all.nested.empty()) nested.clear();
    return {engine.upload(std::move(all.output)),
            std::move(all.logDenominator),
            std::move(all.logNorm),
            std::move(recent),
            std::move(nested),
            std::move(all.nested)};
}

std::vector<std::vector<WeightedSet>> nestedFamilies(std::vector<std::vector<WeightedSet>> families) {
    using Family = std::vector<WeightedSet>;
    std::erase_if(families, [](const Family& family) {
        return !std::ranges::all_of(family, [](const WeightedSet& set) {
            return isPlain(set) &&
                   std::ranges::adjacent_find(set.numerator, std::greater_equal{}) == set.numerator.end();
        });
    });
    const auto tokensOf = [](const Family& family) {
        std::size_t count = 0;
        for (const WeightedSet& set : family) count += set.numerator.size();
        return count;
    };
    std::ranges::sort(families, {}, tokensOf);
    const auto contains = [](const Family& more, const Family& less) {
        for (std::size_t i = 0; i < less.size(); ++i)
            if (!std::ranges::includes(more[i].numerator, less[i].numerator)) return false;
        return more.size() == less.size();
    };
    std::vector<Family> nested;
    for (Family& family : families)
        if (nested.empty() || contains(family, nested.back())) nested.push_back(std::move(family));
    return nested;
}

Fidelity measureFidelity(const Engine& engine, const FidelityInput& input, const ExactAttention& exact,
                         std::span<const WeightedSet> kept, const Checkpoint& checkpoint) {
    const std::int64_t heads = input.queries.size(0), count = input.queries.size(1);
    assert((std::cmp_equal(kept.size(), input.keys.size(0)) || std::cmp_equal(kept.size(), heads)) &&
           exact.output.size(1) == count);
    Fidelity result;
    result.firstQuery = input.firstQuery;
    result.queryCount = count;
    result.seenQueries = input.seenQueries;
    result.outputError = HostTensor::filled({heads, count});
    result.retainedMass = result.outputError;
    const bool plain = !input.moved && std::ranges::all_of(kept, isPlain);
    if (plain) {
        const WeightedAttention left = comparedAttention(engine, input, exact, kept, checkpoint);
        fill(result, left, left.logDenominator, exact);
        return result;
    }
    const WeightedAttention left = leftAttention(engine, input, kept, checkpoint.part(0, 0.5), exact.output);
    // Weights and positions change the output but not the true attention on the kept tokens.
    const std::vector<WeightedSet> sets = plainSets(kept);
    const WeightedAttention plainly = comparedAttention(engine, input, exact, sets, checkpoint.part(0.5, 1));
    fill(result, left, plainly.logDenominator, exact);
    return result;
}

std::vector<double> rowMeans(const HostTensor& table) {
    std::vector<double> means;
    for (std::int64_t row = 0; row < table.shape[0]; ++row) {
        const auto begin = table.data.begin() + row * table.shape[1];
        means.push_back(meanOfNumbers(std::vector<double>(begin, begin + table.shape[1])));
    }
    return means;
}

double meanOfNumbers(std::span<const double> values) { return summaryOf(values).mean; }

double jaccard(std::span<const TokenIndex> a, std::span<const TokenIndex> b) {
    const auto endOf = [](std::span<const TokenIndex> list) { return list.empty() ? 0 : list.back() + 1; };
    std::vector<std::uint8_t> isInA(static_cast<std::size_t>(std::max(endOf(a), endOf(b)))); // faster than merging
    for (const TokenIndex token : a) isInA[token] = 1;
    std::size_t common = 0;
    for (const TokenIndex token : b) common += isInA[token];
    const std::size_t united = a.size() + b.size() - common;
    return united == 0 ? 1 : static_cast<double>(common) / static_cast<double>(united);
}

} // namespace kvscope
