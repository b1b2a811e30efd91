#pragma once

#include "core/metrics/statistics.h"

#include <array>
#include <optional>
#include <vector>

namespace kvscope {

/// What a table averages over, from the innermost level outwards.
enum class SampleLevel { Seeds, Heads, Layers, Captures };
constexpr std::size_t kSampleLevels = 4;
const char* levelName(SampleLevel level); ///< "seeds"

/// A measured number and where it comes from. Places that a table does not distinguish are 0.
struct Sample {
    std::array<std::int64_t, kSampleLevels> place{}; ///< by SampleLevel
    double value = 0;

    static Sample of(SampleLevel level, std::int64_t place, double value);
};

struct LevelledMean {
    Summary summary;                      ///< of the means at level `over`; its count is the number of these means
    std::optional<SampleLevel> over = {}; ///< level of the spread; none: there is one number, and no spread
};

/// Averages one level after the other, seeds first: every layer counts once whatever its number of seeds, every capture
/// once whatever its number of layers. The level `over` comes last, and the spread is over that level alone, never over
/// several levels pooled. Without `over`: the outermost level at which the samples differ. NaN are left out.
LevelledMean meanByLevels(std::vector<Sample> samples, std::optional<SampleLevel> over = {});

} // namespace kvscope
