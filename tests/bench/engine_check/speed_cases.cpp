// The workload of the speed targets: n = 32,768, 8 KV heads, 32 query heads, d = 128. Too large for the oracles; the
// same code is held to them by the small cases.
#include "tests/bench/engine_check/engine_case.h"

namespace kvscope::check {

namespace {

constexpr std::int64_t kTokens = 32768, kHeads = 8, kQueryHeads = 32, kWidth = 128;

naive::Block bigKeys(RowType type) {
    static const naive::Block keys = randomBlock(51, kHeads, kTokens, kWidth, 1, 0.1);
    return storedAs(type.stored, keys);
}

Tensor randomRows(const Engine& e, RowType type, unsigned seed, std::int64_t heads, std::int64_t rows,
                  double shift = 0) {
    return uploadRows(e, storedAs(type.stored, randomBlock(seed, heads, rows, kWidth, 1, shift)));
}

AttentionRule rule() {
    AttentionRule rule{0.0883883476, 0, 0, {}};
    for (std::int32_t h = 0; h < kQueryHeads; ++h) rule.gqaGroupOf.push_back(h / 4);
    return rule;
}

/// Causal attention of the last `w` of `n` tokens.
EngineCase columnsSpeedCase(RowType type, const std::string& name, std::int64_t w, std::int64_t n, double gpuTarget = 0,
                            double fastGpuTarget = 0) {
    const double seen = double(w) * (double(n) - 0.5 * double(w - 1)); // pairs of a query head
    return {"attentionColumnSums/speed-" + name + type.suffix,
            2.0 * kQueryHeads * seen * kWidth,
            4.0 * (kHeads * double(n) + kQueryHeads * double(w)) * kWidth,
            0,
            [type, w, n](const Engine& e) {
                const AttentionInput input{randomRows(e, type, 52, kQueryHeads, w),
                                           e.rows(uploadRows(e, bigKeys(type)), 0, n),
                                           TokenIndex(n - w),
                                           {},
                                           rule()};
                return [&e, input] { return Outcome{e.attentionColumnSums(input, {}).data}; };
            },
            {},
            0,
            gpuTarget,
            fastGpuTarget};
}

/// One causal head of 32,768 tokens on 1000 x 1000 pixels.
EngineCase mapCase(RowType type, const char* name, std::int64_t rowsPerPixel) {
    const double rows = rowsPerPixel == 0 ? double(kTokens) : 1000.0 * double(rowsPerPixel);
    return {std::string("attentionMap/speed-") + name + type.suffix,
            rows * kTokens * kWidth,
            8.0 * kTokens * kWidth,
            0,
            [type, rowsPerPixel](const Engine& e) {
                AttentionMapInput in;
                in.queries = randomRows(e, type, 53, 1, kTokens);
                in.keys = randomRows(e, type, 54, 1, kTokens, 0.1);
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
EngineCase leverageSpeedCase(RowType type, const char* name, std::int64_t k, LeverageRoute route,
                             double gpuTarget = 0) {
    constexpr double kRows = kHeads * 16384.0;
    return {std::string("leverage/speed-") + name + type.suffix,
            k > 0 ? kRows * 2 * kWidth * double(k) + 4 * kRows * double(k * k) : 4 * kRows * kWidth * kWidth,
            4 * kRows * kWidth,
            0,
            [type, k, route](const Engine& e) {
                LeverageRequest request;
                request.rows = e.rows(uploadRows(e, bigKeys(type)), 0, 16384);
                request.route = route;
                request.wantsSpectrum = false; // as policies ask for scores
                if (k > 0) request.sketch = {Shape{kHeads, kWidth, k}, randomBlock(55, kHeads, kWidth, k, 0.1).numbers};
                return [&e, request] { return Outcome{e.leverage(request, {}).scores.data}; };
            },
            {},
            0,
            gpuTarget,
            gpuTarget};
}

EngineCase chunksSpeedCase(RowType type) {
    return {std::string("attentionChunkSums/speed-256") + type.suffix,
            2.0 * kQueryHeads * 16384 * 256 * kWidth,
            4.0 * (kHeads + kQueryHeads) * 16384 * kWidth,
            0,
            [type](const Engine& e) {
                AttentionChunksInput in{randomRows(e, type, 56, kQueryHeads, 16384),
                                        e.rows(uploadRows(e, bigKeys(type)), 0, 16384), rule()};
                return [&e, in] { return Outcome{e.attentionChunkSums(in, {}).data}; };
            },
            {},
            0,
            3e-3,
            0.3e-3};
}

/// The workload with its rows in one type.
void addSpeedCases(std::vector<EngineCase>& cases, RowType type) {
    const double numbers = double(kHeads * kTokens * kWidth);
    cases.push_back({std::string("keydiff/speed-features") + type.suffix,
                     7 * numbers,
                     8 * numbers,
                     0,
                     [type](const Engine& e) {
                         return [&e, t = uploadRows(e, bigKeys(type))] {
                             const HostTensor anchor = e.anchor(t, AnchorKind::NormalisedMean, {});
                             return Outcome{e.similarity(t, anchor, SimilarityMetric::Cosine, {}).data};
                         };
                     },
                     {}});
    cases.push_back(leverageSpeedCase(type, "cholesky-64", 64, LeverageRoute::Cholesky, 0.4e-3));
    cases.push_back(leverageSpeedCase(type, "gram-64", 64, LeverageRoute::Gram));
    cases.push_back(leverageSpeedCase(type, "svd-64", 64, LeverageRoute::Svd, 3e-3));
    cases.push_back(leverageSpeedCase(type, "svd-exact", 0, LeverageRoute::Svd));
    cases.push_back(chunksSpeedCase(type));
    cases.push_back(columnsSpeedCase(type, "window-32", 32, kTokens));
    cases.push_back(columnsSpeedCase(type, "window-1", 1, kTokens));
    cases.push_back(columnsSpeedCase(type, "snapkv-16k", 32, 16384, 0.5e-3, 0.1e-3));
    cases.push_back(columnsSpeedCase(type, "h2o-16k", 16384, 16384));
    cases.push_back(mapCase(type, "map-exact", 0));
    cases.push_back(mapCase(type, "map-sampled", 1));
    cases.push_back({std::string("principalAxes/speed-one-head") + type.suffix,
                     2.0 * kTokens * kWidth * kWidth,
                     4.0 * kTokens * kWidth,
                     0,
                     [type](const Engine& e) {
                         return [&e, t = uploadRows(e, bigKeys(type))] {
                             return Outcome{e.principalAxes(t, 3, 5, {}).axes.data};
                         };
                     },
                     {}});
    cases.push_back({std::string("weightedAttention/speed-64-queries") + type.suffix,
                     4.0 * kQueryHeads * 64 * kTokens * kWidth,
                     8 * numbers,
                     0,
                     [type](const Engine& e) {
                         const WeightedAttentionInput input{randomRows(e, type, 54, kQueryHeads, 64),
                                                            uploadRows(e, bigKeys(type)),
                                                            uploadRows(e, bigKeys(type)),
                                                            TokenIndex(kTokens - 64),
                                                            TokenIndex(kTokens - 64),
                                                            rule(),
                                                            {}};
                         return [&e, input] { return Outcome{e.weightedAttention(input, {}).logDenominator.data}; };
                     },
                     {}});
}

} // namespace

std::vector<EngineCase> speedCases() {
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes) addSpeedCases(cases, type);
    return cases;
}

} // namespace kvscope::check
