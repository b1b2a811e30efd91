#pragma once

#include "core/metrics/measure_values.h"
#include "core/run/run.h"
#include "tests/run/naive_attention.h"
#include "tests/support/naive/naive_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace kvscope::measures_fixture {

inline constexpr int kTokens = 60, kCut = 45, kEvaluationQueries = 15, kHeads = 4, kKvHeads = 2, kDim = 8, kHidden = 20;
inline constexpr double kTolerance = 1e-5; // outputs and logarithms are floats

/// A run on a random capture, and everything its measures should be made of, in double.
struct Fixture {
    std::shared_ptr<MemoryCapture> capture = makeRandomCapture(5, kTokens, 1, kHeads, kKvHeads, kDim);
    LayerRunner runner{std::shared_ptr<const Engine>(makeCpuEngine(2))};
    std::shared_ptr<const RunResult> result;
    naive::Layer layer;
    HostTensor projection;

    explicit Fixture(const std::string& policy = "keydiff@0.3") {
        std::mt19937 random(6);
        std::normal_distribution<float> normal;
        projection = {{kHidden, kHeads, kDim}, std::vector<float>(kHidden * kHeads * kDim)};
        for (float& x : projection.data) x = normal(random);
        capture->captureInfo.layers.front().hasOutputProjection = true;
        capture->tensors[{LayerIndex(0), TensorRole::OutputProjection}] = projection;
        run(policy);
        layer.keys = capture->read(LayerIndex(0), TensorRole::Keys, {});
        layer.values = capture->read(LayerIndex(0), TensorRole::Values, {});
        const HostTensor all = capture->read(LayerIndex(0), TensorRole::Queries, {});
        layer.queries = {{kHeads, kEvaluationQueries, kDim}, {}};
        for (int h = 0; h < kHeads; ++h)
            layer.queries.data.insert(layer.queries.data.end(), all.data.begin() + (h * kTokens + kCut) * kDim,
                                      all.data.begin() + (h + 1) * kTokens * kDim);
        layer.firstQuery = kCut;
        const LayerInfo& info = capture->info().layers.front();
        layer.rule = {info.scaling, 0, 0, info.gqaGroupOf};
    }

    void run(const std::string& policy, const std::string& cut = std::to_string(kCut)) {
        result = LayerRunner(std::shared_ptr<const Engine>(makeCpuEngine(2))).run(runRequest(capture, policy, cut), {});
    }
    MeasureValues get(const std::string& id) const {
        const std::vector<std::string> ids = {id};
        return runner.measure(*result, ids, {}).front();
    }
    const std::vector<TokenIndex>& kept(int kvHead) const { return result->selection.heads[std::size_t(kvHead)].kept; }
    bool isKept(int kvHead, int token) const {
        return token >= kCut || std::binary_search(kept(kvHead).begin(), kept(kvHead).end(), token);
    }
    int kvOf(int head) const { return layer.rule.gqaGroupOf[std::size_t(head)]; }
    std::vector<double> weights(int head, int query) const { // e^logit of what the query sees
        std::vector<double> e(kTokens);
        for (int i = 0; i <= kCut + query; ++i)
            e[std::size_t(i)] = layer.sees(kCut + query, i) ? std::exp(layer.logit(head, query, i)) : 0;
        return e;
    }
    std::vector<double> sum(int head, const std::vector<double>& factors) const { // of the values
        std::vector<double> out(kDim);
        for (int i = 0; i < kTokens; ++i)
            for (int c = 0; c < kDim; ++c)
                out[std::size_t(c)] += factors[std::size_t(i)] * layer.row(layer.values, kvOf(head), i)[c];
        return out;
    }
};

inline HostTensor randomKeys() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    HostTensor keys{{kKvHeads, kTokens, kDim}, std::vector<float>(kKvHeads * kTokens * kDim)};
    for (std::size_t i = 0; i < keys.data.size(); ++i)
        keys.data[i] = normal(random) * (i / kDim % 7 == 0 ? 4 : 1); // every seventh key is long
    return keys;
}

inline bool near(double got, double expected) {
    return std::abs(got - expected) <= kTolerance * std::max(1.0, std::abs(expected));
}

} // namespace kvscope::measures_fixture
