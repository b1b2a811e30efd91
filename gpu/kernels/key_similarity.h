#pragma once

#include "gpu/kernels/device_data.h"

#include <cstddef>

// Key norms, the anchor of a head and every key's similarity to it (KeyDiff Eq. 8, Table 15; key norm policy). All are
// bound by reading the keys: norms read them once, anchor and similarity once each. Sums run in double, in an order of
// their own that depends on nothing but the shape, and are rounded to float once. All pointers are device memory.
namespace kvscope::gpu {

enum class Metric : std::int32_t { Cosine, Dot, Euclidean };

/// norms [H, n]: Euclidean norms of rows [H, n, d].
void rowNorms(const DeviceRows& rows, float* norms, Stream stream);

/// Bytes of scratch that meanAnchor needs.
std::size_t anchorScratchBytes(const DeviceRows& rows);
/// anchor [H, d]: mean of the rows, or of the rows divided by their norms (zero rows count as zero). n >= 1.
void meanAnchor(const DeviceRows& rows, bool normalised, void* scratch, float* anchor, Stream stream);

/// similarities [H, n] of rows [H, n, d] to anchors [H, d]: cosine (0 for a zero vector), dot product or distance.
void similarity(const DeviceRows& rows, const float* anchors, Metric metric, float* similarities, Stream stream);

} // namespace kvscope::gpu
