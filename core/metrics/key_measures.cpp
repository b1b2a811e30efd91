// Measures of keys: volume spanned by the kept ones, their similarity, norms of keys, values and queries, and the rank
// correlation of scores with later attention.
#include "core/base/average_ranks.h"
#include "core/metrics/geometry.h"
#include "core/metrics/measure_work.h"
#include "core/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

namespace kvscope {

namespace {

constexpr double kRidge = 1;        // delta of log_det_ridge, stated in its help
constexpr std::int64_t kTenth = 10; // of the tokens, in leverage_concentration

/// The numbers of a table [heads, vectors] with each head's mean.
MeasureValues perVectorValues(HostTensor table) {
    MeasureValues values = perQueryValues(std::move(table));
    std::swap(values.perVector, values.perQuery);
    return values;
}

std::span<const float> headRow(const HostTensor& table, std::int64_t head) {
    const auto width = static_cast<std::size_t>(table.shape[1]);
    return {table.data.data() + static_cast<std::size_t>(head) * width, width};
}

template <class Value> MeasureValues perKvHead(MeasureWork& work, const Value& value) {
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.kvHeads(); ++h) values.push_back(value(h));
    return perHeadValues(std::move(values));
}

std::int64_t keptCount(MeasureWork& work, std::int64_t head) {
    return static_cast<std::int64_t>(work.keptTokens()[head].size());
}

LogDeterminant determinantOf(MeasureWork& work, std::int64_t head) {
    return pseudoLogDeterminant(headRow(work.keptSingularValues(), head), keptCount(work, head));
}

/// `value(unit keys before the cut, kept tokens)` of every KV head.
template <class Value> MeasureValues overUnitKeys(MeasureWork& work, const Value& value) {
    const HostTensor keys = work.engine().download(work.seenKeys());
    const std::int64_t n = keys.shape[1], d = keys.shape[2];
    return perKvHead(work, [&](std::int64_t h) {
        work.checkpoint().stopPoint();
        return value(unitRows(keys.data.data() + h * n * d, n, d), work.keptTokens()[h]);
    });
}

/// Effective sample size (sum u)^2 / sum u^2, with the weights of repeated draws added up; 0 without tokens.
double effectiveSize(const WeightedSet& set) {
    const std::vector<TokenIndex>& tokens = set.denominator.empty() ? set.numerator : set.denominator;
    std::map<TokenIndex, double> total;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        total[tokens[i]] += set.denominatorWeights.empty() ? 1.0 : static_cast<double>(set.denominatorWeights[i]);
    double sum = 0, squares = 0;
    for (const auto& [token, weight] : total) {
        sum += weight;
        squares += weight * weight;
    }
    return squares > 0 ? sum * sum / squares : 0;
}

MeasureValues logDeterminant(MeasureWork& work) {
    return perKvHead(work, [&](std::int64_t h) { return determinantOf(work, h).value; });
}

MeasureValues logDeterminantCount(MeasureWork& work) {
    return perKvHead(work, [&](std::int64_t h) { return static_cast<double>(determinantOf(work, h).count); });
}

MeasureValues logDeterminantRidge(MeasureWork& work) {
    return perKvHead(
        work, [&](std::int64_t h) { return ridgeLogDeterminant(headRow(work.keptSingularValues(), h), kRidge); });
}

MeasureValues cosineSum(MeasureWork& work) {
    return overUnitKeys(work, [](const UnitRows& rows, const auto& kept) { return cosineSumOf(rows, kept); });
}

MeasureValues cosineSumMinimum(MeasureWork& work) {
    return overUnitKeys(work, [](const UnitRows& rows, const auto& kept) { return exchangedCosineSum(rows, kept); });
}

MeasureValues keyNorm(MeasureWork& work) {
    return perVectorValues(work.engine().rowNorms(work.seenKeys(), work.checkpoint()));
}

MeasureValues shiftedKeyNorm(MeasureWork& work) {
    return perVectorValues(distancesToMean(work.engine(), work.seenKeys(), work.checkpoint()));
}

MeasureValues valueNorm(MeasureWork& work) {
    const Tensor values = work.engine().rows(work.input().attention.values, 0, work.input().attention.cut);
    return perVectorValues(work.engine().rowNorms(values, work.checkpoint()));
}

MeasureValues queryNorm(MeasureWork& work) {
    return perVectorValues(work.engine().rowNorms(work.input().allQueries, work.checkpoint()));
}

MeasureValues cosineOfMeans(MeasureWork& work) {
    const Engine& engine = work.engine();
    const HostTensor keyMean = engine.anchor(work.seenKeys(), AnchorKind::Mean, work.checkpoint());
    const HostTensor queryMean = engine.anchor(work.input().allQueries, AnchorKind::Mean, work.checkpoint());
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h)
        values.push_back(cosineOf(headRow(keyMean, work.kvHeadOf(h)), headRow(queryMean, h)));
    return perHeadValues(std::move(values));
}

MeasureValues cosineOfDistinctKey(MeasureWork& work) {
    const Engine& engine = work.engine();
    const Tensor keys = work.seenKeys();
    const HostTensor toMean = cosinesToMean(engine, keys, work.checkpoint());
    const HostTensor queryMean = engine.anchor(work.input().allQueries, AnchorKind::Mean, work.checkpoint());
    RowPositions distinct;
    for (std::int64_t h = 0; h < work.kvHeads(); ++h) {
        const std::span<const float> row = headRow(toMean, h);
        distinct.push_back({static_cast<TokenIndex>(std::ranges::min_element(row) - row.begin())});
    }
    const HostTensor chosen = engine.download(engine.gatherRows(keys, distinct));
    const auto d = static_cast<std::size_t>(chosen.shape[2]);
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h)
        values.push_back(
            cosineOf({chosen.data.data() + static_cast<std::size_t>(work.kvHeadOf(h)) * d, d}, headRow(queryMean, h)));
    return perHeadValues(std::move(values));
}

MeasureValues leverageConcentration(MeasureWork& work) {
    const std::int64_t cut = work.input().attention.cut, tenth = (cut + kTenth - 1) / kTenth;
    LeverageRequest request;
    request.rows = work.engine().rows(work.input().preRopeKeys, 0, cut);
    HostTensor scores = work.engine().leverage(request, work.checkpoint()).scores;
    return perKvHead(work, [&](std::int64_t h) {
        const auto begin = scores.data.begin() + h * cut;
        std::sort(begin, begin + cut, std::greater<>());
        const double highest = std::accumulate(begin, begin + tenth, 0.0),
                     all = std::accumulate(begin + tenth, begin + cut, highest);
        return all > 0 ? highest / all : NAN;
    });
}

MeasureValues effectiveBudget(MeasureWork& work) {
    const auto kept = work.input().kept;
    const bool perQueryHead = std::cmp_greater(kept.size(), work.kvHeads());
    return perKvHead(work, [&](std::int64_t h) {
        std::vector<double> sizes;
        for (std::size_t i = 0; i < kept.size(); ++i)
            if ((perQueryHead ? work.kvHeadOf(static_cast<std::int64_t>(i)) : static_cast<std::int64_t>(i)) == h)
                sizes.push_back(effectiveSize(kept[i]));
        return meanOfNumbers(sizes);
    });
}

/// [Hq, cut] ranks of the evaluation queries' mean attention: multiples of 1/2, which floats hold exactly.
const HostTensor& futureRanks(MeasureWork& work) {
    const auto make = [&] {
        MeasureValues ranks;
        const HostTensor& mass = work.futureMass();
        const std::int64_t cut = work.input().attention.cut;
        ranks.perVector.shape = {work.queryHeads(), cut};
        for (std::int64_t h = 0; h < work.queryHeads(); ++h) {
            const std::span<const float> row = headRow(mass, h).first(static_cast<std::size_t>(cut));
            std::ranges::copy(averageRanks(std::vector<double>(row.begin(), row.end())),
                              std::back_inserter(ranks.perVector.data));
        }
        return ranks;
    };
    return work.ofLayer("ranks of future mass", make).perVector;
}

bool hasNaN(std::span<const float> numbers) {
    return std::ranges::any_of(numbers, [](float x) { return std::isnan(x); });
}

MeasureValues scoreCorrelation(MeasureWork& work) {
    const HostTensor &scores = work.input().scores, &mass = work.futureMass();
    const auto cut = static_cast<std::size_t>(scores.shape[1]);
    std::vector<std::vector<double>> ranks(static_cast<std::size_t>(scores.shape[0])); // of rows without NaN
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h) {
        work.checkpoint().stopPoint();
        const std::int64_t row = work.input().scoresOfQueryHeads ? h : work.kvHeadOf(h);
        const std::span<const float> score = headRow(scores, row), later = headRow(mass, h).first(cut);
        const std::vector<double> x(score.begin(), score.end());
        if (hasNaN(score) || hasNaN(later)) {
            values.push_back(spearman(x, std::vector<double>(later.begin(), later.end())));
            continue;
        }
        if (ranks[row].empty()) ranks[row] = averageRanks(x);
        const std::span<const float> ofLater = headRow(futureRanks(work), h);
        values.push_back(correlationOfRanks(ranks[row], std::vector<double>(ofLater.begin(), ofLater.end())));
    }
    return perHeadValues(std::move(values));
}

} // namespace

std::vector<MeasureEntry> keyMeasures() {
    using enum MeasureGroup;
    using enum MeasureShape;
    using enum MeasureDirection;
    using enum MeasureNeed;
    using enum MeasureSubject;
    return {
        {{"effective_budget", "Effective budget", KeptKeys, "tokens",
          "(Σ_i u_i)² / Σ_i u_i² over the weights u of the kept tokens in the denominator (Kish's effective sample "
          "size): as many tokens of equal weight. Without weights the tokens that the head really keeps, which differ "
          "where a policy shares a budget among heads or layers; mean over the group where query heads choose.",
          PerKvHead, Neither},
         effectiveBudget},
        {{"log_det", "log det of kept keys", KeptKeys, "nat",
          "Σ ln s_j² over singular values s_j of the kept keys above s_1 max(N, d) 2⁻²³ (KeyDiff Fig. 12).", PerKvHead,
          LargerIsBetter},
         logDeterminant},
        {{"log_det_count", "Numerical rank of kept keys", KeptKeys, "",
          "How many singular values the pseudo-determinant takes in.", PerKvHead, Neither},
         logDeterminantCount},
        {{"log_det_ridge", "log det of kept keys, ridge", KeptKeys, "nat", "ln det(K_Sᵀ K_S + δ I) with δ = 1.",
          PerKvHead, LargerIsBetter},
         logDeterminantRidge},
        {{"cosine_sum", "Sum of cosines of kept keys", KeptKeys, "",
          "Σ_{i,j ∈ S} cos(k_i, k_j) over the kept set (KeyDiff C.2).", PerKvHead},
         cosineSum},
        {{"cosine_sum_min", "Sum of cosines after exchanges", KeptKeys, "",
          "The same after greedy exchanges: the kept key most along the sum for the evicted key most against the rest, "
          "until "
          "that lowers it no more. A set of the same size; another exchange may lower it further.",
          PerKvHead, Neither},
         cosineSumMinimum},
        {{"key_norm", "Key norm ‖k‖", Geometry, "", "Mean over the tokens before the cut.", PerKvHead, Neither, Nothing,
          Layer},
         keyNorm},
        {{"shifted_key_norm", "Distance to the mean key ‖k − k̄‖", Geometry, "",
          "Mean distance of the keys to their mean (BalanceKV Table 3).", PerKvHead, Neither, Nothing, Layer},
         shiftedKeyNorm},
        {{"value_norm", "Value norm ‖v‖", Geometry, "", "Mean over the tokens before the cut (BalanceKV Table 3).",
          PerKvHead, Neither, Nothing, Layer},
         valueNorm},
        {{"query_norm", "Query norm ‖q‖", Geometry, "", "Mean over all captured queries (BalanceKV Table 3).",
          PerQueryHead, Neither, AllQueries, Layer},
         queryNorm},
        {{"cos_means", "cos(k̄, q̄)", Geometry, "",
          "Mean key before the cut against the mean of all captured queries (KeyDiff Fig. 14).", PerQueryHead, Neither,
          AllQueries, Layer, true},
         cosineOfMeans},
        {{"cos_distinct", "cos(most distinct key, q̄)", Geometry, "",
          "k* = the key before the cut with the smallest cosine to the mean key; q̄ = the mean of all captured queries "
          "(KeyDiff Fig. 16).",
          PerQueryHead, Neither, AllQueries, Layer, true},
         cosineOfDistinctKey},
        {{"leverage_concentration", "Leverage concentration", Geometry, "",
          "Share of the leverage of the keys before RoPE and before the cut (Compactor 3.1: kᵀ(KᵀK)⁺k, no sketch, not "
          "centred) that the tenth of the tokens with the highest leverage holds: 0.1 where it is even, 1 where they "
          "hold all.",
          PerKvHead, Neither, PreRopeKeys, Layer},
         leverageConcentration},
        {{"score_correlation", "Rank correlation of score and attention", Mass, "",
          "Spearman's ρ of the policy's score with the mean attention of the evaluation queries, ties averaged.",
          PerQueryHead, LargerIsBetter, Scores, KeptTokens, true},
         scoreCorrelation},
    };
}

} // namespace kvscope
