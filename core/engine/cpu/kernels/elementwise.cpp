// Kernels with inexact products: contraction stays off, so multiplication and addition round separately in every build.
// Lanes never mix, so registers of any width give the same numbers.
#include "core/engine/cpu/kernels/lanes.h"

#include "core/base/portable_math.h"

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

constexpr double kMinusInfinity = -__builtin_inf();

// Without fused operations every product needs a register of its own, so tiles are smaller. With 512-bit registers four
// sums are enough: larger tiles ran at 0.7 of the rate.
constexpr int kTileVectors = kLanes == 8 ? 1 : 2, kTileFactors = 4;

void product(const Product& p) { blockProduct<Multiply, kTileVectors, kTileFactors>(p); }

void squaredDifferences(const Product& p) { blockProduct<SquareDifference, kTileVectors, kTileFactors>(p); }

void addRows(const float* rows, I n, I d, const double* factors, double* __restrict sum) {
    for (I r = 0; r < n; ++r) {
        const float* row = rows + r * d;
        if (factors) {
            const double factor = factors[r];
            for (I c = 0; c < d; ++c) sum[c] += factor * double(row[c]);
        } else {
            for (I c = 0; c < d; ++c) sum[c] += double(row[c]);
        }
    }
}

void rowDistances(const float* rows, I n, I d, const float* other, double* distances) {
    for (I r = 0; r < n; ++r) {
        const float* row = rows + r * d;
        double part[8] = {}; // eight partial sums in every build
        I c = 0;
        for (; c + 8 <= d; c += 8)
            for (int l = 0; l < 8; ++l) {
                const double difference = double(row[c + l]) - double(other[c + l]);
                part[l] += difference * difference;
            }
        for (int l = 0; c < d; ++c, ++l) {
            const double difference = double(row[c]) - double(other[c]);
            part[l] += difference * difference;
        }
        distances[r] = ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
    }
}

void shapeLogits(double* x, I count, double scaling, double softcap) {
    // Whole lanes: count is a multiple of 8.
    for (I i = 0; i < count; i += kLanes) {
        const Vector scaled = load(x + i) * scaling;
        store(x + i, softcap > 0 ? softcap * portableTanhOf<Vector, VectorBits>(scaled / softcap) : scaled);
    }
}

void updateRowMaxima(const double* x, I terms, I lanes, double* __restrict rowMax) {
    for (I t = 0; t < terms; ++t)
        for (I l = 0; l < lanes; l += kLanes) {
            const Vector value = load(x + t * lanes + l), old = load(rowMax + l);
            store(rowMax + l, value > old ? value : old);
        }
}

/// NV vectors of lanes in NT terms, independent, so that their long chains of operations overlap (the build asks the
/// compiler to interleave them).
template <int NT, int NV>
[[gnu::always_inline]] inline void exponentialsOfStep(double* x, I lanes, const double* shift, const double* weights,
                                                      double* total) {
    Vector e[NT][NV];
#pragma GCC unroll 8
    for (int t = 0; t < NT; ++t)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v)
            e[t][v] = portableExpOf<Vector, VectorBits>(load(x + t * lanes + v * kLanes) - load(shift + v * kLanes));
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
        Vector sum = load(total + v * kLanes);
#pragma GCC unroll 8
        for (int t = 0; t < NT; ++t) {
            store(x + t * lanes + v * kLanes, e[t][v]);
            sum += (weights ? weights[t] : 1.0) * e[t][v];
        }
        store(total + v * kLanes, sum);
    }
}

template <int NT>
[[gnu::always_inline]] inline void exponentialsOfTerms(double* x, I lanes, const double* shift, const double* weights,
                                                       double* total) {
    constexpr int kAtOnce = 4;
    I l = 0;
    for (; l + kAtOnce * kLanes <= lanes; l += kAtOnce * kLanes)
        exponentialsOfStep<NT, kAtOnce>(x + l, lanes, shift + l, weights, total + l);
    for (; l < lanes; l += kLaneStep)
        exponentialsOfStep<NT, kLaneStep / kLanes>(x + l, lanes, shift + l, weights, total + l);
}

void exponentials(double* __restrict x, I terms, I lanes, const double* __restrict rowMax,
                  const double* __restrict weights, double* __restrict total) {
    // Where a lane sees no key rowMax is -infinity: subtracting 0 instead gives e^x = 0 and not NaN.
    double shift[kMaxLanes];
    for (I l = 0; l < lanes; ++l) shift[l] = rowMax[l] == kMinusInfinity ? 0 : rowMax[l];
    constexpr int kTerms = kLanes == 8 ? 2 : 1; // with 32 registers, twice as many chains at once
    I t = 0;
    for (; t + kTerms <= terms; t += kTerms)
        exponentialsOfTerms<kTerms>(x + t * lanes, lanes, shift, weights ? weights + t : nullptr, total);
    for (; t < terms; ++t) exponentialsOfTerms<1>(x + t * lanes, lanes, shift, weights ? weights + t : nullptr, total);
}

void weigh(double* x, I terms, I lanes, const double* weights, double* squares) {
    for (I t = 0; t < terms; ++t)
        for (I l = 0; l < lanes; l += kLanes) {
            const Vector value = load(x + t * lanes + l) * weights[t];
            store(x + t * lanes + l, value);
            store(squares + l, load(squares + l) + value * value);
        }
}

/// Adds sign times the value to two sums, exactly: no part has bits below the quantum of its sum.
[[gnu::always_inline]] inline void addInParts(Vector value, double sign, Vector* parts) {
    constexpr double kCoarse = 0x1.8p8, kFine = 0x1.8p-24; // quanta 2^-44 and 2^-76
    const Vector high = (value + kCoarse) - kCoarse, low = ((value - high) + kFine) - kFine;
    parts[0] += sign * high;
    parts[1] += sign * low;
}

void addShares(double* x, I terms, I lanes, double sign, double* sums) {
    constexpr double kSmallest = 0x1p-49;
    const Vector zero{}, one = zero + sign;
    for (I l = 0; l < lanes; l += kLanes) {
        Vector parts[5];
        for (int i = 0; i < 5; ++i) parts[i] = load(sums + i * lanes + l);
        for (I t = 0; t < terms; ++t) {
            const Vector share = load(x + t * lanes + l);
            addInParts(share, sign, parts);
            addInParts(share * share, sign, parts + 2);
            parts[4] += share < kSmallest ? zero : one;
            store(x + t * lanes + l, share < kSmallest ? zero : sign * share);
        }
        for (int i = 0; i < 5; ++i) store(sums + i * lanes + l, parts[i]);
    }
}

void addAcrossLanes(const double* x, I terms, I lanes, const double* factor, I begin, I end, double* sum) {
    for (I t = 0; t < terms; ++t) {
        const double* row = x + t * lanes;
        double part[8] = {};
        I l = begin;
        for (; l + 8 <= end; l += 8)
            for (int i = 0; i < 8; ++i) part[i] += row[l + i] * factor[l + i];
        for (int i = 0; l < end; ++l, ++i) part[i] += row[l] * factor[l];
        sum[t] += ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
    }
}

void balancingKernel(const BalancingKernel& p) {
    constexpr double kLargest = 500; // e^500 stays finite times products of any floats
    for (I r = 0; r < p.rows; ++r) {
        double* row = p.x + r * p.lanes;
        for (I l = 0; l < p.lanes; l += kLanes) {
            const Vector zero{}, largest = zero + kLargest;
            Vector exponent = p.logScale * (load(row + l) - p.rowTerms[r] - load(p.laneTerms + l)) - p.logShift;
            exponent = exponent > largest ? largest : exponent;
            const Vector product =
                p.products ? load(p.products + r * p.lanes + l) * p.rowWeights[r] * load(p.laneWeights + l) : zero;
            store(row + l, portableExpOf<Vector, VectorBits>(exponent) * (p.valueScale * product + p.valueConstant));
        }
    }
}

void addScaledRows(const double* x, I rows, I lanes, const double* factor, double* __restrict sum) {
    for (I r = 0; r < rows; ++r)
        for (I l = 0; l < lanes; l += kLanes) store(sum + l, load(sum + l) + factor[r] * load(x + r * lanes + l));
}

constexpr int kPartials = 16, kParts = kPartials / kFloats;

/// Adds the 16 partial sums in a fixed tree.
[[gnu::always_inline]] inline double sumOfParts(const Floats* parts) {
    float lanes[kPartials];
    for (int p = 0; p < kParts; ++p) storeFloats(lanes + p * kFloats, parts[p]);
    for (int half = kPartials / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return double(lanes[0]);
}

[[gnu::always_inline]] inline double sumOfPulls(const Vector* parts) {
    double lanes[8];
    for (int v = 0; v < 8 / kLanes; ++v) store(lanes + v * kLanes, parts[v]);
    for (int half = 4; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}

void repulsion(const float* x, const float* y, I count, I row, double* sums) {
    const Floats zero{}, ownX = zero + x[row], ownY = zero + y[row];
    for (I step = 0; step < count; step += kRepulsionStep) {
        Floats weights[kParts] = {}, alongX[kParts] = {}, alongY[kParts] = {};
        for (I j = step; j < step + kRepulsionStep; j += kPartials)
#pragma GCC unroll 4
            for (int p = 0; p < kParts; ++p) {
                const Floats dx = ownX - loadFloats(x + j + p * kFloats);
                const Floats dy = ownY - loadFloats(y + j + p * kFloats);
                const Floats weight = 1.0F / (1.0F + (dx * dx + dy * dy)), square = weight * weight;
                weights[p] += weight;
                alongX[p] += square * dx;
                alongY[p] += square * dy;
            }
        sums[0] += sumOfParts(weights);
        sums[1] += sumOfParts(alongX);
        sums[2] += sumOfParts(alongY);
    }
}

constexpr int kPulls = 8, kPullVectors = kPulls / kLanes;

/// Loads both coordinates of kLanes points, each pair by one load.
[[gnu::always_inline]] inline Floats gathered(const float* points, const std::int32_t* columns) {
    typedef double LooseDouble __attribute__((aligned(4), may_alias));
    Vector pairs{};
#pragma GCC unroll 8
    for (int l = 0; l < kLanes; ++l) pairs[l] = *reinterpret_cast<const LooseDouble*>(points + 2 * I{columns[l]});
    return __builtin_bit_cast(Floats, pairs);
}

template <int kFirst> [[gnu::always_inline]] inline Vector everyOther(Floats x) {
    HalfFloats some{};
#pragma GCC unroll 8
    for (int l = 0; l < kLanes; ++l) some[l] = x[2 * l + kFirst];
    return __builtin_convertvector(some, Vector);
}

void attraction(const float* points, const std::int32_t* columns, const float* affinities, I count, I row,
                double* sums) {
    const double x = points[2 * row], y = points[2 * row + 1];
    Vector alongX[kPullVectors] = {}, alongY[kPullVectors] = {};
    const auto add = [&](const std::int32_t* column, const float* affinity) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int v = 0; v < kPullVectors; ++v) {
            const Floats others = gathered(points, column + v * kLanes);
            const Vector dx = x - everyOther<0>(others), dy = y - everyOther<1>(others);
            const auto narrow = *reinterpret_cast<const LooseHalfFloats*>(affinity + v * kLanes);
            const Vector pull = __builtin_convertvector(narrow, Vector) / (1.0 + (dx * dx + dy * dy));
            alongX[v] += pull * dx;
            alongY[v] += pull * dy;
        }
    };
    I j = 0;
    for (; j + kPulls <= count; j += kPulls) add(columns + j, affinities + j);
    if (j < count) {
        std::int32_t column[kPulls] = {};
        float affinity[kPulls] = {};
        for (I i = j; i < count; ++i) {
            column[i - j] = columns[i];
            affinity[i - j] = affinities[i];
        }
        add(column, affinity);
    }
    sums[0] += sumOfPulls(alongX);
    sums[1] += sumOfPulls(alongY);
}

struct Complex {
    Vector re, im;
};

[[gnu::always_inline]] inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
[[gnu::always_inline]] inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
/// i x
[[gnu::always_inline]] inline Complex timesI(Complex x) { return {-x.im, x.re}; }

[[gnu::always_inline]] inline void transformParts(Complex (&x)[2]) {
    const Complex a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
}

[[gnu::always_inline]] inline void transformParts(Complex (&x)[3]) {
    constexpr double kSine = 0x1.bb67ae8584caap-1; // of 60 degrees
    const Complex sum = x[1] + x[2], difference = x[1] - x[2];
    const Complex middle = {x[0].re - 0.5 * sum.re, x[0].im - 0.5 * sum.im};
    const Complex across = timesI({kSine * difference.re, kSine * difference.im});
    x[0] = x[0] + sum;
    x[1] = middle - across;
    x[2] = middle + across;
}

[[gnu::always_inline]] inline void transformParts(Complex (&x)[4]) {
    const Complex even = x[0] + x[2], odd = x[1] + x[3], a = x[0] - x[2], b = timesI(x[1] - x[3]);
    x[0] = even + odd;
    x[1] = a - b;
    x[2] = even - odd;
    x[3] = a + b;
}

template <int kRadix> void passOf(const FourierPass& p) {
    const I parts = p.length / p.stride / kRadix, apart = parts * p.stride * kFourierLanes;
    for (I part = 0; part < parts; ++part) {
        double cosine[kRadix], sine[kRadix];
        for (int r = 1; r < kRadix; ++r) {
            cosine[r] = p.cosines[r * part * p.stride];
            sine[r] = p.sines[r * part * p.stride];
        }
        const I from = part * p.stride * kFourierLanes, to = from * kRadix;
        for (I l = 0; l < p.stride * kFourierLanes; l += kLanes) {
            Complex x[kRadix];
            for (int r = 0; r < kRadix; ++r)
                x[r] = {load(p.fromRe + from + r * apart + l), load(p.fromIm + from + r * apart + l)};
            transformParts(x);
            for (int r = 0; r < kRadix; ++r) {
                const I at = to + r * p.stride * kFourierLanes + l;
                store(p.toRe + at, r == 0 ? x[r].re : x[r].re * cosine[r] - x[r].im * sine[r]);
                store(p.toIm + at, r == 0 ? x[r].im : x[r].re * sine[r] + x[r].im * cosine[r]);
            }
        }
    }
}

void fourierPass(const FourierPass& p) {
    if (p.radix == 4) return passOf<4>(p);
    if (p.radix == 3) return passOf<3>(p);
    passOf<2>(p);
}

} // namespace

#define KVSCOPE_TEXT_OF(x) #x
#define KVSCOPE_NAME(x) KVSCOPE_TEXT_OF(x)

extern const Kernels kKernels;
const Kernels kKernels = {KVSCOPE_NAME(KVSCOPE_LEVEL),
                          rowProducts,
                          widenFloats,
                          exactProduct,
                          product,
                          squaredDifferences,
                          addRows,
                          rowDistances,
                          shapeLogits,
                          updateRowMaxima,
                          exponentials,
                          weigh,
                          addShares,
                          addAcrossLanes,
                          balancingKernel,
                          addScaledRows,
                          repulsion,
                          fourierPass,
                          attraction,
                          fastLogits,
                          fastProduct,
                          fastUpdateRowMaxima,
                          fastExponentials,
                          fastAddAcrossLanes,
                          walkPanel,
                          shiftedRow,
                          interleave,
                          floatDistances};

} // namespace kvscope::cpu::KVSCOPE_LEVEL
