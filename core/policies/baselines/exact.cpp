// Keeps every token: the reference of every measure, with error 0 and retained mass 1.
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/policy.h"

#include <limits>
#include <numeric>

namespace kvscope {

namespace {

PolicyCard makeCard() {
    PolicyCard card;
    card.id = "exact";
    card.name = "Exact";
    card.summary = "Keeps every token: the uncompressed cache.";
    card.paper = "Vaswani et al., Attention Is All You Need (NeurIPS 2017), Eq. 1";
    card.variants = {{"all", "Everything", "no parameter, no budget", {}}};
    card.parameters = std::make_shared<const ParameterTable>();
    card.usesBudget = false;
    card.blockRefusal = "it evicts nothing, so its blocks change nothing";
    card.explanation = policyExplanation("exact");
    card.scoreLabel = "no score";
    return card;
}

class Exact : public Policy {
public:
    const PolicyCard& card() const override { return m_card; }
    Features features(const PolicyInput&, const ParameterValues&) const override { return {}; }
    Scores combine(const PolicyInput&, const Features&, const ParameterValues&) const override { return {}; }

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues&, std::int64_t) const override {
        TopKHead everything;
        everything.kept.resize(static_cast<std::size_t>(input.rowCount()));
        std::iota(everything.kept.begin(), everything.kept.end(), 0);
        everything.margin = std::numeric_limits<float>::infinity();
        return {std::vector<TopKHead>(static_cast<std::size_t>(input.keys.size(0)), everything), 0, 0};
    }

private:
    PolicyCard m_card = makeCard();
};

} // namespace

const Policy& exactPolicy() {
    static const Exact policy;
    return policy;
}

} // namespace kvscope
