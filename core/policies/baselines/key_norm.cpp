// Keeps the keys with the smallest norm, which tend to attract attention. Needs no query, no value and no scale.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy_run.h"

#include <fmt/format.h>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {integerRow("skip_layers", "Layers left alone", "", "layers", {0, 1024, 0}, Stage::Select,
                       "This many of the model's first layers keep everything; the budget is that of the others.",
                       "l2compress: a list, empty by default; the paper leaves the first two alone"),
            integerRow("only_above", "Only above", "", "tokens", {0, 1 << 20, 0}, Stage::Select,
                       "A cache of at most this many tokens keeps everything.", "l2compress: 2,048")};
}

PolicyCard makeCard() {
    return {.id = "key_norm",
            .name = "Key norm",
            .summary = "Keeps the keys with the smallest Euclidean norm.",
            .paper =
                "Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression (EMNLP 2024)",
            .needs = {Need::Keys},
            .variants =
                {{"l2compress", "Authors' code", "the budget rounded up", {}},
                 kvpressVariant("the budget rounded down"),
                 {"two_layers", "The paper's practice", "the first two layers keep everything", {{"skip_layers", "2"}}},
                 {"above_2048", "Authors' code, length", "prunes only above 2,048 tokens", {{"only_above", "2048"}}}},
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"skip_layers"}),
            .scoreLabel = "score −‖k‖"};
}

class KeyNorm : public Policy {
public:
    KeyNorm() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        if (!isOneShot(values) && (values.integer("skip_layers") > 0 || values.integer("only_above") > 0))
            throw Error({"in blocks every layer and every length is pruned alike", "parameters skip_layers, only_above",
                         "Leave them at 0, or choose prompt_block=0 and decode_tokens=0"});
        return {{"norm", input.engine.rowNorms(input.keys, input.checkpoint)}};
    }

    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        const HostTensor& norm = features.at("norm");
        return {scale(norm, -1), {{"norm", norm}}};
    }

    std::int64_t layerCount(LayerIndex layer, int, std::int64_t rows, const ParameterValues& values,
                            std::int64_t count) const override {
        return whyWhole(layer, rows, values).empty() ? count : rows;
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        const std::string why = whyWhole(input.layer, input.rowCount(), values);
        return why.empty() ? std::vector<std::string>() : std::vector{why};
    }

private:
    /// Why the layer keeps everything; empty: it is pruned.
    static std::string whyWhole(LayerIndex layer, std::int64_t rows, const ParameterValues& values) {
        const std::int64_t skipped = values.integer("skip_layers"), above = values.integer("only_above");
        if (layer.value < skipped)
            return fmt::format("layer {} keeps everything (skip_layers={})", layer.value, skipped);
        if (rows <= above) return fmt::format("{} tokens are all kept (only_above={})", rows, above);
        return {};
    }
};

} // namespace

const Policy& keyNormPolicy() { return onlyPolicy<KeyNorm>(); }

} // namespace kvscope
