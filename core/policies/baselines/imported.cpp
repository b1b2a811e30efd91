// Scores computed by another program, as a policy: read from a file and used with budgets, blocks, measures and figures
// like any other score.
#include "core/base/error.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {textRow("file", "Scores", "", Stage::Features,
                    "FILE.h5:/path of an array [layers, KV heads, n]: one score per token, larger is kept. Layers are "
                    "those of the capture, in their order.",
                    "your program")};
}

PolicyCard makeCard() {
    return {.id = "imported",
            .name = "Imported scores",
            .summary = "Keeps the tokens with the largest scores of an array that your own program wrote.",
            .paper = "Baseline of your own: scores computed outside, kept by stable top-k",
            .needs = {Need::ImportedScores},
            .variants = {{"paper", "As stored", "larger is kept", {}}},
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"file"}),
            .scoreLabel = "score of the file"};
}

class Imported : public Policy {
public:
    Imported() : Policy(makeCard()) {}

    // In block processing: the scores of the tokens in the cache; the numbers of the file do not change.
    Features features(const PolicyInput& input, const ParameterValues&) const override {
        if (!input.imported)
            throw Error({"no scores are given", "parameter file", "Write imported,file=FILE.h5:/path"});
        const std::shared_ptr<const HostTensor> scores = input.imported();
        if (input.positions.empty()) return {{"imported", *scores}};
        return {{"imported", gatherColumns(*scores, input.positions)}};
    }

    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return {features.at("imported"), {}};
    }
};

} // namespace

const Policy& importedPolicy() { return onlyPolicy<Imported>(); }

} // namespace kvscope
