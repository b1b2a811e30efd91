// Scores computed by another program, as a policy: read from a file and used with budgets, blocks, measures and figures
// like any other score.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/policy.h"

#include <cassert>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    ParameterSpec file;
    file.id = "file";
    file.label = "Scores";
    file.kind = ParameterKind::Text;
    file.help =
        "FILE.h5:/path of an array [layers, KV heads, n]: one score per token, larger is kept. Layers are those "
        "of the capture, in their order.";
    file.source = "your program";
    file.stage = Stage::Features;
    return {file};
}

PolicyCard makeCard() {
    PolicyCard card;
    card.id = "imported";
    card.name = "Imported scores";
    card.summary = "Keeps the tokens with the largest scores of an array that your own program wrote.";
    card.paper = "Baseline of your own: scores computed outside, kept by stable top-k";
    card.needs = {Need::Keys, Need::ImportedScores};
    card.variants = {{"paper", "As stored", "larger is kept", {}}};
    card.parameters = withCommonParameters(ownParameters(), CommonParameters::All);
    card.explanation = policyExplanation("imported");
    card.scoreLabel = "score of the file";
    return card;
}

class Imported : public Policy {
public:
    const PolicyCard& card() const override { return m_card; }

    // In block processing: the scores of the tokens in the cache; the numbers of the file do not change.
    Features features(const PolicyInput& input, const ParameterValues&) const override {
        if (input.imported.empty())
            throw Error({"no scores are given", "parameter file", "Write imported,file=FILE.h5:/path", {}});
        if (input.positions.empty())
            return {{"imported", input.imported}};
        return {{"imported", input.engine.gatherRows(input.imported, input.positions)}};
    }

    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return {features.at("imported"), {}};
    }

private:
    PolicyCard m_card = makeCard();
};

} // namespace

const Policy& importedPolicy() {
    static const Imported policy;
    return policy;
}

} // namespace kvscope
