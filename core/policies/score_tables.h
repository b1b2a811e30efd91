#pragma once

#include "core/engine/tensor.h"

#include <cstdint>

namespace kvscope {

class Engine;

/// [H, n] -> [H, rows], rows >= n: the new last columns hold `value`. With n = 0 give an empty tensor and the heads.
Tensor padColumns(const Engine& engine, const Tensor& scores, std::int64_t heads, std::int64_t rows, float value);

/// [1, n] -> [heads, n]: the same row for every head.
Tensor repeatHead(const Engine& engine, const Tensor& scores, std::int64_t heads);

} // namespace kvscope
