#pragma once

#include "core/capture/capture.h"
#include "core/lists/recorded_list.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

inline constexpr std::string_view kSelectionFormat = "kvscope-selection";
inline constexpr int kSelectionVersion = 1;

/// A metadata field that CSV and HDF5 hold under the same key; parameters follow as "parameter.<id>".
struct SelectionField {
    std::string key, value;
};
std::vector<SelectionField> selectionFields(const RecordedSelection& selection);
/// Unknown keys are left alone. Throws Error for a malformed number and for another format or version.
void setSelectionField(RecordedSelection& selection, const SelectionField& field, const std::string& path);

/// Shortest text that reads back as the same number; "" for NaN, "inf" for infinity.
std::string shortest(double value);
std::string shortest(float value);
/// Throws Error naming `place`.
double readNumber(std::string_view text, const std::string& place, const std::string& path);
std::int64_t readWhole(std::string_view text, const std::string& place, const std::string& path);

/// Sorts the heads, drops weights that are all 1, completes ranks, and throws Error for two lists of one head, indices
/// that are negative, repeated or not ascending, for weights or scores of the wrong number or below 0, and for sets of
/// query heads that are not what their KV head keeps or stand beside weights.
void tidyHeads(RecordedSelection& selection, const std::string& path);
/// Ranks of the kept tokens among all that have a score: order (score descending, index ascending).
std::vector<std::int64_t> ranksOf(const std::vector<TokenIndex>& kept, const std::vector<float>& scores);

std::string selectionJson(const RecordedSelection& selection);
RecordedSelection parseSelectionJson(const std::string& text, const std::string& path);
std::string selectionCsv(const RecordedSelection& selection, const TokenTable& tokens);
RecordedSelection parseSelectionCsv(const std::string& text, const std::string& path);
/// Attributes of the root: the fields, parameters as one JSON text. /heads/{layer, kv_head, margin} [H],
/// /heads/{stored_keys, stored_values} [H] where any head states them (-1: not this one), /heads/offsets [H + 1] into
/// /kept/{position, token_id, and where there are any: rank, weight, denominator_weight}; /scores [H, n] (NaN: none).
/// Where query heads have sets of their own: /query_heads/{head (a row of /heads), query_head, margin} [S],
/// /query_heads/offsets [S + 1] into /query_heads/{position, and where there are any: rank}, /query_heads/scores [S,
/// n].
void writeSelectionHdf5(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens);
RecordedSelection readSelectionHdf5(const std::string& path);

} // namespace kvscope
