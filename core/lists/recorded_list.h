#pragma once

#include "core/policies/selection.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// A query head's own kept set with its scores.
struct RecordedQueryHead : QueryHeadSet {
    std::vector<float> scores = {};       ///< as RecordedHead::scores, of this query head
    std::vector<std::int64_t> ranks = {}; ///< per token of its set, among the scores of this query head
    friend bool operator==(const RecordedQueryHead&, const RecordedQueryHead&) = default;
};

struct RecordedHead {
    int layer = 0, kvHead = 0;
    std::vector<TokenIndex> kept;                            ///< strictly ascending
    std::vector<float> numeratorWeights, denominatorWeights; ///< per kept token; empty: all 1
    std::vector<float> scores;       ///< [n of the capture], NaN where there is none (from the cut on); or empty
    std::vector<std::int64_t> ranks; ///< per kept token, 0 = best of its head; empty exactly when scores are
    double margin = std::numeric_limits<double>::infinity(); ///< +infinity without a decision
    /// As in HeadSelection; empty: they share `kept`. If not empty, `scores` and `ranks` of this head are the group's.
    std::vector<RecordedQueryHead> queryHeads = {};
    std::int64_t storedKeys = -1, storedValues = -1; ///< as in HeadSelection: rows that the policy stores, or -1
    friend bool operator==(const RecordedHead&, const RecordedHead&) = default;
};

/// A retained-index list as files hold it: `kvscope-selection` version 1.
struct RecordedSelection {
    std::string captureFile, captureHash; ///< empty when unknown
    std::int64_t captureTokens = 0;       ///< 0: unknown
    std::string captureWarning;           ///< "the capture failed its self-check ..."; empty unless it did
    std::string cut;                      ///< as typed
    TokenIndex cutToken = 0;              ///< 0: unknown, see `cut`
    std::string policy, variant;          ///< free text if another program made the list
    std::vector<std::pair<std::string, std::string>> parameters;
    std::string budgetRequested;
    std::string budgetOrigin;      ///< how a quality became a retention ("proxy" where it is one); empty otherwise
    std::int64_t budgetTokens = 0; ///< the budget in tokens, as the policy rounds it; 0: unknown
    double budgetKept = 0;         ///< tokens that a query head of the list attends to, on average
    std::uint64_t seed = 0;
    std::string random; ///< source of random numbers that did not come from the seed; empty: none
    std::string engine, arithmetic, command;
    bool simulated = false;
    std::vector<RecordedHead> heads; ///< ascending (layer, kvHead)
    std::string path;                ///< of the file that was read; no field of it
};

} // namespace kvscope
