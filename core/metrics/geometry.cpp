// Distributions of directions and norms of keys and queries, and KeyDiff's Theorems C.1 and 3.2 evaluated at every
// query of a head.
#include "core/metrics/geometry.h"

#include "core/engine/attention_map.h"
#include "core/engine/engine.h"
#include "core/metrics/theory.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

namespace kvscope {

namespace {

constexpr double kLostWeight = 1e-6; // below this, 1 - w is only rounding of a float weight

double squaredNorm(std::span<const float> a) {
    double sum = 0;
    for (const double x : a) sum += x * x;
    return sum;
}

} // namespace

Histogram::Histogram(double low, double high, std::size_t bins) : m_low(low), m_high(high), m_counts(bins, 0) {
    assert(low < high && bins > 0);
}

Histogram Histogram::over(std::span<const double> numbers, std::size_t bins) {
    double low = INFINITY, high = -INFINITY;
    for (const double number : numbers)
        if (std::isfinite(number)) {
            low = std::min(low, number);
            high = std::max(high, number);
        }
    if (low > high) return {0, 1, bins};
    const double margin = std::max({1e-3 * (high - low), 1e-9 * std::abs(high), 1e-12});
    Histogram histogram(low, high + margin, bins);
    for (const double number : numbers) histogram.add(number);
    return histogram;
}

void Histogram::add(double number) {
    if (!std::isfinite(number)) return;
    while (number >= m_high) {
        const std::size_t bins = m_counts.size();
        const auto countOf = [&](std::size_t bin) {
            return bin < bins ? m_counts[bin] : 0;
        }; // an odd last bin has no partner
        for (std::size_t i = 0; i < bins; ++i) m_counts[i] = countOf(2 * i) + countOf(2 * i + 1);
        m_high = m_low + 2 * (m_high - m_low);
    }
    const auto bin = static_cast<std::size_t>(std::max(0.0, (number - m_low) / binWidth()));
    ++m_counts[std::min(bin, m_counts.size() - 1)];
    const double off = number - m_mean;
    m_mean += off / static_cast<double>(++m_count);
    m_squares += off * (number - m_mean);
}

Summary Histogram::summary() const {
    return {m_count, m_mean, m_count > 1 ? std::sqrt(m_squares / static_cast<double>(m_count - 1)) : 0};
}

HostTensor cosinesToMean(const Engine& engine, const Tensor& rows, const Checkpoint& checkpoint) {
    return engine.similarity(rows, engine.anchor(rows, AnchorKind::Mean, checkpoint), SimilarityMetric::Cosine,
                             checkpoint);
}

HostTensor distancesToMean(const Engine& engine, const Tensor& rows, const Checkpoint& checkpoint) {
    return engine.similarity(rows, engine.anchor(rows, AnchorKind::Mean, checkpoint), SimilarityMetric::Euclidean,
                             checkpoint);
}

std::vector<TheoremPoint> theoremPoints(const Engine& engine, const TheoremInput& input, const Checkpoint& checkpoint) {
    const std::int64_t n = input.keys.size(1), w = input.queries.size(1);
    const auto d = static_cast<std::size_t>(input.keys.size(2));
    const std::int64_t rows = std::min(w, input.most), first = w - rows;
    const std::int32_t kvHead = input.rule.gqaGroupOf[input.queryHead];
    AttentionMapInput map;
    map.queries = input.queries;
    map.keys = input.keys;
    map.firstQuery = input.firstQuery;
    map.rule = input.rule;
    map.queryHeads = {input.queryHead};
    map.rowBegin = input.firstQuery + first;
    map.rowEnd = input.firstQuery + w;
    map.keyEnd = map.width = n;
    map.height = rows;
    const HostTensor weights = engine.attentionMap(map, checkpoint).cells; // [rows, n], one cell a pixel
    const HostTensor keys = engine.download(input.keys), queries = engine.download(input.queries);
    const HostTensor mean = engine.anchor(engine.rows(input.keys, 0, input.meanOver), AnchorKind::Mean, checkpoint);
    const HostTensor norms = engine.rowNorms(input.keys, checkpoint);
    const std::span kbar(mean.data.data() + kvHead * d, d);
    const float* lengths = norms.data.data() + kvHead * n;
    std::vector<TheoremPoint> points;
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* p = weights.data.data() + row * n;
        const float* top =
            std::max_element(p, p + n, [](float a, float b) { return std::isnan(b) ? false : std::isnan(a) || a < b; });
        const std::span q(queries.data.data() + (input.queryHead * w + first + row) * d, d);
        const std::span k(keys.data.data() + (kvHead * n + (top - p)) * d, d);
        TheoremPoint point;
        point.query = static_cast<TokenIndex>(map.rowBegin + row);
        point.key = static_cast<TokenIndex>(top - p);
        point.weight = static_cast<double>(*top);
        if (!(1 - point.weight > kLostWeight)) continue;
        point.cosKey = cosineOf(k, q);
        point.cosMean = cosineOf(kbar, q);
        point.cosMeanKey = cosineOf(kbar, k);
        const std::int64_t reach = input.rule.slidingWindow > 0 ? input.rule.slidingWindow : n;
        const std::int64_t others = std::min<std::int64_t>(point.query, reach - 1); // seen beside the query's own key
        const float* own = lengths + point.query;
        const auto longest = static_cast<double>(*std::max_element(own - others, own + 1)); // of those seen
        point.squaredNorm = std::pow(input.rule.scaling * longest, 2) * squaredNorm(q);
        point.leastCosKey = leastCosineOfWeight(point.weight, others, point.squaredNorm);
        point.mostCosMeanKey = largestCosineToMean(point.cosMean, point.cosKey);
        points.push_back(point);
    }
    return points;
}

} // namespace kvscope
