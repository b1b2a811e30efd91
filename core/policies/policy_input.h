#pragma once

#include "core/base/checkpoint.h"
#include "core/base/random_source.h"
#include "core/engine/requests.h"
#include "core/engine/score_arithmetic.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kvscope {

class Engine;

/// Intermediate result of `select` that a larger count continues (the order of greedy centres). It lives as long as the
/// features that it belongs to; callers lock the mutex.
struct ChoiceMemo {
    std::mutex mutex;
    std::shared_ptr<const void> work;
};

/// What a policy may look at: the tokens before the cut and nothing else. In block processing the rows are those of the
/// cache plus the current block.
struct PolicyInput {
    const Engine& engine;
    Tensor keys;               ///< [Hkv, m, d] post-RoPE; without Need::Keys the shape alone
    Tensor values;             ///< [Hkv, m, dv]; may be empty for a policy that does not need values
    Tensor queries;            ///< [Hq, w, d] the last w queries before `end`; empty when none was captured
    TokenIndex firstQuery = 0; ///< time position of the first of them
    TokenIndex end = 0;        ///< tokens seen so far (= the cut in one-shot runs); the rows lie in [0, end)
    RowPositions positions;    ///< token of each row; empty: row r is token r
    std::map<std::string, HostTensor> carried; ///< block processing: what Policy::carry returned a block ago
    AttentionRule attention;
    LayerIndex layer;
    int numLayers = 1; ///< of the model
    std::uint64_t seed = 0;
    const Checkpoint& checkpoint;
    Tensor preRopeKeys = {};                     ///< [Hkv, m, d] keys before RoPE; empty unless Need::PreRopeKeys
    const RandomSource* random = &drawnRandom(); ///< never null
    /// The keys [Hkv, end, d] of another layer, for policies that look at one layer on behalf of others; may be empty.
    std::function<Tensor(LayerIndex)> keysOfLayer = {};
    double retention = -1;    ///< fraction kept asked for; for tokens -1, in blocks their share of the prompt
    bool recordSteps = false; ///< `select` fills RowSelection::steps if the policy writes a step log
    /// Reads the scores [Hkv, cut] of a file; empty unless Need::ImportedScores names one.
    std::function<std::shared_ptr<const HostTensor>()> imported = {};
    ChoiceMemo* memo = nullptr; ///< see ChoiceMemo; null in block processing

    /// The key of one head's random numbers; their round, token and slot are left to the policy.
    RandomKey randomKey(std::int64_t kvHead) const {
        return {.seed = seed,
                .layer = static_cast<std::uint32_t>(layer.value),
                .kvHead = static_cast<std::uint32_t>(kvHead)};
    }
    std::int64_t rowCount() const { return keys.size(1); }
    TokenIndex tokenAt(std::int64_t kvHead, std::int64_t row) const {
        return positions.empty() ? static_cast<TokenIndex>(row)
                                 : positions[static_cast<std::size_t>(kvHead)][static_cast<std::size_t>(row)];
    }
};

/// Named tensors that touch all tokens and do not depend on combine or select parameters ([Hkv, m], [Hq, m], [Hkv, d]).
using Features = std::map<std::string, HostTensor>;

struct Scores {
    HostTensor total;                        ///< [Hkv, m]; larger is kept. Empty: the policy does not score (exact)
    std::map<std::string, HostTensor> parts; ///< [Hkv, m] named terms that the read-out shows
    HostTensor perQueryHead = {};            ///< [Hq, m] where each query head chooses by its own scores; else empty
};

/// Weights of the estimator for one KV head's chosen rows, see HeadSelection.
struct RowWeights {
    std::vector<float> numerator, denominator;       ///< per chosen row; empty: all 1
    std::int64_t storedKeys = -1, storedValues = -1; ///< as in HeadSelection
};

/// Rows chosen out of PolicyInput's rows (not tokens: block processing maps them back).
struct RowSelection {
    std::vector<TopKHead> heads;
    std::int64_t protectedFirst = 0, protectedLast = 0;
    std::vector<RowWeights> weights = {};      ///< [Hkv], or empty: all 1
    std::shared_ptr<const StepLog> steps = {}; ///< null unless asked for
    HostTensor total = {}; ///< [Hkv, m] scores that decided, where they depend on the budget; else empty
    std::vector<TopKHead> queryHeads = {}; ///< [Hq] if query heads choose alone (`heads`: their unions), or empty
    std::vector<std::string> notes = {};   ///< what only the select stage knows ("3 walks failed and were repeated")
};

/// How many of the first and last rows are kept whatever their score.
struct Protection {
    std::int64_t first = 0, last = 0;

    /// The part that fits into `count` of `rows` rows: first rows have priority, then the most recent of the last rows.
    Protection within(std::int64_t count, std::int64_t rows) const;
};

} // namespace kvscope
