// The workload of the speed targets: n = 32,768, 8 KV heads, 32 query heads, d = 128. Too large for the oracles; the
// same code is held to them by the small cases.
#include "tests/bench/engine_check/engine_case.h"

namespace kvscope::check {

namespace {

constexpr std::int64_t kTokens = 32768, kHeads = 8, kQueryHeads = 32, kWidth = 128;

const naive::Block& bigKeys() {
    static const naive::Block keys = randomBlock(51, kHeads, kTokens, kWidth, 1, 0.1);
    return keys;
}

AttentionRule rule() {
    AttentionRule rule{0.0883883476, 0, 0, {}};
    for (std::int32_t h = 0; h < kQueryHeads; ++h) rule.gqaGroupOf.push_back(h / 4);
    return rule;
}

/// Causal attention of the last `w` of `n` tokens.
EngineCase columnsSpeedCase(const std::string& name, std::int64_t w, std::int64_t n) {
    const double seen = double(w) * (double(n) - 0.5 * double(w - 1)); // pairs of a query head
    return {"attentionColumnSums/speed-" + name,
            2.0 * kQueryHeads * seen * kWidth,
            4.0 * (kHeads * double(n) + kQueryHeads * double(w)) * kWidth,
            0,
            [w, n](const Engine& e) {
                const AttentionInput input{uploadRows(e, randomBlock(52, kQueryHeads, w, kWidth)),
                                           e.rows(uploadRows(e, bigKeys()), 0, n),
                                           TokenIndex(n - w),
                                           {},
                                           rule()};
                return [&e, input] { return Outcome{e.attentionColumnSums(input, {}).data}; };
            },
            {}};
}

/// One causal head of 32,768 tokens on 1000 x 1000 pixels.
EngineCase mapCase(const char* name, std::int64_t rowsPerPixel) {
    const double rows = rowsPerPixel == 0 ? double(kTokens) : 1000.0 * double(rowsPerPixel);
    return {std::string("attentionMap/speed-") + name,
            rows * kTokens * kWidth,
            8.0 * kTokens * kWidth,
            0,
            [rowsPerPixel](const Engine& e) {
                AttentionMapInput in;
                in.queries = uploadRows(e, randomBlock(53, 1, kTokens, kWidth));
                in.keys = uploadRows(e, randomBlock(54, 1, kTokens, kWidth, 1, 0.1));
                in.rule = {0.0883883476, 0, 0, {0}};
                in.queryHeads = {0};
                in.rowEnd = in.keyEnd = kTokens;
                in.height = in.width = 1000;
                in.rowsPerPixel = rowsPerPixel;
                return [&e, in] { return Outcome{e.attentionMap(in, {}).columnSums.data}; };
            },
            {}};
}

/// Compactor's two features on 16,384 tokens.
EngineCase leverageSpeedCase(const char* name, std::int64_t k, LeverageRoute route, double gpuTarget = 0) {
    constexpr double kRows = kHeads * 16384.0;
    return {std::string("leverage/speed-") + name,
            k > 0 ? kRows * 2 * kWidth * double(k) + 4 * kRows * double(k * k) : 4 * kRows * kWidth * kWidth,
            4 * kRows * kWidth,
            0,
            [k, route](const Engine& e) {
                LeverageRequest request;
                request.rows = e.rows(uploadRows(e, bigKeys()), 0, 16384);
                request.route = route;
                request.wantsSpectrum = false; // as policies ask for scores
                if (k > 0) request.sketch = {Shape{kHeads, kWidth, k}, randomBlock(55, kHeads, kWidth, k, 0.1).numbers};
                return [&e, request] { return Outcome{e.leverage(request, {}).scores.data}; };
            },
            {},
            0,
            gpuTarget};
}

EngineCase chunksSpeedCase() {
    return {"attentionChunkSums/speed-256",
            2.0 * kQueryHeads * 16384 * 256 * kWidth,
            4.0 * (kHeads + kQueryHeads) * 16384 * kWidth,
            0,
            [](const Engine& e) {
                AttentionChunksInput in{uploadRows(e, randomBlock(56, kQueryHeads, 16384, kWidth)),
                                        e.rows(uploadRows(e, bigKeys()), 0, 16384), rule()};
                return [&e, in] { return Outcome{e.attentionChunkSums(in, {}).data}; };
            },
            {}};
}

} // namespace

std::vector<EngineCase> speedCases() {
    const double numbers = double(kHeads * kTokens * kWidth);
    std::vector<EngineCase> cases;
    cases.push_back({"keydiff/speed-features",
                     7 * numbers,
                     8 * numbers,
                     0,
                     [](const Engine& e) {
                         return [&e, t = uploadRows(e, bigKeys())] {
                             const HostTensor anchor = e.anchor(t, AnchorKind::NormalisedMean, {});
                             return Outcome{e.similarity(t, anchor, SimilarityMetric::Cosine, {}).data};
                         };
                     },
                     {}});
    cases.push_back(leverageSpeedCase("cholesky-64", 64, LeverageRoute::Cholesky, 0.4e-3));
    cases.push_back(leverageSpeedCase("gram-64", 64, LeverageRoute::Gram));
    cases.push_back(leverageSpeedCase("svd-64", 64, LeverageRoute::Svd, 3e-3));
    cases.push_back(leverageSpeedCase("svd-exact", 0, LeverageRoute::Svd));
    cases.push_back(chunksSpeedCase());
    cases.push_back(columnsSpeedCase("window-32", 32, kTokens));
    cases.push_back(columnsSpeedCase("window-1", 1, kTokens));
    cases.push_back(columnsSpeedCase("snapkv-16k", 32, 16384));
    cases.push_back(columnsSpeedCase("h2o-16k", 16384, 16384));
    cases.push_back(mapCase("map-exact", 0));
    cases.push_back(mapCase("map-sampled", 1));
    cases.push_back({"principalAxes/speed-one-head",
                     2.0 * kTokens * kWidth * kWidth,
                     4.0 * kTokens * kWidth,
                     0,
                     [](const Engine& e) {
                         return [&e, t = uploadRows(e, bigKeys())] {
                             return Outcome{e.principalAxes(t, 3, 5, {}).axes.data};
                         };
                     },
                     {}});
    cases.push_back({"weightedAttention/speed-64-queries",
                     4.0 * kQueryHeads * 64 * kTokens * kWidth,
                     8 * numbers,
                     0,
                     [](const Engine& e) {
                         const WeightedAttentionInput input{uploadRows(e, randomBlock(54, kQueryHeads, 64, kWidth)),
                                                            uploadRows(e, bigKeys()),
                                                            uploadRows(e, bigKeys()),
                                                            TokenIndex(kTokens - 64),
                                                            TokenIndex(kTokens - 64),
                                                            rule(),
                                                            {}};
                         return [&e, input] { return Outcome{e.weightedAttention(input, {}).logDenominator.data}; };
                     },
                     {}});
    return cases;
}

} // namespace kvscope::check
