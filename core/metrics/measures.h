#pragma once

#include "core/base/checkpoint.h"
#include "core/metrics/measure_card.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

struct MeasureInput;
struct MeasureValues;

const std::vector<MeasureCard>& allMeasures();
/// Throws Error with the nearest name.
const MeasureCard& measureById(std::string_view id);

/// "Attention output error".
std::string headingOf(MeasureGroup group);

/// Measures by id, in that order. Throws Error for an unknown id or one whose need is not met.
std::vector<MeasureValues> measureLayer(const MeasureInput& input, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint);

} // namespace kvscope
