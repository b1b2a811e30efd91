// Keeps the keys with the smallest norm, which tend to attract attention. Needs no query, no value and no scale.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/policy_run.h"

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    ParameterSpec skipped = integerParameter("skip_layers", "Layers left alone", "", 0, 1024, 0, Stage::Select);
    skipped.unit = "layers";
    skipped.help = "The first so many layers of the model keep everything; the budget is that of the others.";
    skipped.source = "l2compress: a list, empty by default; the paper leaves the first two alone";
    ParameterSpec longest = integerParameter("only_above", "Only above", "", 0, 1 << 20, 0, Stage::Select);
    longest.unit = "tokens";
    longest.help = "A cache of at most so many tokens keeps everything.";
    longest.source = "l2compress: 2,048";
    return {skipped, longest};
}

PolicyCard makeCard() {
    PolicyCard card;
    card.id = "key_norm";
    card.name = "Key norm";
    card.summary = "Keeps the keys with the smallest Euclidean norm.";
    card.paper = "Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression (EMNLP 2024)";
    card.needs = {Need::Keys};
    card.variants = {
        {"l2compress", "Authors' code", "the budget rounded up", {}},
        {"kvpress", "kvpress", "the budget rounded down", {{"rounding", "floor"}, {"prompt_alignment", "kvpress"}}},
        {"two_layers", "The paper's practice", "the first two layers keep everything", {{"skip_layers", "2"}}},
        {"above_2048", "Authors' code, length", "prunes only above 2,048 tokens", {{"only_above", "2048"}}}};
    card.parameters = withCommonParameters(ownParameters(), CommonParameters::All);
    card.explanation = policyExplanation("key_norm");
    card.scoreLabel = "score −‖k‖";
    return card;
}

class KeyNorm : public Policy {
public:
    const PolicyCard& card() const override { return m_card; }

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        if (!isOneShot(values) && (values.integer("skip_layers") > 0 || values.integer("only_above") > 0))
            throw Error({"in blocks every layer and every length is pruned alike",
                         "parameters skip_layers, only_above",
                         "Leave them at 0, or choose prompt_block=0 and decode_tokens=0",
                         {}});
        return {{"norm", input.engine.rowNorms(input.keys, input.checkpoint)}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues&) const override {
        const Tensor& norm = features.at("norm");
        return {input.engine.scale(norm, -1), {{"norm", norm}}};
    }

    std::int64_t layerCount(LayerIndex layer, int, std::int64_t rows, const ParameterValues& values,
                            std::int64_t count) const override {
        return layer.value < values.integer("skip_layers") || rows <= values.integer("only_above") ? rows : count;
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
