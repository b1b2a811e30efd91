#pragma once

#include "core/parameters/parameters.h"
#include "core/policies/policy_card.h"
#include "core/policies/policy_input.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

inline constexpr std::int64_t kAllQueries = std::numeric_limits<std::int64_t>::max();

/// A compression policy as three stages over engine primitives: features, combine, select. Stateless.
class Policy {
public:
    explicit Policy(PolicyCard card); ///< the explanation is that of the card's id
    virtual ~Policy() = default;
    const PolicyCard& card() const { return m_card; }
    /// Stage 1 (Stage::Features). Default: none.
    virtual Features features(const PolicyInput& input, const ParameterValues& values) const;
    /// Stage 2: scores, larger is kept. Default: none, where `select` decides without scores.
    virtual Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const;
    /// The protected rows for a count, before they are fitted into it. Default: protect_first and protect_last.
    virtual Protection protection(const ParameterValues& values, std::int64_t count) const;
    /// Default: protect first and last, then stable top-k of the total score. `count` is already resolved.
    virtual RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                                std::int64_t count) const;
    /// Tokens kept in one layer when `count` of `rows` are kept on average over the layers. Default: count. Not called
    /// in block processing; a policy whose layers differ refuses blocks.
    virtual std::int64_t layerCount(LayerIndex layer, int numLayers, std::int64_t rows, const ParameterValues& values,
                                    std::int64_t count) const;
    /// State that accumulates from block to block: named tensors [Hkv, m] or [Hq, m] over the rows of `input`. The next
    /// block's `input.carried` holds them for that block's rows: gathered for rows that survived, 0 for new ones.
    virtual Features carry(const PolicyInput& input, const Features& features, const ParameterValues& values) const;
    /// Notes for the reader of a result ("SnapKV saw 18 of its 32 window queries").
    virtual std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const;
    /// What the capture must hold for these values; default: the card's list.
    virtual std::vector<Need> needs(const ParameterValues& values) const { return (void)values, card().needs; }
    /// How many of the last queries before `end` the policy reads in a one-shot run, if it needs queries. Default: all.
    virtual std::int64_t queriesRead(const ParameterValues& values) const { return (void)values, kAllQueries; }
    /// Axis label of the score for these values; default: the card's label.
    virtual std::string scoreLabel(const ParameterValues& values) const { return (void)values, card().scoreLabel; }

private:
    PolicyCard m_card;
};

/// The one object of a policy's class.
template <class Own> const Policy& onlyPolicy() {
    static const Own policy;
    return policy;
}

/// All policies, in the order in which they are offered.
const std::vector<const Policy*>& allPolicies();
/// Throws Error with the nearest name.
const Policy& policyById(std::string_view id);
const Policy* findPolicy(std::string_view id);   ///< null: no policy has this id
PolicyFamily familyOf(std::string_view id);      ///< None too when no policy has this id
const std::string& firstOf(PolicyFamily family); ///< id of the first policy of a family that has some
/// The card's defaults with the variant's presets; "" is the first variant. Throws Error with the nearest name.
ParameterValues variantValues(const PolicyCard& card, std::string_view variant);

} // namespace kvscope
