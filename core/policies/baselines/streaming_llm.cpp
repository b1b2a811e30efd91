// StreamingLLM: keeps the first tokens (attention sinks) and the most recent ones. It looks at positions only.
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {tokensRow("sinks", "Attention sinks", "n_s", {0, 1024, 4}, Stage::Select,
                      "The first tokens, kept for good, inside the budget. A budget below it keeps the first N.",
                      "StreamingLLM: 4; KeyDiff's runs and kvpress: 4; MInference: 128"),
            positionsRow()};
}

PolicyCard makeCard() {
    return {
        .id = "streaming_llm",
        .name = "StreamingLLM",
        .summary = "Keeps the first tokens (attention sinks) and the most recent ones; looks at positions only.",
        .paper = citation("StreamingLLM", "section 3.2"),
        .variants =
            {{"gaps", "Gaps kept", "4 sinks; kept keys have their original RoPE rotation, as in most comparisons", {}},
             {"paper", "Paper", "4 sinks; positions re-assigned inside the cache", {{"positions", "rerotated"}}},
             kvpressVariant("4 sinks, budget rounded down, gaps kept"),
             {"kvpress_rerotated",
              "kvpress, KeyRerotationPress",
              "as kvpress, with the wrapper that re-assigns positions",
              {{"rounding", "floor"}, {"prompt_alignment", "kvpress"}, {"positions", "rerotated"}}},
             {"minference", "MInference", "128 sinks, gaps kept", {{"sinks", "128"}}}},
        .parameters = withCommonParameters(
            ownParameters(), CommonParameters::Rounding | CommonParameters::BlockProcessing, {"sinks", "positions"}),
        .scoreLabel = "score: position (0-based)"};
}

class StreamingLlm : public Policy {
public:
    StreamingLlm() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues&) const override {
        return {{"position", rowTokens(input)}};
    }

    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return {features.at("position"), {}};
    }

    Protection protection(const ParameterValues& values, std::int64_t) const override {
        return {values.integer("sinks"), 0};
    }

    std::vector<std::string> notes(const PolicyInput&, const ParameterValues& values) const override {
        return {
            reassignsPositions(values)
                ? "positions re-assigned inside the cache: kept keys are measured rotated to 0 ... N − 1 (L6)"
                : "positions kept: where tokens between sinks and recents are evicted, a position gap remains (L6)"};
    }
};

} // namespace

const Policy& streamingLlmPolicy() { return onlyPolicy<StreamingLlm>(); }

} // namespace kvscope
