// PyramidKV: SnapKV's scores with a budget per layer. Lower layers spread their attention and get many tokens, upper
// layers concentrate it and get few.
#include "core/parameters/parameter_rows.h"
#include "core/policies/baselines/pyramid_budgets.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"
#include "core/policies/fraction_removed.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <optional>

namespace kvscope {

const Policy& snapkvPolicy();

namespace {

ParameterTable ownParameters() {
    ParameterTable rows;
    for (ParameterSpec row : *snapkvPolicy().card().parameters) {
        if (row.id == "window")
            row.defaultValue = 8, row.source = "KVCache-Factory 8; kvpress 64; numbers of the paper's code 32";
        else if (row.id == "pool")
            row.defaultValue = 1;
        else if (row.id == "pool_width")
            row.defaultValue = 7;
        else if (row.id == "copies")
            row.source = "KVCache-Factory: query head; kvpress: KV head";
        else if (row.id != "group_rule")
            continue; // rows that only other codes need, and rows shared by all policies
        rows.push_back(std::move(row));
    }
    rows.insert(
        rows.end(),
        {realRow("beta", "Steepness", "β", {1, 100, 20, 1}, Stage::Select,
                 "Beside the window, the last layer gets about 1/β of the mean. 1 is flat.",
                 "PyramidKV 20; kvpress 20"),
         choiceRow("schedule", "Budgets of the layers",
                   {{"integer", "Authors' code", "integer division, the window on top; uniform where n < 2 (N - W)"},
                    {"real", "kvpress",
                     "rounded once, the window inside; uniform unless the last layer still holds its window"}},
                   Stage::Select,
                   "How the line from the first layer to the last is rounded, and when it is given up (L5).",
                   "PyramidKV's code: integer; kvpress: real"),
         choiceRow("slope", "Slope over",
                   {{"gaps", "L - 1", "the last layer gets the smallest share"},
                    {"layers", "L", "as some published copies; the mean lies above the budget"}},
                   Stage::Select, "What the fall from first to last layer is divided by (L5).",
                   "published copies of PyramidKV's code: both; kvpress: L - 1")});
    return rows;
}

PolicyCard makeCard() {
    return {.id = "pyramidkv",
            .name = "PyramidKV",
            .summary = "SnapKV's scores with a budget per layer: many tokens in the first layers, few in the last.",
            .paper = citation("PyramidKV", "section 4"),
            .needs = {Need::Keys, Need::Queries},
            .variants = {{"original", "Authors' code", "window 8, maximum of 7, integer budgets", {}},
                         {"original_layers",
                          "Authors' code, slope over L",
                          "copies that divide the slope by the number of layers",
                          {{"slope", "layers"}}},
                         {"kvpress",
                          "kvpress",
                          "window 64, average of 5, budgets rounded once",
                          {{"window", "64"},
                           {"pool", "average"},
                           {"pool_width", "5"},
                           {"schedule", "real"},
                           {"rounding", "round"}}}},
            .parameters =
                withCommonParameters(ownParameters(), CommonParameters::Rounding | CommonParameters::Protection,
                                     {"beta", "window", "pool", "pool_width"}),
            .blockRefusal = "the budgets of its layers follow from the length of the whole prompt",
            .scoreLabel = "score: pooled attention of the window"};
}

PyramidShape shapeOf(int numLayers, std::int64_t rows, const ParameterValues& values, double mean) {
    const bool integer = values.choice("schedule") == "integer";
    return {integer ? PyramidShape::Schedule::Integer : PyramidShape::Schedule::Real,
            numLayers,
            rows,
            mean,
            values.integer("window"),
            values.real("beta"),
            values.choice("slope") == "layers"};
}

class PyramidKv : public Policy {
public:
    PyramidKv() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        return snapkvPolicy().features(input, values);
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        return snapkvPolicy().combine(input, features, values);
    }

    Protection protection(const ParameterValues& values, std::int64_t count) const override {
        return snapkvPolicy().protection(values, count);
    }

    std::int64_t layerCount(LayerIndex layer, int numLayers, std::int64_t rows, const ParameterValues& values,
                            std::int64_t count) const override {
        const PyramidBudgets budgets = pyramidBudgets(shapeOf(numLayers, rows, values, static_cast<double>(count)));
        return budgets.tokens[layer.value];
    }

    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        const std::int64_t own = roundedOnce(input, values).value_or(count);
        RowSelection chosen = snapkvPolicy().select(input, scores, values, own);
        chosen.notes.push_back(
            fmt::format("PyramidKV keeps {} tokens in layer {} of {}", own, input.layer.value, input.numLayers));
        return chosen;
    }

    std::int64_t queriesRead(const ParameterValues& values) const override {
        return snapkvPolicy().queriesRead(values);
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        return snapkvPolicy().notes(input, values);
    }

private:
    /// Tokens of the layer for a budget in fractions, as kvpress computes them: from n (1 - ratio) itself, not from its
    /// rounded value. Empty for budgets in tokens and for other schedules and roundings.
    static std::optional<std::int64_t> roundedOnce(const PolicyInput& input, const ParameterValues& values) {
        const bool real = values.choice("schedule") == "real" && roundingOf(values) == Rounding::Round;
        if (!real || input.retention < 0) return {};
        const std::int64_t rows = input.rowCount();
        const double mean = tokensLeft(static_cast<double>(rows), input.retention);
        if (mean <= 0) return {};
        return pyramidBudgets(shapeOf(input.numLayers, rows, values, mean)).tokens[input.layer.value];
    }
};

} // namespace

const Policy& pyramidkvPolicy() { return onlyPolicy<PyramidKv>(); }

} // namespace kvscope
