#pragma once

#include "core/studies/reproduction_data.h"

#include <string>

namespace kvscope {

struct ParameterSpec;

/// Of a measure of core/metrics, and of those that only reproductions have. "policy_ms": features + combine + select.
/// "spectral_drawn", "spectral_top": the distortion of Compactor's Theorem 1 over drawn leverage, of the rows drawn and
/// of as many best ones (per KV head), at the share of rows drawn. "overlap": Jaccard of the kept list with that of the
/// reference, everything else the same. "kept_share": min(1, N / L). "prompts": how many. Throws Error for an unknown
/// id.
std::string reproductionMeasureLabel(const std::string& measure);

/// The parameter along the axis or over the series, as its policies hold it; null where none varies.
const ParameterSpec* variedSpec(const Reproduction& reproduction);
/// The label of a choice, any other text as it is.
std::string choiceLabel(const ParameterSpec& spec, const std::string& text);

} // namespace kvscope
