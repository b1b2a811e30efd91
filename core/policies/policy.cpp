// Default behaviour of policies, and the values of variants.
#include "core/policies/policy.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/keep_best.h"

#include <utility>

namespace kvscope {

Policy::Policy(PolicyCard card) : m_card(std::move(card)) { m_card.explanation = policyExplanation(m_card.id); }

Features Policy::features(const PolicyInput&, const ParameterValues&) const { return {}; }

Scores Policy::combine(const PolicyInput&, const Features&, const ParameterValues&) const { return {}; }

RowSelection Policy::select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                            std::int64_t count) const {
    return keepBest(input, scores.total, protection(values, count), count);
}

Protection Policy::protection(const ParameterValues& values, std::int64_t) const {
    return {integerOrZero(values, "protect_first"), integerOrZero(values, "protect_last")};
}

std::int64_t Policy::layerCount(LayerIndex, int, std::int64_t, const ParameterValues&, std::int64_t count) const {
    return count;
}

Features Policy::carry(const PolicyInput&, const Features&, const ParameterValues&) const { return {}; }

std::vector<std::string> Policy::notes(const PolicyInput&, const ParameterValues&) const { return {}; }

ParameterValues variantValues(const PolicyCard& card, std::string_view variant) {
    std::vector<std::string> known;
    for (const PolicyVariant& candidate : card.variants) {
        known.push_back(candidate.id);
        if (candidate.id != variant && !(variant.empty() && &candidate == &card.variants.front())) continue;
        ParameterValues values(card.parameters);
        for (const auto& [id, text] : candidate.values) values.setText(id, text);
        return values;
    }
    throw Error({"unknown variant '" + std::string(variant) + "' of " + card.id, "", suggestName(variant, known)});
}

} // namespace kvscope
