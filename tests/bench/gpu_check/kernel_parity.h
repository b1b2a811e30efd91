#pragma once

#include "core/engine/engine.h"

#include <string>
#include <vector>

namespace kvscope::check {

/// Kept lists (or walks, or orders of centres) of one kind that two engines were asked for.
struct ParityRow {
    std::string name;
    int lists = 0, differing = 0;
    double smallestMargin = 0; ///< of the decisions of the first engine
};

/// Lists of both engines on random heads of n tokens of each row type: 15 budgets per head and score.
std::vector<ParityRow> kernelParity(const Engine& first, const Engine& second, std::int64_t n);

} // namespace kvscope::check
