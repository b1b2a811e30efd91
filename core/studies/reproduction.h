#pragma once

#include "core/studies/reproduction_data.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

const std::vector<Reproduction>& allReproductions();
/// Throws Error with the nearest name.
const Reproduction& reproductionById(std::string_view id);
/// `layers` empty: all layers of the captures. Throws Cancelled or Error, also for a reproduction that runs elsewhere
/// and for a capture without the queries that the paper's quantity needs.
ReproductionResult reproduce(const LayerRunner& runner, const Reproduction& reproduction,
                             const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                             const std::vector<int>& layers, const Checkpoint& checkpoint);

/// "# key: value" lines of notes, a header and a row per point: series, policy, measure, x, x_text, mean, deviation,
/// half_interval_95, samples, over, notes. Deviation and interval are over `samples` samples at the level `over`, and
/// empty if there is only one; notes are those of the runs.
std::string reproductionCsv(const Reproduction& reproduction, const ReproductionResult& result);

/// The text of reproductions.json, built into the program; id: "reproductions".
std::string_view reproductionText(std::string_view id);

} // namespace kvscope
