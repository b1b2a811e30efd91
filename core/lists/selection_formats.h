#pragma once

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/capture/capture.h"
#include "core/lists/recorded_list.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace kvscope {

inline constexpr std::string_view kSelectionFormat = "kvscope-selection";
inline constexpr int kSelectionVersion = 1;

/// A metadata field of a list: a row of the table from which every form is written and read. The field that is called
/// "capture_file" in CSV and HDF5 is "file" of the object "capture" in JSON. Parameters are apart, as texts by id.
struct SelectionField {
    std::string_view group, name;
    std::variant<std::string RecordedSelection::*, bool RecordedSelection::*, TokenIndex RecordedSelection::*,
                 std::int64_t RecordedSelection::*, std::uint64_t RecordedSelection::*, double RecordedSelection::*>
        member;

    std::string key() const { return std::string(group) + (group.empty() ? "" : "_") + std::string(name); }
    std::string text(const RecordedSelection& selection) const;
    /// A capture's warning and the origin of random numbers are only in lists that have one.
    bool isAbsent(const RecordedSelection& s) const {
        return (name == "warning" && s.captureWarning.empty()) || (name == "random" && s.random.empty());
    }
    void setText(RecordedSelection& selection, std::string_view text, const std::string& path) const; ///< throws Error
};
std::span<const SelectionField> selectionFields();
/// Throws Error for another format or version. In CSV and HDF5 the two stand beside the fields.
void checkFormat(std::string_view format, std::string_view version, const std::string& path);

/// Throws Error naming `place` unless the whole text is a number of this type.
template <class Number> Number readNumber(std::string_view text, const std::string& place, const std::string& path) {
    if (const auto value = parseNumber<Number>(text)) return *value;
    throw Error({"'" + std::string(text) + "' is not a " + (std::is_integral_v<Number> ? "whole number" : "number") +
                     (std::is_integral_v<Number> ? " that fits here" : ""),
                 place, "", path});
}

/// Sorts the heads, drops weights that are all 1, and completes ranks. Throws Error for two lists of one head, indices
/// that are negative, repeated or not ascending, a wrong number of weights or scores, weights that are negative or not
/// finite, and sets of query heads whose union is not what their KV head keeps or that stand beside weights.
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
