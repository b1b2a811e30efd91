// Keys with a small norm tend to be the ones that attract attention. Key norm keeps the smallest norms; it needs no
// query, no value and no scale.
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

PolicyCard makeCard() {
    PolicyCard card;
    card.id = "key_norm";
    card.name = "Key norm";
    card.summary = "Keeps the keys with the smallest Euclidean norm.";
    card.paper = "Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression (EMNLP 2024)";
    card.needs = {Need::Keys};
    card.variants = {
        {"l2compress", "Authors' code", "the budget rounded up", {}},
        {"kvpress", "kvpress", "the budget rounded down", {{"rounding", "floor"}, {"prompt_alignment", "kvpress"}}}};
    card.parameters = withCommonParameters({}, CommonParameters::All);
    card.explanation = policyExplanation("key_norm");
    card.scoreLabel = "score −‖k‖";
    return card;
}

class KeyNorm : public Policy {
public:
    const PolicyCard& card() const override { return m_card; }

    Features features(const PolicyInput& input, const ParameterValues&) const override {
        return {{"norm", input.engine.rowNorms(input.keys, input.checkpoint)}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues&) const override {
        const Tensor& norm = features.at("norm");
        return {input.engine.scale(norm, -1), {{"norm", norm}}};
    }

private:
    PolicyCard m_card = makeCard();
};

} // namespace

const Policy& keyNormPolicy() {
    static const KeyNorm policy;
    return policy;
}

} // namespace kvscope
