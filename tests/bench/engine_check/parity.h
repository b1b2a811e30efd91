#pragma once

#include "core/engine/engine.h"

#include <cstdint>
#include <vector>

namespace kvscope::check {

/// Scores and orders as policies make them, on random heads (8 KV heads, 32 query heads, d = 128), on both engines;
/// prints for each the lists that differ and the smallest margin. Returns the number of differing lists.
int compareLists(const Engine& reference, const Engine& engine, const std::vector<std::int64_t>& rows);

} // namespace kvscope::check
