// The random baseline: every subset of the budget's size is equally likely. A useful policy must beat it.
#include "core/base/error.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy_run.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable drawParameters() {
    return {
        choiceRow("draw", "Draw",
                  {{"fair", "Fair", "every subset equally likely"},
                   {"sign_sort", "Sign sort", "coins in blocks, -1 first, round by round"}},
                  Stage::Features, // what may run in blocks, and whether tokens have scores, depends on it
                  "BalanceKV's code sorts tokens by coin signs, block leaders forced to +1: positions are not kept "
                  "equally often (B13).",
                  "BalanceKV 4.1: sampling; code: sign sort"),
        integerRow("draw_block", "Sign block", "B", "tokens", {1, 1024, 128}, Stage::Select,
                   "Sign sort: the first token of each block of this length gets +1 without a draw (B13).",
                   "BalanceKV scripts: 128"),
        flagRow("reweight", "Reweight", false, Stage::Select,
                "Each drawn token counts for all that it was drawn from: weight n / N in numerator and denominator, so "
                "that both sums are unbiased. Protected tokens and those after the cut keep weight 1. Fair draw only.",
                "importance sampling; BalanceKV 4.1 has the sums unbiased")};
}

PolicyCard makeCard() {
    return {.id = "uniform",
            .name = "Uniform random",
            .summary = "Keeps a random subset, drawn anew for every layer and KV head: the baseline to beat.",
            .paper = "Baseline of BalanceKV (section 4) and kvpress RandomPress; drawn by sorting independent uniforms",
            .variants =
                {{"paper", "Fair draw", "every subset equally likely", {}},
                 kvpressVariant("the same draw, rounded down"),
                 {"sign_sort", "BalanceKV's code", "coins, sorted by sign (B13)", {{"draw", "sign_sort"}}},
                 {"reweighted", "Unbiased sums", "the fair draw, each token weighted n / N", {{"reweight", "true"}}}},
            .parameters = withCommonParameters(drawParameters(), CommonParameters::All, {"draw", "reweight"}),
            .usesSeed = true,
            .scoreLabel = "score u, uniform in [0, 1)"};
}

// The uniform's 24 leading bits, so that rounding to float never gives 1.
float uniformScore(const PolicyInput& input, std::int64_t head, std::int64_t row) {
    RandomKey key = input.randomKey(head);
    key.token = static_cast<std::uint32_t>(input.tokenAt(head, row));
    return static_cast<float>(std::floor(input.random->uniform(key) * 0x1p24) * 0x1p-24);
}

class Uniform : public Policy {
public:
    Uniform() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        if (!isFair(values) && !isOneShot(values))
            throw Error({"the sign sort cannot run in blocks: every block would toss the coins of the first one and "
                         "forget the weights of earlier rounds",
                         "parameter draw", "Choose draw=fair, or prompt_block=0 and decode_tokens=0"});
        HostTensor draw{{input.keys.size(0), input.rowCount()}, {}};
        draw.data.reserve(static_cast<std::size_t>(draw.shape.count()));
        for (std::int64_t head = 0; head < draw.shape[0]; ++head)
            for (std::int64_t row = 0; row < draw.shape[1]; ++row) draw.data.push_back(uniformScore(input, head, row));
        return {{"uniform", std::move(draw)}};
    }

    /// sign_sort draws other coins, so no token has a score that decides.
    Scores combine(const PolicyInput&, const Features& features, const ParameterValues& values) const override {
        return isFair(values) ? Scores{features.at("uniform"), {}} : Scores{};
    }

    // BalanceKV's uniform baseline is its blocked algorithm with gamma = 0.
    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        if (isFair(values)) return fairDraw(input, scores, values, count);
        const Protection fitted = protection(values, count).within(count, input.rowCount());
        RoundSettings coins;
        coins.gamma = 0;
        coins.halving = Halving::Unweighted;
        coins.shift = KeyShift::None;
        coins.block = values.integer("draw_block");
        RowSelection selection;
        const auto survivors = balanceInRounds(input, coins, fitted, count - fitted.first - fitted.last, std::nullopt,
                                               {}, nullptr, selection);
        finishSelection(input, coins, fitted, survivors, selection);
        return selection;
    }

    std::string scoreLabel(const ParameterValues& values) const override {
        return isFair(values) ? card().scoreLabel : "no score: signs of coins";
    }

private:
    static bool isFair(const ParameterValues& values) { return values.choice("draw") == "fair"; }

    // Weights count all tokens seen so far: in blocks a token survives exactly when its uniform is among the largest so
    // far.
    RowSelection fairDraw(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                          std::int64_t count) const {
        RowSelection chosen = Policy::select(input, scores, values, count);
        if (!values.flag("reweight")) return chosen;
        for (const TopKHead& head : chosen.heads) {
            const std::int64_t kept = std::ssize(head.kept), guarded = chosen.protectedFirst + chosen.protectedLast;
            const auto weight =
                kept > guarded
                    ? static_cast<float>(static_cast<double>(input.end - guarded) / static_cast<double>(kept - guarded))
                    : 1.0F;
            RowWeights weights;
            weights.numerator.assign(static_cast<std::size_t>(kept), weight);
            std::fill_n(weights.numerator.begin(), chosen.protectedFirst, 1.0F);
            std::fill_n(weights.numerator.rbegin(), chosen.protectedLast, 1.0F);
            weights.denominator = weights.numerator;
            chosen.weights.push_back(std::move(weights));
        }
        return chosen;
    }
};

} // namespace

const Policy& uniformPolicy() { return onlyPolicy<Uniform>(); }

} // namespace kvscope
