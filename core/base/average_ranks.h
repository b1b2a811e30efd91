#pragma once

#include <span>
#include <vector>

namespace kvscope {

/// Ranks from 1, ties get the mean of their ranks.
std::vector<double> averageRanks(std::span<const double> numbers);

} // namespace kvscope
