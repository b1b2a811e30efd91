// Measures of keys: volume spanned by the kept ones, their similarity, norms of keys, values and queries, and the rank
// correlation of scores with later attention.
#include "core/metrics/measure_work.h"
#include "core/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace kvscope::measure {

namespace {

constexpr double kRidge = 1;        // delta of log_det_ridge, stated in its help
constexpr std::int64_t kTenth = 10; // of the tokens, in leverage_concentration

std::vector<double> headMeans(const HostTensor& table) { return perQueryValues(table).perHead; }

std::span<const float> headRow(const HostTensor& table, std::int64_t head) {
    const auto width = static_cast<std::size_t>(table.shape[1]);
    return {table.data.data() + static_cast<std::size_t>(head) * width, width};
}

template <class Value> MeasureValues perKvHead(MeasureWork& work, const Value& value) {
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.kvHeads(); ++h)
        values.push_back(value(h));
    return perHeadValues(std::move(values));
}

std::int64_t keptCount(MeasureWork& work, std::int64_t head) {
    return static_cast<std::int64_t>(work.keptTokens()[static_cast<std::size_t>(head)].size());
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
        return value(unitRows(keys.data.data() + h * n * d, n, d), work.keptTokens()[static_cast<std::size_t>(h)]);
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

} // namespace

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
    return perHeadValues(headMeans(work.engine().download(work.engine().rowNorms(work.seenKeys(), work.checkpoint()))));
}

MeasureValues shiftedKeyNorm(MeasureWork& work) {
    const Engine& engine = work.engine();
    const Tensor keys = work.seenKeys(), mean = engine.anchor(keys, AnchorKind::Mean, work.checkpoint());
    return perHeadValues(
        headMeans(engine.download(engine.similarity(keys, mean, SimilarityMetric::Euclidean, work.checkpoint()))));
}

MeasureValues valueNorm(MeasureWork& work) {
    const Tensor values = work.engine().rows(work.input().attention.values, 0, work.input().attention.cut);
    return perHeadValues(headMeans(work.engine().download(work.engine().rowNorms(values, work.checkpoint()))));
}

MeasureValues queryNorm(MeasureWork& work) {
    return perHeadValues(
        headMeans(work.engine().download(work.engine().rowNorms(work.input().attention.queries, work.checkpoint()))));
}

MeasureValues cosineOfMeans(MeasureWork& work) {
    const Engine& engine = work.engine();
    const HostTensor keyMean = engine.download(engine.anchor(work.seenKeys(), AnchorKind::Mean, work.checkpoint()));
    const HostTensor queryMean =
        engine.download(engine.anchor(work.input().attention.queries, AnchorKind::Mean, work.checkpoint()));
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h)
        values.push_back(cosineOf(headRow(keyMean, work.kvHeadOf(h)), headRow(queryMean, h)));
    return perHeadValues(std::move(values));
}

MeasureValues cosineOfDistinctKey(MeasureWork& work) {
    const Engine& engine = work.engine();
    const Tensor keys = work.seenKeys();
    const HostTensor toMean = engine.download(engine.similarity(
        keys, engine.anchor(keys, AnchorKind::Mean, work.checkpoint()), SimilarityMetric::Cosine, work.checkpoint()));
    const HostTensor queryMean =
        engine.download(engine.anchor(work.input().attention.queries, AnchorKind::Mean, work.checkpoint()));
    RowPositions distinct;
    for (std::int64_t h = 0; h < work.kvHeads(); ++h) {
        const std::span<const float> row = headRow(toMean, h);
        distinct.push_back({static_cast<TokenIndex>(std::min_element(row.begin(), row.end()) - row.begin())});
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
    HostTensor scores = work.engine().download(work.engine().leverage(request, work.checkpoint()).scores);
    return perKvHead(work, [&](std::int64_t h) {
        const auto begin = scores.data.begin() + h * cut;
        std::sort(begin, begin + cut, std::greater<>());
        const double highest = std::accumulate(begin, begin + tenth, 0.0),
                     all = std::accumulate(begin + tenth, begin + cut, highest);
        return all > 0 ? highest / all : std::numeric_limits<double>::quiet_NaN();
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

MeasureValues scoreCorrelation(MeasureWork& work) {
    const HostTensor &scores = work.input().scores, &mass = work.futureMass();
    const auto cut = static_cast<std::size_t>(scores.shape[1]);
    const bool perQueryHead = scores.shape[0] > work.kvHeads();
    std::vector<double> values;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h) {
        const std::span<const float> score = headRow(scores, perQueryHead ? h : work.kvHeadOf(h));
        const std::span<const float> later = headRow(mass, h).first(cut);
        const std::vector<double> x(score.begin(), score.end()), y(later.begin(), later.end());
        values.push_back(spearman(x, y));
    }
    return perHeadValues(std::move(values));
}

} // namespace kvscope::measure
