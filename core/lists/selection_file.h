#pragma once

#include "core/capture/cut.h"
#include "core/lists/recorded_list.h"

#include <string>

namespace kvscope {

struct TokenTable; // core/capture/capture.h

/// The extension says the form: .json, .csv, .h5. Writes are atomic (a temporary file, renamed). Throws Error.
/// JSON: an object, one line per head. CSV: "# key: value" lines, then one row per kept token: layer, kv_head,
/// position, rank, score, weight, token_id, token_text (and denominator_weight where it differs from weight;
/// query_heads, "4 6", where query heads have sets of their own, with query_head_ranks and query_head_scores in the
/// same order). HDF5: the same as attributes and data sets. What is read equals what was written, except that CSV holds
/// the scores of kept tokens only (NaN for the others) and that weights which are all 1 are left out.
void writeSelection(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens);
/// Throws Error for a file that is none of these or contradicts itself. Fields besides format, version and heads may be
/// missing, so that other programs can write lists.
RecordedSelection readSelection(const std::string& path);
/// Throws Error when the list does not fit the capture (hash, tokens, layers, heads, indices).
void checkAgainst(const RecordedSelection& selection, const CaptureReader& capture);
/// The cut of the list. Throws Error when the list names none that fits the capture.
Cut cutOf(const RecordedSelection& selection, const CaptureReader& capture);

} // namespace kvscope
