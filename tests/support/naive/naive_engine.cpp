// Oracles of the engine tests: each function is its formula, loop by loop.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::naive {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const Block& a, std::int64_t ha, std::int64_t ra, const Block& b, std::int64_t hb, std::int64_t rb) {
    double sum = 0;
    for (std::int64_t c = 0; c < a.width; ++c) sum += a.at(ha, ra, c) * b.at(hb, rb, c);
    return sum;
}

double metricBetween(const Block& a, std::int64_t ra, const Block& b, std::int64_t rb, std::int64_t h,
                     SimilarityMetric metric) {
    if (metric == SimilarityMetric::Dot) return dot(a, h, ra, b, h, rb);
    if (metric == SimilarityMetric::Euclidean) {
        double sum = 0;
        for (std::int64_t c = 0; c < a.width; ++c) sum += std::pow(a.at(h, ra, c) - b.at(h, rb, c), 2);
        return std::sqrt(sum);
    }
    const double lengthA = std::sqrt(dot(a, h, ra, a, h, ra)), lengthB = std::sqrt(dot(b, h, rb, b, h, rb));
    return lengthA == 0 || lengthB == 0 ? 0 : dot(a, h, ra, b, h, rb) / lengthA / lengthB;
}

double logitOf(const AttentionRule& rule, double product) {
    const double scaled = rule.scaling * product;
    return rule.softcap == 0 ? scaled : rule.softcap * std::tanh(scaled / rule.softcap);
}

bool visible(const AttentionRule& rule, std::int64_t query, std::int64_t key) {
    if (key > query) return false;
    return rule.slidingWindow == 0 || key > query - rule.slidingWindow;
}

} // namespace

Numbers rowNorms(const Block& keys) {
    Numbers out;
    for (std::int64_t h = 0; h < keys.heads; ++h)
        for (std::int64_t r = 0; r < keys.rows; ++r) out.push_back(std::sqrt(dot(keys, h, r, keys, h, r)));
    return out;
}

Numbers anchor(const Block& keys, AnchorKind kind) {
    Numbers out;
    for (std::int64_t h = 0; h < keys.heads; ++h)
        for (std::int64_t c = 0; c < keys.width; ++c) {
            Numbers column;
            for (std::int64_t r = 0; r < keys.rows; ++r) {
                const double length = std::sqrt(dot(keys, h, r, keys, h, r));
                const double x = keys.at(h, r, c);
                column.push_back(kind == AnchorKind::NormalisedMean ? (length == 0 ? 0 : x / length) : x);
            }
            if (kind == AnchorKind::Median) {
                std::sort(column.begin(), column.end());
                out.push_back((column[(column.size() - 1) / 2] + column[column.size() / 2]) / 2);
                continue;
            }
            double sum = 0;
            for (double x : column) sum += x;
            out.push_back(sum / double(keys.rows));
        }
    return out;
}

Numbers similarity(const Block& keys, const Block& anchors, SimilarityMetric metric) {
    Numbers out;
    for (std::int64_t h = 0; h < keys.heads; ++h)
        for (std::int64_t r = 0; r < keys.rows; ++r) out.push_back(metricBetween(keys, r, anchors, 0, h, metric));
    return out;
}

Numbers pairwiseSums(const Block& keys, SimilarityMetric metric) {
    Numbers out;
    for (std::int64_t h = 0; h < keys.heads; ++h)
        for (std::int64_t i = 0; i < keys.rows; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < keys.rows; ++j) sum += metricBetween(keys, i, keys, j, h, metric);
            out.push_back(sum);
        }
    return out;
}

Numbers attentionColumnSums(const Attention& in) {
    Numbers out;
    for (std::int64_t h = 0; h < in.queries.heads; ++h) {
        const std::int64_t kv = in.rule.gqaGroupOf[std::size_t(h)];
        Numbers sums(std::size_t(in.keys.rows), 0.0);
        for (std::int64_t j = 0; j < in.queries.rows; ++j) {
            Numbers logits(sums.size(), -kInfinity);
            for (std::int64_t i = 0; i < in.keys.rows; ++i) {
                const std::int64_t position =
                    in.keyPositions.empty() ? i : in.keyPositions[std::size_t(kv)][std::size_t(i)];
                if (visible(in.rule, in.firstQuery + j, position))
                    logits[std::size_t(i)] = logitOf(in.rule, dot(in.queries, h, j, in.keys, kv, i));
            }
            const double top = *std::max_element(logits.begin(), logits.end());
            if (top == -kInfinity) continue;
            double denominator = in.rule.sinks.empty() ? 0 : std::exp(double{in.rule.sinks[std::size_t(h)]} - top);
            for (double l : logits) denominator += std::exp(l - top);
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += std::exp(logits[i] - top) / denominator;
        }
        out.insert(out.end(), sums.begin(), sums.end());
    }
    return out;
}

Numbers pool(const Block& scores, PoolKind kind, std::int64_t width) {
    Numbers out;
    for (std::int64_t h = 0; h < scores.heads; ++h)
        for (std::int64_t i = 0; i < scores.width; ++i) {
            double sum = 0, top = -kInfinity;
            for (std::int64_t j = i - width / 2; j <= i + width / 2; ++j) {
                if (j < 0 || j >= scores.width) continue;
                sum += scores.at(h, 0, j);
                top = std::max(top, scores.at(h, 0, j));
            }
            out.push_back(kind == PoolKind::Max ? top : sum / double(width));
        }
    return out;
}

Numbers reduceGroups(const Block& scores, const std::vector<std::int32_t>& gqaGroupOf, std::int64_t kvHeads,
                     GroupRule rule) {
    Numbers out;
    for (std::int64_t kv = 0; kv < kvHeads; ++kv)
        for (std::int64_t i = 0; i < scores.width; ++i) {
            double sum = 0, top = -kInfinity, count = 0;
            for (std::int64_t h = 0; h < scores.heads; ++h) {
                if (gqaGroupOf[std::size_t(h)] != kv) continue;
                sum += scores.at(h, 0, i);
                top = std::max(top, scores.at(h, 0, i));
                ++count;
            }
            out.push_back(rule == GroupRule::Max ? top : rule == GroupRule::Sum ? sum : sum / count);
        }
    return out;
}

Choice topK(const Block& scores, std::int64_t head, std::int64_t count, std::int64_t first, std::int64_t last) {
    const std::int64_t m = scores.width;
    std::vector<bool> kept(std::size_t(m), false);
    std::int64_t left = count;
    for (std::int64_t i = 0; i < std::min(first, m) && left > 0; ++i, --left) kept[std::size_t(i)] = true;
    for (std::int64_t i = m - 1; i >= std::max<std::int64_t>(0, m - last) && left > 0; --i)
        if (!kept[std::size_t(i)]) {
            kept[std::size_t(i)] = true;
            --left;
        }
    const auto best = [&] { // the first of the largest that are not kept yet
        std::int64_t at = -1;
        for (std::int64_t i = 0; i < m; ++i)
            if (!kept[std::size_t(i)] && (at < 0 || scores.at(head, 0, i) > scores.at(head, 0, at))) at = i;
        return at;
    };
    double smallest = kInfinity;
    for (; left > 0; --left) {
        const std::int64_t at = best();
        smallest = scores.at(head, 0, at);
        kept[std::size_t(at)] = true;
    }
    const std::int64_t evicted = best();
    Choice choice{{}, evicted < 0 ? kInfinity : smallest - scores.at(head, 0, evicted)};
    for (std::int64_t i = 0; i < m; ++i)
        if (kept[std::size_t(i)]) choice.kept.push_back(TokenIndex(i));
    return choice;
}

Numbers weightedAttention(const Weighted& in) {
    Numbers outputs, logs, norms;
    for (std::int64_t h = 0; h < in.queries.heads; ++h)
        for (std::int64_t j = 0; j < in.queries.rows; ++j) {
            const std::int64_t kv = in.rule.gqaGroupOf[std::size_t(h)], position = in.firstQuery + j;
            // How often every token counts above and below the line.
            Numbers above(std::size_t(in.keys.rows), 0.0), below = above;
            for (std::int64_t i = 0; i < in.keys.rows; ++i)
                if (i >= in.cut || in.kept.empty()) above[std::size_t(i)] = below[std::size_t(i)] = 1;
            if (!in.kept.empty()) {
                const WeightedSet& set = in.kept[std::size_t(std::ssize(in.kept) > in.keys.heads ? h : kv)];
                const auto& lower = set.denominator.empty() ? set.numerator : set.denominator;
                for (std::size_t i = 0; i < set.numerator.size(); ++i)
                    above[std::size_t(set.numerator[i])] +=
                        set.numeratorWeights.empty() ? 1 : double{set.numeratorWeights[i]};
                for (std::size_t i = 0; i < lower.size(); ++i)
                    below[std::size_t(lower[i])] +=
                        set.denominatorWeights.empty() ? 1 : double{set.denominatorWeights[i]};
            }
            // A sink is a token of value 0, weight 1 and its own logit, which every query sees.
            double top = in.rule.sinks.empty() ? -kInfinity : double{in.rule.sinks[std::size_t(h)]}, squares = 0;
            Numbers logits(above.size(), -kInfinity), sum(std::size_t(in.values.width), 0.0);
            for (std::int64_t i = 0; i < in.keys.rows; ++i)
                if (visible(in.rule, position, i) && (above[std::size_t(i)] != 0 || below[std::size_t(i)] != 0)) {
                    logits[std::size_t(i)] = logitOf(in.rule, dot(in.queries, h, j, in.keys, kv, i));
                    top = std::max(top, logits[std::size_t(i)]);
                }
            double denominator = in.rule.sinks.empty() ? 0 : std::exp(double{in.rule.sinks[std::size_t(h)]} - top);
            for (std::size_t i = 0; i < logits.size() && top > -kInfinity; ++i) {
                const double e = std::exp(logits[i] - top);
                denominator += below[i] * e;
                squares += above[i] * e * above[i] * e;
                for (std::size_t c = 0; c < sum.size(); ++c)
                    sum[c] += above[i] * e * in.values.at(kv, std::int64_t(i), std::int64_t(c));
            }
            for (double& x : sum) x = denominator > 0 ? x / denominator : 0;
            if (in.reference.numbers.empty()) {
                outputs.insert(outputs.end(), sum.begin(), sum.end());
            } else {
                double distance = 0, norm = 0;
                for (std::int64_t c = 0; c < in.values.width; ++c) {
                    const double a = in.reference.at(h, j, c);
                    distance += (sum[std::size_t(c)] - a) * (sum[std::size_t(c)] - a);
                    norm += a * a;
                }
                outputs.push_back(std::sqrt(distance) / std::sqrt(norm));
            }
            logs.push_back(denominator > 0 ? top + std::log(denominator) : -kInfinity);
            norms.push_back(squares > 0 ? top + std::log(std::sqrt(squares)) : -kInfinity);
        }
    outputs.insert(outputs.end(), logs.begin(), logs.end());
    outputs.insert(outputs.end(), norms.begin(), norms.end());
    return outputs;
}

} // namespace kvscope::naive
