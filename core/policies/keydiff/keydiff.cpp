// KeyDiff (Eqs. 7 and 8): keeps the keys with the smallest cosine to an anchor, the mean of the cached keys. No
// attention weights are needed.
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {choiceRow("anchor", "Anchor",
                      {{"mean", "Mean of keys", "μ = (1/n) Σ k_i (section 3.2's experiments)"},
                       {"normalised_mean", "Mean of unit keys", "μ = (1/n) Σ k_i/‖k_i‖ (Eq. 8)"},
                       {"median", "Median", "coordinate-wise median of the keys (Table 14)"},
                       {"pairwise", "Pairwise", "the sum over all keys instead of an anchor (Eq. 7)"}},
                      Stage::Features,
                      "What keys are compared with. Mean of keys and mean of unit keys can disagree completely (K1); "
                      "pairwise and mean of unit keys rank the same under cosine (K2).",
                      "KeyDiff 3.2, Eqs. 7-8, Table 14; kvpress: normalised_mean", "μ"),
            choiceRow("metric", "Similarity",
                      {{"cosine", "Cosine", "score −cos(μ, k_i); 0 for a zero key (K4)"},
                       {"dot", "Dot product", "score −⟨μ, k_i⟩, keys not normalised"},
                       {"euclidean", "Euclidean", "score +‖k_i − μ‖, keys not normalised"}},
                      Stage::Features,
                      "How a key is compared with the anchor. The paper does not write out signs and normalisation of "
                      "the other two; keys stay as they are.",
                      "KeyDiff Eq. 8, Table 15"),
            realRow("window_share", "Sliding window", "w", {0, 0.9, 0, 0.01}, Stage::Select,
                    "Share of the budget that goes to the most recent tokens: floor(w N) of them are kept whatever "
                    "their score.",
                    "KeyDiff 3.2; Table 13: 0.1 and 0.2; Math-500: 0.2")};
}

PolicyCard makeCard() {
    return {.id = "keydiff",
            .name = "KeyDiff",
            .summary = "Keeps the keys least similar to the mean key; no queries, values or attention weights.",
            .paper = citation("KeyDiff", "Eqs. 7 and 8, sections 2.4 and 3.2"),
            .needs = {Need::Keys},
            .variants =
                {
                    {"paper", "Paper", "mean of the keys, cosine", {}},
                    kvpressVariant("mean of the unit keys, budget rounded down", {{"anchor", "normalised_mean"}}),
                    {"pairwise", "Pairwise (Eq. 7)", "summed cosine to all keys", {{"anchor", "pairwise"}}},
                    {"sliding_window",
                     "With sliding window",
                     "a fifth of the budget is recent (Table 13, Math-500)",
                     {{"window_share", "0.2"}}},
                },
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All,
                                               {"anchor", "metric", "window_share", "prompt_block"}),
            .family = PolicyFamily::KeyDiff,
            .scoreLabel = "score −cos(μ, k)"};
}

SimilarityMetric metricOf(const ParameterValues& values) {
    const std::string& id = values.choice("metric");
    return id == "cosine" ? SimilarityMetric::Cosine
           : id == "dot"  ? SimilarityMetric::Dot
                          : SimilarityMetric::Euclidean;
}

AnchorKind anchorOf(const std::string& id) {
    return id == "mean" ? AnchorKind::Mean : id == "median" ? AnchorKind::Median : AnchorKind::NormalisedMean;
}

class KeyDiff : public Policy {
public:
    KeyDiff() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        const std::string& anchorId = values.choice("anchor");
        if (anchorId == "pairwise")
            return {{"similarity", input.engine.pairwiseSums(input.keys, metricOf(values), input.checkpoint)}};
        const HostTensor anchor = input.engine.anchor(input.keys, anchorOf(anchorId), input.checkpoint);
        return {{"anchor", anchor},
                {"similarity", input.engine.similarity(input.keys, anchor, metricOf(values), input.checkpoint)}};
    }

    // score = -similarity, or +distance: keys that differ most are kept.
    Scores combine(const PolicyInput&, const Features& features, const ParameterValues& values) const override {
        const HostTensor& similarity = features.at("similarity");
        const bool distance = metricOf(values) == SimilarityMetric::Euclidean;
        return {distance ? similarity : scale(similarity, -1), {{distance ? "distance" : "similarity", similarity}}};
    }

    Protection protection(const ParameterValues& values, std::int64_t count) const override {
        // 1e-9: 0.29 of 100 is 29, although the product is a hair below in binary.
        const double window = std::floor(values.real("window_share") * static_cast<double>(count) + 1e-9);
        return {values.integer("protect_first"),
                std::max(values.integer("protect_last"), static_cast<std::int64_t>(window))};
    }

    std::string scoreLabel(const ParameterValues& values) const override {
        const bool pairwise = values.choice("anchor") == "pairwise";
        const SimilarityMetric metric = metricOf(values);
        return fmt::format("score {}{}{}{}", metric == SimilarityMetric::Euclidean ? "" : "−", pairwise ? "Σ " : "",
                           metric == SimilarityMetric::Cosine ? "cos"
                           : metric == SimilarityMetric::Dot  ? "dot"
                                                              : "distance",
                           pairwise ? "(k_j, k)" : "(μ, k)");
    }
};

} // namespace

const Policy& keydiffPolicy() { return onlyPolicy<KeyDiff>(); }

} // namespace kvscope
