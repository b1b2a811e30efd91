#pragma once

#include "core/base/host_tensor.h"
#include "core/engine/engine.h"

#include <cmath>
#include <vector>

namespace kvscope::naive {

/// One evaluation query of one head, computed with double loops straight from the estimator's definition.
struct Outcome {
    std::vector<double> exact;   ///< a
    std::vector<double> output;  ///< z
    std::vector<double> evicted; ///< mean value of what was evicted, weighted by its attention
    double mass = 0;             ///< share of the exact attention on what is left
    bool nothingLeft = false;
};

/// Tensors of a layer in host memory: [Hq, w, d], [Hkv, n, d], [Hkv, n, dv].
struct Layer {
    HostTensor queries, keys, values;
    TokenIndex firstQuery = 0;
    AttentionRule rule;

    const float* row(const HostTensor& tensor, std::int64_t head, std::int64_t row) const {
        return tensor.data.data() + (head * tensor.shape[1] + row) * tensor.shape[2];
    }
    double logit(std::int64_t queryHead, std::int64_t query, TokenIndex token) const {
        const float* q = row(queries, queryHead, query);
        const float* k = row(keys, rule.gqaGroupOf[static_cast<std::size_t>(queryHead)], token);
        double product = 0;
        for (std::int64_t c = 0; c < keys.shape[2]; ++c) product += static_cast<double>(q[c]) * k[c];
        product *= rule.scaling;
        return rule.softcap > 0 ? rule.softcap * std::tanh(product / rule.softcap) : product;
    }
    bool sees(TokenIndex query, TokenIndex token) const {
        return token <= query && (rule.slidingWindow == 0 || token > query - rule.slidingWindow);
    }
};

/// `numerator` and `denominator` hold a weight per token of [0, cut) (0: not in the set); `kept` says which are kept.
inline Outcome attend(const Layer& layer, std::int64_t queryHead, std::int64_t query, TokenIndex cut,
                      const std::vector<double>& numerator, const std::vector<double>& denominator,
                      const std::vector<bool>& kept) {
    const std::int64_t dv = layer.values.shape[2];
    const auto width = static_cast<std::size_t>(dv);
    Outcome out{std::vector<double>(width), std::vector<double>(width), std::vector<double>(width), 0, true};
    // An attention sink is a token of value 0 that nothing evicts.
    const double sink = std::exp(layer.rule.sinkOf(queryHead));
    double all = sink, left = sink, keptMass = sink, evictedMass = 0;
    out.nothingLeft = sink == 0;
    const auto j = static_cast<TokenIndex>(layer.firstQuery + query);
    for (TokenIndex i = 0; i <= j; ++i) {
        if (!layer.sees(j, i)) continue;
        const auto t = static_cast<std::size_t>(i);
        const double e = std::exp(layer.logit(queryHead, query, i)); // small logits: nothing overflows
        const double w = i < cut ? numerator[t] : 1, u = i < cut ? denominator[t] : 1;
        const bool stays = i >= cut || kept[t];
        const float* v = layer.row(layer.values, layer.rule.gqaGroupOf[static_cast<std::size_t>(queryHead)], i);
        all += e;
        left += u * e;
        (stays ? keptMass : evictedMass) += e;
        out.nothingLeft = out.nothingLeft && !stays;
        for (std::size_t c = 0; c < width; ++c) {
            out.exact[c] += e * v[c];
            out.output[c] += w * e * v[c];
            out.evicted[c] += stays ? 0 : e * v[c];
        }
    }
    for (std::size_t c = 0; c < width; ++c) {
        out.exact[c] /= all;
        out.output[c] = left > 0 ? out.output[c] / left : 0;
        out.evicted[c] = evictedMass > 0 ? out.evicted[c] / evictedMass : 0;
    }
    out.mass = keptMass / all;
    return out;
}

inline double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
    std::vector<double> difference(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) difference[i] = x[i] - y[i];
    return norm(difference);
}

} // namespace kvscope::naive
