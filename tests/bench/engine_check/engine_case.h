#pragma once

#include "core/engine/engine.h"
#include "tests/support/naive/naive_engine.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kvscope::check {

/// What a case computed: all numbers in one list, kept rows included, and the smallest margin of its choices.
struct Outcome {
    std::vector<float> numbers;
    float margin = std::numeric_limits<float>::infinity();
};

/// One primitive with its parameters and inputs; runs on any engine, for test and for benchmark.
struct EngineCase {
    std::string name;        ///< primitive/what is special about it
    double operations = 0;   ///< additions and multiplications of the formula
    double bytes = 0;        ///< inputs and outputs once
    double allowedError = 0; ///< see errorOf
    /// Uploads the inputs and returns the work to be timed.
    std::function<std::function<Outcome()>(const Engine&)> prepare;
    /// The oracle; empty for the large cases, which are only timed.
    std::function<naive::Numbers()> naive;
    double fastError =
        0; ///< what fast arithmetic is held to where it computes another way; else 0, and allowedError counts
    /// Seconds that the whole call is to take on an H200 in exact and in fast arithmetic; 0: no target.
    double gpuTarget = 0, fastGpuTarget = 0;
};

/// Results are sums in double rounded to float once: half a unit in the last place, and a little for the double sums.
inline constexpr double kOneRounding = 0x1.0p-24 * 1.01;

/// Largest |got - expected| / (|expected| + 1e-6 max|expected|); infinity for NaN or another length. The second term
/// lets sums that cancel keep the error of their parts.
double errorOf(const std::vector<float>& got, const naive::Numbers& expected);

/// What float arithmetic makes of the shares or logits of these queries [Hq, w, d] and keys [Hkv, n, d], in the measure
/// of errorOf. A logit is a sum of products, off by about two units of the sum of their sizes; a share divides two
/// exponentials of such logits, which turns these into relative errors; e^x, the sum and the division add 8 units.
inline constexpr double kFastNearZero = 2e-3; ///< of logits and outputs: those near 0 keep the error of their parts
double fastAttentionError(const naive::Block& queries, const naive::Block& keys, const AttentionRule& rule);
/// The GPU's own float exponential is off by 2 + 1.2 |x| units in the last place, and a share counts while |x| < 14.
inline constexpr double kGpuExponential = 0x1.0p-24 * 40;
/// What the engine's arithmetic, exact or fast, is held to.
double allowedErrorOf(const EngineCase& c, const Engine& engine);

/// Seeded numbers, roughly normal around `shift` with this spread; the same on every machine.
naive::Block randomBlock(unsigned seed, std::int64_t heads, std::int64_t rows, std::int64_t width, double spread = 1,
                         double shift = 0);
/// What rows are stored in, and what the name of their case ends with. Every case has its rows in each: a device keeps
/// 16 bits as they are and has other code for them, and most captures hold bfloat16.
struct RowType {
    StoredType stored;
    const char* suffix;
};
inline constexpr RowType kRowTypes[] = {
    {StoredType::Float32, ""}, {StoredType::Bfloat16, "-bf16"}, {StoredType::Float16, "-f16"}};
/// The numbers as that type holds them.
naive::Block storedAs(StoredType type, naive::Block block);
/// The block as a tensor [heads, rows, width] of its stored type.
Tensor uploadRows(const Engine& engine, const naive::Block& block);
/// A block with one row per head as a table [heads, width].
HostTensor tableOf(const naive::Block& block);

std::vector<EngineCase> keyCases();       ///< norms, anchors, similarity, pairwise sums, principal axes
std::vector<EngineCase> attentionCases(); ///< column sums, weighted attention
std::vector<EngineCase> spectrumCases();  ///< singular values, operator norms of prefixes
std::vector<EngineCase> compactorCases(); ///< leverage, chunked attention
std::vector<EngineCase> mapCases();       ///< the attention map at screen resolution
std::vector<EngineCase> rowCases();       ///< gathered rows, projections, spectral distortion
std::vector<EngineCase> balancingCases(); ///< balancing walks
std::vector<EngineCase> clusterCases();   ///< farthest-first centres, one-pass clusters
std::vector<EngineCase> speedCases();     ///< the workload of the speed targets; no oracle
std::vector<EngineCase> allCases();

} // namespace kvscope::check
