#pragma once

#include "core/base/checkpoint.h"
#include "core/base/random_source.h"
#include "core/engine/engine.h"
#include "core/parameters/parameters.h"
#include "core/policies/policy_card.h"
#include "core/policies/policy_spec.h"
#include "core/policies/selection.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Work of `select` that a larger count only continues (the order of greedy centres). It lives as long as the features
/// that it belongs to; whoever uses it holds the mutex.
struct ChoiceMemo {
    std::mutex mutex;
    std::shared_ptr<const void> work;
};

/// What a policy may look at: the tokens before the cut and nothing else. In block processing the
/// rows are those of the cache plus the current block.
struct PolicyInput {
    const Engine& engine;
    Tensor keys;               ///< [Hkv, m, d] post-RoPE
    Tensor values;             ///< [Hkv, m, dv]; may be empty for a policy that does not need values
    Tensor queries;            ///< [Hq, w, d] the last w queries before `end`; empty when none was captured
    TokenIndex firstQuery = 0; ///< time position of the first of them
    TokenIndex end = 0;        ///< tokens seen so far (= the cut in one-shot runs); the rows lie in [0, end)
    RowPositions positions;    ///< token of each row; empty: row r is token r
    std::map<std::string, Tensor> carried; ///< block processing: what `carry` returned one block ago, see there
    AttentionRule attention;
    LayerIndex layer;
    int numLayers = 1; ///< of the model
    std::uint64_t seed = 0;
    const Checkpoint& checkpoint;
    Tensor preRopeKeys = {};                     ///< [Hkv, m, d] keys before RoPE; empty unless Need::PreRopeKeys
    const RandomSource* random = &drawnRandom(); ///< never null
    /// The keys [Hkv, end, d] of another layer, for policies that look at one layer on behalf of others; may be empty.
    std::function<Tensor(LayerIndex)> keysOfLayer = {};
    double retention = -1; ///< the fraction kept that was asked for; of a budget in tokens that of the whole prompt
    bool recordSteps = false;   ///< `select` fills RowSelection::steps where the policy has steps
    Tensor imported = {};       ///< [Hkv, end] scores from a file; empty unless Need::ImportedScores
    ChoiceMemo* memo = nullptr; ///< see there; null in block processing

    std::int64_t rowCount() const { return keys.size(1); }
    TokenIndex tokenAt(std::int64_t kvHead, std::int64_t row) const {
        return positions.empty() ? static_cast<TokenIndex>(row)
                                 : positions[static_cast<std::size_t>(kvHead)][static_cast<std::size_t>(row)];
    }
};

/// Named tensors that touch all tokens and do not depend on combine or select parameters ([Hkv, m], [Hq, m], [Hkv, d]).
using Features = std::map<std::string, Tensor>;

struct Scores {
    Tensor total;                        ///< [Hkv, m]; larger is kept. Empty: the policy does not score (exact)
    std::map<std::string, Tensor> parts; ///< [Hkv, m] named terms that the read-out shows
    Tensor perQueryHead = {};            ///< [Hq, m] where each query head chooses by its own scores; else empty
};

/// The estimator of one KV head over its chosen rows, see HeadSelection.
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
    Tensor total = {}; ///< [Hkv, m] scores that were chosen by, where the budget takes part in them; else empty
    std::vector<TopKHead> queryHeads = {}; ///< [Hq] where query heads choose alone: `heads` are unions then; else empty
    std::vector<std::string> notes = {}; ///< what only the choice itself reveals ("3 walks failed and were repeated")
};

/// How many of the first and last rows are kept whatever their score.
struct Protection {
    std::int64_t first = 0, last = 0;

    /// What fits into `count` of `rows` rows: the first ones win, and of the last ones the most recent.
    Protection within(std::int64_t count, std::int64_t rows) const;
};

/// A compressor as a short recipe over engine primitives. Stateless: everything comes in, everything goes out.
class Policy {
public:
    virtual ~Policy() = default;
    virtual const PolicyCard& card() const = 0;
    virtual Features features(const PolicyInput& input, const ParameterValues& values) const = 0;
    virtual Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const = 0;
    /// What `select` protects at a count, before it is fitted into it. Default: protect_first and protect_last.
    virtual Protection protection(const ParameterValues& values, std::int64_t count) const;
    /// Default: protect first and last, then stable top-k of the total score. `count` is already resolved.
    virtual RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                                std::int64_t count) const;
    /// Tokens kept in one layer when `count` of `rows` are kept on average over the layers. Default: count. Not asked
    /// in block processing; a policy whose layers differ refuses blocks.
    virtual std::int64_t layerCount(LayerIndex layer, int numLayers, std::int64_t rows, const ParameterValues& values,
                                    std::int64_t count) const;
    /// State that accumulates from block to block: named tensors [Hkv, m] or [Hq, m] over the rows of `input`. In the
    /// next block `input.carried` holds them for its rows: gathered for the rows that survived, 0 for new ones.
    virtual Features carry(const PolicyInput& input, const Features& features, const ParameterValues& values) const;
    /// Sentences that the reader of a result must know ("SnapKV saw 18 of its 32 window queries").
    virtual std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const;
    /// What the capture must hold with these values: the card's list unless a parameter names other features.
    virtual std::vector<Need> needs(const ParameterValues& values) const { return (void)values, card().needs; }
    /// What the score is with these values; the card's label unless a parameter changes the formula.
    virtual std::string scoreLabel(const ParameterValues& values) const { return (void)values, card().scoreLabel; }
};

/// All policies, in the order in which they are offered.
const std::vector<const Policy*>& allPolicies();
/// Throws Error with the nearest name.
const Policy& policyById(std::string_view id);
/// The card's defaults with the variant's presets applied; "" is the first variant. Throws Error with the nearest name.
ParameterValues variantValues(const PolicyCard& card, std::string_view variant);

/// One eviction of block processing, for the step log and teaching.
struct BlockStep {
    TokenIndex end = 0;                           ///< tokens seen
    std::int64_t cached = 0;                      ///< rows before the eviction (cache + block)
    std::vector<std::vector<TokenIndex>> evicted; ///< [Hkv] ascending tokens evicted in this step
    float margin = 0;
};

struct PolicyOutcome {
    Selection selection;
    std::int64_t requested = 0;   ///< tokens, after rounding; the mean over the layers where these differ
    Scores scores;                ///< of the last step; rows mapped through `positions`
    RowPositions positions;       ///< empty: row r is token r
    std::vector<BlockStep> steps; ///< empty: one shot
    bool simulated = false;       ///< block processing on full-attention tensors
    std::vector<std::string> notes;
    std::shared_ptr<const StepLog> log; ///< of the last choice; null unless asked for
};

/// True when prompt_block and decode_tokens are both 0 (or unknown to the policy): the three stages run once.
bool isOneShot(const ParameterValues& values);

/// Runs the three stages or, unless isOneShot, block prompt processing over them (block_processing.h).
/// The caches of the run layer call the stages themselves in the one-shot case.
PolicyOutcome runPolicy(const Policy& policy, const ParameterValues& values, const Budget& budget,
                        const PolicyInput& input);
/// The select stage alone: rounding, the policy's select, rows to tokens.
PolicyOutcome selectOneShot(const Policy& policy, const ParameterValues& values, const Budget& budget,
                            const PolicyInput& input, const Scores& scores);

} // namespace kvscope
