// Leverage scores of keys before RoPE, exact or after a random sketch: the keys are multiplied by a thin random matrix,
// which roughly preserves their geometry and shrinks the Gram matrix.
#include "core/policies/compactor/leverage_features.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

ParameterSpec sketchRow() {
    return choiceRow("sketch", "Sketch",
                     {{"gaussian", "Gaussian", "entries drawn from N(0, 1/k)"},
                      {"srht", "SRHT", "random signs, Walsh-Hadamard transform, k random columns: K D H R^T (C4)"},
                      {"none", "None", "exact leverage"}},
                     Stage::Features,
                     "The random matrix that the keys are multiplied by before leverage is computed. Below the rank of "
                     "the keys it compresses all scores: they add up to k, not to the rank (C7).",
                     "Compactor 3.2, Algorithm 1, Table 4; both codes: Gaussian", "Φ");
}

ParameterSpec sketchSizeRow() {
    return integerRow("sketch_size", "Sketch size", "k", "columns", {1, 256, 64}, Stage::Features,
                      "Columns of the sketch, at most the width of a key. The condition of Theorem 2 asks for "
                      "thousands and is not met by any of these (C5).",
                      "Compactor 4: 64; kvpress and compactor-vllm 48, its LongBench script 32");
}

ParameterSpec scopeRow() {
    return choiceRow("sketch_scope", "Sketch per",
                     {{"head", "KV head", "every head of every layer has a sketch of its own, as in kvpress"},
                      {"all", "Model", "one sketch for all heads and layers, as in compactor-vllm"}},
                     Stage::Features, "Whether heads share their sketch.",
                     "kvpress: one per head; compactor-vllm: one for all");
}

ParameterTable centringRows() {
    return {flagRow("centred", "Centre keys", false, Stage::Features,
                    "Takes the mean key away first. Not in the paper, but in both codes (C2); leverage of the keys "
                    "with a column of ones is the centred one plus 1/n.",
                    "kvpress: the whole sequence; compactor-vllm: every token chunk"),
            tokensRow("token_chunk", "Token chunk", "", {0, 1 << 20, 0}, Stage::Features,
                      "Leverage within chunks of this many tokens; 0: of all. Centred chunks of k + 1 tokens or fewer "
                      "are flat: every token has 1 − 1/L (C3).",
                      "Paper and kvpress: none; compactor-vllm 512, its RULER script 2048")};
}

ParameterSpec routeRow() {
    return choiceRow(
        "route", "Route",
        {{"gram", "Eigenvectors of KᵀK", "the paper's Algorithm 1 and compactor-vllm"},
         {"cholesky", "Cholesky", "KᵀK = L Lᵀ, l = ‖L⁻¹k‖², as kvpress; the fastest"},
         {"qr", "QR", "K = Q R, l = ‖R⁻ᵀk‖²: the condition number is not squared (C6)"},
         {"svd", "SVD", "K = U S Vᵀ through the triangular factor: the condition number is not squared (C6)"}},
        Stage::Features,
        "How the scores are computed. All four agree to rounding on well-conditioned keys; everything runs in double "
        "precision, where the codes use float or less (C6).",
        "Compactor Algorithm 1 and Table 3; kvpress: Cholesky; compactor-vllm: SVD of KᵀK");
}

ParameterTable regulariserRows() {
    return {choiceRow("regulariser", "Regulariser",
                      {{"none", "None", "directions that are rounding are dropped"},
                       {"ridge", "Ridge", "strength added to the diagonal of KᵀK"},
                       {"clamp", "Clamp", "eigenvalues of KᵀK raised to the strength"}},
                      Stage::Features,
                      "What keeps small directions from counting in full. A ridge is not free of scale: with a sketch "
                      "its entries must be N(0, 1/k). A clamp needs eigenvalues: routes gram and svd.",
                      "Paper: none or clamp 1e-6; kvpress: ridge 1e-2; compactor-vllm: ridge 5e-3"),
            realRow("regulariser_strength", "Strength", "λ", {0, 1, 1e-6, 0, true}, Stage::Features,
                    "Of the ridge or the clamp. 0 regularises nothing. The codes multiply theirs by ten when their "
                    "float decomposition fails; in double it does not fail.",
                    "Compactor: 1e-6; kvpress 1e-2; compactor-vllm 5e-3 (its comment says 1e-2)")};
}

/// Number of sketch columns for keys of this width.
std::int64_t sketchColumns(const ParameterValues& values, std::int64_t width) {
    return std::min(values.integer("sketch_size"), width);
}

std::vector<float> gaussianSketch(const PolicyInput& input, const RandomKey& key, std::int64_t d, std::int64_t k) {
    const std::vector<double> normal = input.random->sketch(key, d, k);
    std::vector<float> sketch;
    for (const double x : normal) sketch.push_back(static_cast<float>(x / std::sqrt(static_cast<double>(k))));
    return sketch;
}

/// D H R^T / sqrt(k): entry (i, j) is the sign of row i times the Walsh-Hadamard entry of row i and the j-th chosen
/// column. Keys whose width is no power of two are treated as padded with zeros.
std::vector<float> srhtSketch(const PolicyInput& input, RandomKey key, std::int64_t d, std::int64_t k) {
    const auto order = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(d)));
    const auto uniforms = [&](std::uint32_t round, std::int64_t count) {
        std::vector<double> drawn;
        key.round = round;
        for (std::int64_t i = 0; i < count; ++i) {
            key.token = static_cast<std::uint32_t>(i);
            drawn.push_back(input.random->uniform(key));
        }
        return drawn;
    };
    const std::vector<double> signs = uniforms(1, d), lots = uniforms(2, order);
    std::vector<std::size_t> columns(lots.size());
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    std::ranges::stable_sort(columns, [&](std::size_t a, std::size_t b) { return lots[a] < lots[b]; });
    const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(k)));
    std::vector<float> sketch;
    for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i)
        for (std::size_t j = 0; j < static_cast<std::size_t>(k); ++j) {
            const bool negative = (signs[i] < 0.5) != (std::popcount(i & columns[j]) % 2 == 1);
            sketch.push_back(negative ? -unit : unit);
        }
    return sketch;
}

HostTensor sketchOf(const PolicyInput& input, const ParameterValues& values) {
    const std::string& kind = values.choice("sketch");
    if (kind == "none") return {};
    const bool shared = values.choice("sketch_scope") == "all";
    const std::int64_t d = input.preRopeKeys.size(2), k = sketchColumns(values, d);
    HostTensor sketch{{shared ? 1 : input.preRopeKeys.size(0), d, k}, {}};
    for (std::int64_t head = 0; head < sketch.shape[0]; ++head) {
        RandomKey key = input.randomKey(head);
        if (shared) key.layer = 0;
        const std::vector<float> entries =
            kind == "srht" ? srhtSketch(input, key, d, k) : gaussianSketch(input, key, d, k);
        sketch.data.insert(sketch.data.end(), entries.begin(), entries.end());
    }
    return sketch;
}

LeverageRoute routeOf(const ParameterValues& values) {
    const std::string& id = values.choice("route");
    return id == "gram"       ? LeverageRoute::Gram
           : id == "cholesky" ? LeverageRoute::Cholesky
           : id == "qr"       ? LeverageRoute::Qr
                              : LeverageRoute::Svd;
}

Regulariser regulariserOf(const ParameterValues& values) {
    const std::string& id = values.choice("regulariser");
    if (id == "none" || values.real("regulariser_strength") <= 0) return Regulariser::None;
    return id == "ridge" ? Regulariser::Ridge : Regulariser::Clamp;
}

} // namespace

ParameterTable leverageParameters() {
    ParameterTable rows = {sketchRow(), sketchSizeRow(), scopeRow()};
    for (const ParameterTable& more : {centringRows(), ParameterTable{routeRow()}, regulariserRows()})
        rows.insert(rows.end(), more.begin(), more.end());
    return rows;
}

Leverage leverageOf(const PolicyInput& input, const ParameterValues& values, std::int64_t begin, std::int64_t end,
                    LeverageParts parts) {
    LeverageRequest request;
    request.wantsSpectrum = parts == LeverageParts::ScoresAndSpectrum;
    request.rows = input.engine.rows(input.preRopeKeys, begin, end);
    request.sketch = sketchOf(input, values);
    request.route = routeOf(values);
    request.centred = values.flag("centred");
    request.chunk = values.integer("token_chunk");
    request.regulariser = regulariserOf(values);
    request.strength = values.real("regulariser_strength");
    const bool hasEigenvalues = request.route == LeverageRoute::Gram || request.route == LeverageRoute::Svd;
    if (request.regulariser == Regulariser::Clamp && !hasEigenvalues)
        throw Error({"route " + values.choice("route") + " has no eigenvalues to clamp", "parameter regulariser",
                     "Choose route=gram or route=svd, or regulariser=ridge"});
    return input.engine.leverage(request, input.checkpoint);
}

bool isPlainLeverage(const ParameterValues& values) {
    const auto is = [&](const char* id, const char* text) { return !values.has(id) || values.text(id) == text; };
    return is("centred", "false") && is("token_chunk", "0") && regulariserOf(values) == Regulariser::None &&
           is("skip_first", "0") && is("skip_last", "0");
}

std::vector<std::string> leverageNotes(const PolicyInput& input, const ParameterValues& values) {
    const std::int64_t d = input.preRopeKeys.size(2), wanted = values.integer("sketch_size");
    if (values.choice("sketch") == "none" || wanted <= d) return {};
    return {"the sketch has " + std::to_string(d) + " of " + std::to_string(wanted) + " columns: a key has no more"};
}

} // namespace kvscope
