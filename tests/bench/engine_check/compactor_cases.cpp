// Cases of what Compactor is made of: leverage by every route, with sketches, chunks and regularisers, on keys that are
// well-conditioned, rank-deficient, equal or zero; attention inside chunks with short last ones.
#include "tests/bench/engine_check/engine_case.h"

#include <algorithm>

namespace kvscope::check {

namespace {

// The rounding of double sums is magnified by the condition number, squared where K^T K is formed.
constexpr double kLeverageError = 2e-6;

EngineCase leverageCase(const std::string& name, const naive::LeverageCase& in, LeverageRoute route) {
    const char* routes[] = {"svd-", "qr-", "gram-", "cholesky-"};
    const double n = double(in.rows.rows * in.rows.heads), d = double(in.rows.width);
    const double k = in.sketch.numbers.empty() ? d : double(in.sketch.width);
    return {std::string("leverage/") + routes[int(route)] + name,
            n * (in.sketch.numbers.empty() ? 0 : 2 * d * k) + 4 * n * k * k,
            4 * n * d,
            kLeverageError,
            [=](const Engine& e) {
                LeverageRequest request{uploadRows(e, in.rows), {},         route, in.centred, in.chunk,
                                        in.regulariser,         in.strength};
                if (!in.sketch.numbers.empty())
                    request.sketch = {Shape{in.sketch.heads, in.sketch.rows, in.sketch.width}, in.sketch.numbers};
                return [&e, request] { return Outcome{e.leverage(request, {}).scores.data}; };
            },
            [=] { return naive::leverage(in); }};
}

void addRoutes(std::vector<EngineCase>& cases, const std::string& name, const naive::LeverageCase& floats) {
    for (const auto& [stored, suffix] : kRowTypes) {
        naive::LeverageCase in = floats;
        in.rows = storedAs(stored, in.rows);
        for (const LeverageRoute route :
             {LeverageRoute::Svd, LeverageRoute::Qr, LeverageRoute::Gram, LeverageRoute::Cholesky})
            if (in.regulariser != Regulariser::Clamp || route == LeverageRoute::Svd || route == LeverageRoute::Gram)
                cases.push_back(leverageCase(name + suffix, in, route));
    }
}

naive::Block deficient(std::int64_t n, std::int64_t d) {
    naive::Block rows = randomBlock(81, 2, n, d, 1, 0.5);
    for (std::size_t r = 0; r < rows.numbers.size(); r += std::size_t(d)) {
        rows.numbers[r + 1] = 2 * rows.numbers[r]; // two columns that say the same, one that says nothing
        rows.numbers[r + 3] = 0;
    }
    return rows;
}

/// Heads that a batch solves together though they differ: full rank, dependent columns, nothing at all, full rank
/// again.
naive::Block mixedHeads(std::int64_t n, std::int64_t d) {
    naive::Block rows = randomBlock(93, 4, n, d, 1, 0.5);
    const auto head = static_cast<std::ptrdiff_t>(n * d);
    const naive::Block weak = deficient(n, d);
    std::copy_n(weak.numbers.begin(), head, rows.numbers.begin() + head);
    std::fill_n(rows.numbers.begin() + 2 * head, head, 0.0F);
    return rows;
}

/// Columns that nearly say the same: the condition number is about 1e6, too large for the Gram matrix's leverage.
naive::Block illConditioned(std::int64_t n, std::int64_t d) {
    naive::Block rows = randomBlock(96, 2, n, d, 1, 2);
    for (std::size_t r = 0; r < rows.numbers.size(); r += std::size_t(d))
        for (std::size_t c = 1; c < std::size_t(d); ++c)
            rows.numbers[r + c] = rows.numbers[r] + 1e-5F * rows.numbers[r + c];
    return rows;
}

EngineCase chunksCaseOf(const std::string& name, const naive::ChunksCase& in) {
    const std::int64_t n = in.keys.rows, chunk = in.chunk, zeroKeys = in.zeroKeys, uniformRows = in.uniformRows;
    return {"attentionChunkSums/" + name,
            2.0 * 6 * double(n) * double(std::min(n, chunk)) * 20,
            4.0 * 8 * double(n) * 20,
            kOneRounding,
            [=](const Engine& e) {
                return [=, &e, q = uploadRows(e, in.queries), k = uploadRows(e, in.keys)] {
                    return Outcome{e.attentionChunkSums({q, k, in.rule, chunk, zeroKeys, uniformRows}, {}).data};
                };
            },
            [in] { return naive::attentionChunkSums(in); },
            fastAttentionError(in.queries, in.keys, in.rule)};
}

void addChunksCase(std::vector<EngineCase>& cases, const std::string& name, std::int64_t n, std::int64_t chunk,
                   std::int64_t zeroKeys, std::int64_t uniformRows, double softcap, double scaling,
                   std::int64_t window = 0, const std::vector<float>& sinks = {}) {
    for (const auto& [stored, suffix] : kRowTypes)
        cases.push_back(chunksCaseOf(name + suffix, {storedAs(stored, randomBlock(82, 6, n, 20)),
                                                     storedAs(stored, randomBlock(83, 2, n, 20, 1, 0.3)),
                                                     AttentionRule{scaling, softcap, window, {0, 1, 1, 0, 1, 0}, sinks},
                                                     chunk, zeroKeys, uniformRows}));
}

} // namespace

std::vector<EngineCase> compactorCases() {
    std::vector<EngineCase> cases;
    const naive::Block keys = randomBlock(84, 2, 300, 24, 1, 0.5);
    addRoutes(cases, "plain", {keys});
    addRoutes(cases, "centred", {.rows = keys, .centred = true});
    addRoutes(cases, "sketched", {keys, randomBlock(85, 2, 24, 9, 0.3)});
    addRoutes(cases, "sketched-centred", {keys, randomBlock(85, 2, 24, 9, 0.3), true});
    addRoutes(cases, "sketched-wide", {randomBlock(97, 2, 140, 299, 1, 0.5), randomBlock(98, 1, 299, 64, 0.1), true});
    addRoutes(cases, "sketched-rank-deficient", {deficient(150, 20), randomBlock(99, 2, 20, 20, 0.3)});
    addRoutes(cases, "one-sketch-centred-chunks", {keys, randomBlock(86, 1, 24, 10, 0.3), true, 64});
    addRoutes(cases, "short-tail", {.rows = keys, .centred = true, .chunk = 299});
    addRoutes(cases, "ridge", {.rows = keys, .centred = true, .regulariser = Regulariser::Ridge, .strength = 5});
    addRoutes(cases, "clamp", {.rows = keys, .regulariser = Regulariser::Clamp, .strength = 250});
    addRoutes(cases, "rank-deficient", {deficient(90, 11)});
    addRoutes(cases, "fewer-rows-than-columns", {randomBlock(87, 3, 5, 16)});
    addRoutes(cases, "one-row", {randomBlock(88, 2, 1, 6)});
    addRoutes(cases, "several-parts", {.rows = randomBlock(89, 1, 5003, 12, 1, 2), .centred = true});
    addRoutes(cases, "sketched-parts-of-heads", {randomBlock(94, 3, 2100, 12, 1, 1), randomBlock(95, 3, 12, 7, 0.4)});
    for (const auto& [stored, suffix] : kRowTypes)
        for (const LeverageRoute route : {LeverageRoute::Svd, LeverageRoute::Qr})
            cases.push_back(leverageCase(std::string("ill-conditioned") + suffix,
                                         {.rows = storedAs(stored, illConditioned(2600, 12))}, route));
    addRoutes(cases, "mixed-heads", {mixedHeads(130, 9)});
    addRoutes(cases, "mixed-heads-centred-chunks", {.rows = mixedHeads(130, 9), .centred = true, .chunk = 40});
    addRoutes(cases, "zero-keys", {naive::Block{2, 40, 8, std::vector<float>(640, 0.0F)}});
    addRoutes(cases, "sketched-equal-keys-centred",
              {.rows = naive::Block{1, 40, 8, std::vector<float>(320, 0.7F)},
               .sketch = randomBlock(90, 1, 8, 5),
               .centred = true});
    addChunksCase(cases, "plain", 96, 32, 0, 0, 0, 1);
    addChunksCase(cases, "short-last", 101, 32, 0, 0, 0, 0.3);
    addChunksCase(cases, "zero-keys", 101, 32, 27, 27, 0, 0.3);
    addChunksCase(cases, "uniform-rows", 101, 32, 0, 27, 2.5, 0.3);
    addChunksCase(cases, "one-chunk", 77, 300, 0, 0, 0, 1);
    addChunksCase(cases, "chunk-of-one", 9, 1, 0, 0, 0, 1);
    addChunksCase(cases, "sinks", 101, 32, 27, 27, 2.5, 0.3, 9, {0, 3, -2, 20, -50, 1});
    addChunksCase(cases, "one-row", 1, 256, 255, 255, 0, 1);
    addChunksCase(cases, "sliding", 150, 64, 0, 0, 0, 0.3, 20);
    addChunksCase(cases, "sliding-one", 70, 32, 0, 0, 0, 1, 1);
    addChunksCase(cases, "sliding-as-long-as-a-chunk", 70, 32, 0, 0, 0, 1, 32);
    addChunksCase(cases, "sliding-zero-keys", 101, 40, 19, 19, 2.5, 0.3, 7);
    return cases;
}

} // namespace kvscope::check
