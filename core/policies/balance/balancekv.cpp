// BalanceKV as its experiments run it: balancing walks give signs to the tokens of each block, and half of the tokens
// are kept with double weight; this repeats until the budget is met. The needle variant protects keys that stand out.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/balance/balance_needle.h"
#include "core/policies/balance/balance_parameters.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"

#include <algorithm>

namespace kvscope {

namespace {

using Presets = std::vector<std::pair<std::string, std::string>>;

const Presets kNotebook = {{"temp", "0.1"}, {"shift", "block_mean"}};
const Presets kLongBench = {{"block", "128"}, {"temp", "1"}, {"shift", "block_mean"}, {"sink", "32"}, {"recent", "32"}};

Presets with(Presets presets, const Presets& more) {
    presets.insert(presets.end(), more.begin(), more.end());
    return presets;
}

PolicyCard makeCard() {
    return {
        .id = "balancekv",
        .name = "BalanceKV",
        .summary = "Halves the tokens by signs that balance keys and values, in blocks; the kept half stands for all.",
        .paper = citation("BalanceKV", "section 4 and appendix B; the authors' code"),
        .needs = {Need::Keys, Need::Values},
        .variants =
            {
                {"paper", "Paper", "blocks of 256, keys shifted by their mean", {}},
                {"notebook", "Authors' notebook", "as in Figs. 1 and 3: shifted by the mean of each block", kNotebook},
                {"notebook_unweighted", "Authors' notebook, unweighted",
                 "its second cell: every kept token stands for two",
                 with(kNotebook, {{"halving", "unweighted"}, {"value_constant", "0"}})},
                {"longbench", "Authors' LongBench scripts", "blocks of 128, temp 1, 32 sinks and recents", kLongBench},
                {"same_weights", "Same weights both sides",
                 "the authors' notebook, with the numerator's weights in both sums (B7)",
                 with(kNotebook, {{"same_weights", "true"}})},
                {"needle", "Needle, authors' code", "keys against their block's mean are protected; found in layer 1",
                 with(kLongBench, {{"needle", "detection_layer"}, {"same_weights", "true"}})},
                {"needle_paper", "Needle, paper", "the same, found in each layer itself (B17)",
                 with(kLongBench, {{"needle", "own_layer"}, {"same_weights", "true"}})},
            },
        .parameters = withCommonParameters(balanceRoundParameters(), CommonParameters::Rounding,
                                           {"rounds", "block", "gamma", "temp"}),
        .family = PolicyFamily::BalanceRounds,
        .usesSeed = true,
        .blockRefusal = "its weights count tokens of the whole prompt",
        .scoreLabel = "no score: signs of a walk"};
}

/// 1 for protected tokens, [Hkv][middle]; empty when the variant protects nothing in this layer.
std::vector<std::vector<char>> guardedTokens(const PolicyInput& input, const ParameterValues& values,
                                             const Protection& protection, BalanceLog* log) {
    const std::int64_t end = input.rowCount() - protection.last;
    const bool elsewhere = values.choice("needle") == "detection_layer";
    const LayerIndex detection(values.integer("detection_layer"));
    if (values.choice("needle") == "off" || end <= protection.first || (elsewhere && input.layer < detection))
        return {};
    Tensor keys = input.keys;
    if (elsewhere && input.layer != detection) {
        if (!input.keysOfLayer)
            throw Error({"the keys of layer " + std::to_string(detection.value) + " are not at hand",
                         "parameter needle", "Choose needle=own_layer"});
        keys = input.keysOfLayer(detection);
        if (keys.size(0) != input.keys.size(0))
            throw Error({"layer " + std::to_string(detection.value) + " has another number of KV heads",
                         "parameter detection_layer", "Choose needle=own_layer"});
    }
    NeedleMask mask =
        findNeedles(input.engine, input.engine.rows(keys, protection.first, end), values.integer("block"),
                    values.real("needle_threshold"), values.integer("needle_dilation"), input.checkpoint.silent());
    if (log) {
        log->rho = mask.rho;
        log->raw = mask.raw;
        log->dilated = mask.dilated;
    }
    return std::move(mask.dilated);
}

class BalanceKv : public Policy {
public:
    BalanceKv() : Policy(makeCard()) {}

    Protection protection(const ParameterValues& values, std::int64_t) const override {
        return {values.integer("sink"), values.integer("recent")};
    }

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues& values,
                        std::int64_t count) const override {
        const bool explicitRounds = values.integer("rounds") >= 0;
        // Explicit rounds override the budget, so the budget must not shrink sinks and recents.
        const Protection fitted =
            protection(values, count).within(explicitRounds ? input.rowCount() : count, input.rowCount());
        const std::int64_t target = count - fitted.first - fitted.last;
        const std::shared_ptr<BalanceLog> log = input.recordSteps ? std::make_shared<BalanceLog>() : nullptr;
        const RoundSettings settings = balanceRoundSettings(values);
        const auto rounds = explicitRounds ? std::optional(values.integer("rounds")) : std::nullopt;
        RowSelection selection;
        const auto guarded = guardedTokens(input, values, fitted, log.get());
        const auto survivors = balanceInRounds(input, settings, fitted, target, rounds, guarded, log.get(), selection);
        finishSelection(input, settings, fitted, survivors, selection);
        selection.steps = log;
        note(selection, guarded, count, explicitRounds);
        return selection;
    }

private:
    static void note(RowSelection& selection, const std::vector<std::vector<char>>& guarded, std::int64_t count,
                     bool explicitRounds) {
        std::int64_t needles = 0;
        for (const auto& head : guarded) needles += std::ranges::count(head, char{1});
        if (!guarded.empty())
            selection.notes.push_back(std::to_string(needles) + (needles == 1 ? " token is" : " tokens are") +
                                      " protected by needle detection, over " + std::to_string(guarded.size()) +
                                      (guarded.size() == 1 ? " KV head" : " KV heads"));
        const auto kept = static_cast<std::int64_t>(selection.heads.front().kept.size());
        if (explicitRounds && kept != count)
            selection.notes.push_back("rounds override the budget: " + std::to_string(kept) +
                                      (kept == 1 ? " token is kept, not " : " tokens are kept, not ") +
                                      std::to_string(count));
    }
};

} // namespace

const Policy& balanceKvPolicy() { return onlyPolicy<BalanceKv>(); }

} // namespace kvscope
