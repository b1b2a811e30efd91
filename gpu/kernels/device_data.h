#pragma once

#include <cstdint>

struct CUstream_st;

namespace kvscope::gpu {

/// A CUDA stream (cudaStream_t); null is the default stream. Every function of this folder only enqueues work on it.
using Stream = CUstream_st*;

enum class ElementType : std::int32_t { Float32, BFloat16, Float16 };

constexpr std::int64_t bytesOf(ElementType type) { return type == ElementType::Float32 ? 4 : 2; }

/// Exact: products and sums in double, the index contract, results rounded to float once.
/// Fast: float sums, products of 16-bit rows by tensor cores; outside the contract; float rows are multiplied exactly.
enum class KernelArithmetic : std::int32_t { Exact, Fast };

/// How the host stops launches that are long: it sets words[0]; kernels write the piece of work that they begin to
/// words[1]. The words lie in memory that host and device share; null: not stopped. A block that sees a stop tells the
/// others by `seen`, one word of the device, 0 at first.
struct StopWord {
    std::int32_t* words = nullptr;
    unsigned* seen = nullptr;
    std::int32_t piece = 0;
};

/// Rows of all heads in device memory: element [h, r, c] is data[h * headStride + r * width + c]. A stride larger than
/// rows * width is a slice along axis 1.
struct DeviceRows {
    const void* data = nullptr;
    ElementType type = ElementType::Float32;
    std::int64_t heads = 0, rows = 0, width = 0;
    std::int64_t headStride = 0; ///< in elements
};

/// [heads, rows, width] without gaps.
constexpr DeviceRows packedRows(const void* data, ElementType type, std::int64_t heads, std::int64_t rows,
                                std::int64_t width) {
    return {data, type, heads, rows, width, rows * width};
}

} // namespace kvscope::gpu
