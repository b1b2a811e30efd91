#pragma once

#include "core/run/run.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

struct RecordedHead {
    int layer = 0, kvHead = 0;
    std::vector<TokenIndex> kept;
    std::vector<float> numeratorWeights, denominatorWeights; ///< empty: all 1
    std::vector<float> scores; ///< [n] or empty
    double margin = 0;
};

/// A retained-index list as files hold it: `kvscope-selection` version 1.
struct RecordedSelection {
    std::string captureFile, captureHash;
    std::int64_t captureTokens = 0;
    std::string cut;                 ///< as typed
    TokenIndex cutToken = 0;
    std::string policy, variant;     ///< free text when somebody else made it
    std::vector<std::pair<std::string, std::string>> parameters;
    std::string budgetRequested;
    std::int64_t budgetKept = 0;
    std::uint64_t seed = 0;
    std::string engine, arithmetic, command;
    bool simulated = false;
    std::vector<RecordedHead> heads; ///< ascending (layer, kvHead)
};

/// By extension: .json, .csv, .h5. Writes are atomic (a temporary file beside, then renamed). Throws Error.
void writeSelection(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens);
RecordedSelection readSelection(const std::string& path);
/// Throws Error when the list does not fit the capture (hash, tokens, heads, indices).
void checkAgainst(const RecordedSelection& selection, const CaptureReader& capture);

} // namespace kvscope
