#pragma once

#include <cstdint>
#include <string>

namespace kvscope::cpu {

/// Kernels work on lanes: the queries (or rows) of one block, side by side in memory, padded to a multiple of 8.
/// A logit, a column of a Gram matrix or an output element is one lane with its own accumulator, so its value cannot
/// depend on how many lanes a register holds.
inline constexpr std::int64_t kLaneStep = 8;
inline constexpr std::int64_t kMaxLanes = 32;

/// out[k][lane] (+)= sum over c < depth of lanes[c][lane] * factors[k * factorStride + c * depthStride].
struct Product {
    const double* lanes; ///< [depth, laneStride]
    std::int64_t laneStride;
    std::int64_t laneCount; ///< multiple of 8
    const double* factors;
    std::int64_t factorCount, factorStride, depthStride;
    std::int64_t depth;
    double* out; ///< [factorCount, outStride]
    std::int64_t outStride;
    bool accumulate; ///< add to out instead of replacing it
};

/// x[k][lane] becomes e^min(500, logScale (x - rowTerm - laneTerm) - logShift) (valueScale v + valueConstant), where v
/// is products[k][lane] * rowWeight * laneWeight. Lanes as in Product.
struct BalancingKernel {
    double* x;              ///< [rows, lanes]: inner products of keys
    const double* products; ///< [rows, lanes]: inner products of values; null: 0
    std::int64_t rows, lanes;
    const double *rowTerms, *laneTerms;
    const double *rowWeights, *laneWeights;
    double logScale, logShift, valueScale, valueConstant;
};

/// 32 rows of a balancing walk, the lanes, against the rows before them and themselves, in float. `keys` and `values`
/// hold the lanes' rows, too, from row `before` on; they are padded with zeros to a multiple of kWalkRows rows.
struct WalkPanel {
    const float *keyLanes, *keys;     ///< [keyDepth, kMaxLanes], logScale included; [rows, keyDepth]
    const float *valueLanes, *values; ///< the same of values, valueScale included; valueDepth 0: none
    std::int64_t keyDepth, valueDepth;
    std::int64_t before, rows;
    const float* signs;           ///< [before]
    const float *sizes, *reaches; ///< [rows] weights of the two sums below
    float logShift, valueConstant;
    double *y, *sizeSums,
        *reachSums; ///< [kMaxLanes] sums over the rows before a lane: sign M, size e, reach e, where
                    ///< e = e^(<k, k'> - logShift), M = e (<v, v'> + valueConstant); y: only rows below `before`
    double* matrix; ///< [rows - before, kMaxLanes] M of the lanes themselves
};
inline constexpr std::int64_t kWalkRows = 8;

/// out[k][lane] = scaling times (start[lane] + the sum over c < depth of lanes[c][lane] * factors[k][c]), in float.
struct FloatProduct {
    const float* lanes; ///< [depth, laneStride]
    std::int64_t laneStride;
    std::int64_t laneCount; ///< multiple of kFloatLaneStep
    const float* factors;   ///< [factorCount, factorStride]
    std::int64_t factorCount, factorStride;
    std::int64_t depth;
    const float* start; ///< null: 0
    float scaling;
    float* out; ///< [factorCount, outStride]
    std::int64_t outStride;
};
inline constexpr std::int64_t kFloatLaneStep = 16;

/// Scaled and capped logits of up to 32 queries over some keys, in float.
struct FastLogits {
    const float* lanes; ///< [depth, kMaxLanes] queries side by side, padded with zeros
    const float* keys;  ///< [terms, depth]
    std::int64_t terms, depth;
    float scaling, softcap;
    float* logits; ///< [terms, kMaxLanes]
};

/// One pass of a Fourier transform of complex numbers side by side in kFourierLanes lanes: radix 2, 3 or 4. The parts
/// that are finished are `stride` long (Stockham).
struct FourierPass {
    const double *fromRe, *fromIm; ///< [length, kFourierLanes]
    double *toRe, *toIm;           ///< the same, elsewhere
    std::int64_t length, stride;
    int radix;
    const double *cosines, *sines; ///< [length] of -2 pi k / length
};
inline constexpr std::int64_t kFourierLanes = 8;

/// Points per step of the repulsion; arrays are padded to a multiple of it.
inline constexpr std::int64_t kRepulsionStep = 256;

/// The hot loops, compiled once per instruction set. Every build computes the same bits (see kernels/README.md).
struct Kernels {
    const char* name;

    // kernels/exact_products.cpp: the factors are floats, so a fused multiply-add equals a multiply and an add.
    /// dots[r] = row r . other and squares[r] = row r . row r of float rows [n, d]; either result may be null.
    void (*rowProducts)(const float* rows, std::int64_t n, std::int64_t d, const float* other, double* dots,
                        double* squares);
    /// to[i] = from[i], exactly.
    void (*widen)(const float* from, std::int64_t count, double* to);
    /// Both factors hold floats.
    void (*exactProduct)(const Product& product);

    // kernels/elementwise.cpp: contraction off.
    /// Any doubles.
    void (*product)(const Product& product);
    /// As product, with the square of the difference in place of the product.
    void (*squaredDifferences)(const Product& product);
    /// sum[c] += factor[r] * row r [c]; no factors: 1.
    void (*addRows)(const float* rows, std::int64_t n, std::int64_t d, const double* factors, double* sum);
    /// distances[r] = squared Euclidean distance of row r to other.
    void (*rowDistances)(const float* rows, std::int64_t n, std::int64_t d, const float* other, double* distances);
    /// x = softcap tanh(scaling x / softcap), or scaling x without a softcap.
    void (*shapeLogits)(double* x, std::int64_t count, double scaling, double softcap);
    /// rowMax[lane] = max over terms of x[term][lane].
    void (*updateRowMaxima)(const double* x, std::int64_t terms, std::int64_t lanes, double* rowMax);
    /// x = e^(x - rowMax[lane]); total[lane] += weights[term] x (no weights: 1).
    void (*exponentials)(double* x, std::int64_t terms, std::int64_t lanes, const double* rowMax, const double* weights,
                         double* total);
    /// x[term][lane] *= weights[term]; squares[lane] += the square of that.
    void (*weigh)(double* x, std::int64_t terms, std::int64_t lanes, const double* weights, double* squares);
    /// For attention weights p = x[term][lane] in [0, 1]: sums [5, lanes] += sign times p in two parts (multiples of
    /// 2^-44, the rest in multiples of 2^-76), p^2 likewise, and 1 where p >= 2^-49; additions are exact. x becomes
    /// sign p where p >= 2^-49, else 0.
    void (*addShares)(double* x, std::int64_t terms, std::int64_t lanes, double sign, double* sums);
    /// sum[term] += sum over lanes of x[term][lane] * factor[lane], lanes [begin, end).
    void (*addAcrossLanes)(const double* x, std::int64_t terms, std::int64_t lanes, const double* factor,
                           std::int64_t begin, std::int64_t end, double* sum);
    void (*balancingKernel)(const BalancingKernel& kernel);
    /// sum[lane] += factor[row] * x[row][lane], row after row.
    void (*addScaledRows)(const double* x, std::int64_t rows, std::int64_t lanes, const double* factor, double* sum);

    /// Point `row` against all `count` points (a multiple of kRepulsionStep), with w = 1 / (1 + squared distance):
    /// sums[0] += sum of w, sums[1] += sum of w^2 (x_row - x), sums[2] += sum of w^2 (y_row - y).
    /// Pairs are added in float, in 16 partial sums for every kRepulsionStep points; the sums of these steps are added
    /// in double.
    void (*repulsion)(const float* x, const float* y, std::int64_t count, std::int64_t row, double* sums);
    void (*fourierPass)(const FourierPass& pass);
    /// sums[0] and sums[1] += sum over `count` columns j of affinity w (x - x_j) and affinity w (y - y_j), w as above,
    /// for point `row` of points [n, 2]. In double, in 8 partial sums.
    void (*attraction)(const float* points, const std::int32_t* columns, const float* affinities, std::int64_t count,
                       std::int64_t row, double* sums);

    // kernels/fast_attention.cpp: float, outside the index contract. x is [terms, kMaxLanes], all lanes are computed.
    void (*fastLogits)(const FastLogits& logits);
    void (*fastProduct)(const FloatProduct& product);
    void (*fastUpdateRowMaxima)(const float* x, std::int64_t terms, float* rowMax);
    /// x = e^(x - rowMax[lane]), row maxima finite; total[lane] += x.
    void (*fastExponentials)(float* x, std::int64_t terms, const float* rowMax, double* total);
    /// sum[term] += sum over lanes of x[term][lane] * factor[lane].
    void (*fastAddAcrossLanes)(const float* x, std::int64_t terms, const float* factor, double* sum);

    // kernels/bounded_floats.cpp: float, for numbers whose error the caller bounds.
    void (*walkPanel)(const WalkPanel& panel);
    /// to[c] = factor (row[c] - centre[c]), rounded to float (no centre: 0).
    void (*shiftedRow)(const float* row, const double* centre, double factor, std::int64_t d, float* to);
    /// to[c][lane] = factor rows[lane][c] for 32 rows of d numbers.
    void (*interleave)(const float* rows, std::int64_t d, float factor, float* to);
    /// As rowDistances, with at most d / 4 + 24 roundings on the way to a distance, each 2^-24 of it.
    void (*floatDistances)(const float* rows, std::int64_t n, std::int64_t d, const float* other, float* distances);
};

/// "" picks the best of this processor; throws Error if the processor lacks "v2", "v3" or "v4" (x86-64 levels).
const Kernels& kernelsFor(const std::string& instructionSet);

} // namespace kvscope::cpu
