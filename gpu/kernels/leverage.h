#pragma once

#include "gpu/kernels/device_data.h"

// Leverage of sketched rows, x = row times sketch, which are never written to memory: they are multiplied again in each
// pass over the rows, on FP64 tensor cores. The small problem between the passes is the host's
// (core/engine/whitening.h). Sums run in double, in an order that depends on nothing but the shape. All pointers are
// device memory.
namespace kvscope::gpu {

inline constexpr std::int64_t kMostSketchColumns = 64;

struct LeverageCall {
    DeviceRows rows;
    const float* sketch = nullptr;      ///< [H, d, k], or [1, d, k] for all heads
    std::int64_t sketches = 0;          ///< H or 1
    std::int64_t columns = 0;           ///< k <= kMostSketchColumns
    double* means = nullptr;            ///< [H, k] of the sketched rows, which are then centred; null: they are not
    double* grams = nullptr;            ///< [H, k, k]
    const double* directions = nullptr; ///< [H, k, k] W
    float* scores = nullptr;            ///< [H, n]: squared lengths of the sketched, centred rows times W
    double* scratch = nullptr;          ///< leverageScratch() numbers
    StopWord stop;
};

std::int64_t leverageScratch(const LeverageCall& call);

/// Number of blocks of the rows of all heads, whose sums are added in order.
std::int64_t leverageBlocks(const DeviceRows& rows);

/// One pass each, over the blocks [begin, end); its result is complete after the last block.
void sketchedMeans(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream);
void sketchedGrams(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream);
void leverageScores(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream);

} // namespace kvscope::gpu
