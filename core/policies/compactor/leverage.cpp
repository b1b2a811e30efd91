// Leverage alone: keeps the tokens whose keys have the highest leverage before RoPE, or draws tokens with probability
// proportional to leverage and reweights them (Theorem 1).
#include "core/engine/leverage.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/compactor/leverage_features.h"
#include "core/policies/keep_best.h"
#include "core/policies/policy_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::uint32_t kDrawRound = 3; ///< rounds 0 to 2 belong to the sketch

ParameterTable ownParameters() {
    ParameterTable rows = leverageParameters();
    rows.push_back(choiceRow(
        "choice", "Chosen",
        {{"top", "Best", "the highest scores, all weights 1"},
         {"sample", "Drawn", "with replacement, chance p = l / Σ l, weight 1 / (k p) for each time (Theorem 1)"}},
        Stage::Select,
        "Theorem 1 speaks of drawn and weighted rows, while Compactor keeps the best ones: compare their spectral "
        "distortion. Rows drawn twice are stored once, so fewer tokens than the budget are kept.",
        "Compactor Theorem 1; Algorithm 1"));
    return rows;
}

PolicyCard makeCard() {
    return {
        .id = "leverage",
        .name = "Leverage",
        .summary = "Keeps tokens whose keys stick out of the others before RoPE: Compactor without its attention part.",
        .paper = citation("Compactor", "sections 3.1 and 3.2, Algorithm 1, Theorems 1 and 2"),
        .needs = {Need::PreRopeKeys},
        .variants =
            {{"paper", "Paper", "Gaussian sketch of 64 columns, best tokens", {}},
             {"exact", "Exact", "no sketch, through the triangular factor", {{"sketch", "none"}, {"route", "svd"}}},
             {"sampling",
              "Sampling (Theorem 1)",
              "exact leverage as chances, drawn and weighted",
              {{"sketch", "none"}, {"route", "svd"}, {"choice", "sample"}}}},
        .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"sketch_size", "sketch", "choice"}),
        .family = PolicyFamily::Leverage,
        .usesSeed = true,
        .scoreLabel = "score leverage"};
}

/// Draws with replacement among the rows [begin, end) of one head.
struct Draws {
    std::vector<std::int64_t> rows;                           ///< in the order drawn
    std::map<TokenIndex, double> weights;                     ///< of the rows drawn, each time 1 / (count p)
    double closest = std::numeric_limits<double>::infinity(); ///< distance of a uniform from the next row's interval
};

Draws drawn(const PolicyInput& input, std::int64_t head, const float* scores, const Protection& kept,
            std::int64_t count) {
    const std::int64_t begin = kept.first, end = input.rowCount() - kept.last;
    std::vector<double> upTo; // cumulative leverage
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) upTo.push_back(sum += double{scores[i]});
    if (sum <= 0) { // zero keys: all rows equally likely
        std::iota(upTo.begin(), upTo.end(), 1.0);
        sum = static_cast<double>(upTo.size());
    }
    Draws draws;
    RandomKey key = input.randomKey(head);
    key.round = kDrawRound;
    for (std::int64_t t = 0; t < count; ++t) {
        key.slot = static_cast<std::uint32_t>(t);
        const double place = input.random->uniform(key) * sum;
        const auto at = std::min(std::ranges::upper_bound(upTo, place), upTo.end() - 1);
        const double below = at == upTo.begin() ? 0 : *(at - 1), share = (*at - below) / sum;
        const std::int64_t row = begin + (at - upTo.begin());
        draws.rows.push_back(row);
        draws.weights[static_cast<TokenIndex>(row)] += 1 / (static_cast<double>(count) * share);
        draws.closest = std::min({draws.closest, (place - below) / sum, (*at - place) / sum});
    }
    return draws;
}

std::vector<WeightedSet> setsOf(const RowSelection& selection) {
    std::vector<WeightedSet> sets;
    for (std::size_t h = 0; h < selection.heads.size(); ++h)
        sets.push_back({selection.heads[h].kept,
                        selection.weights.empty() ? std::vector<float>() : selection.weights[h].numerator,
                        {},
                        {}});
    return sets;
}

class LeveragePolicy : public Policy {
public:
    LeveragePolicy() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        if (values.choice("choice") == "sample" && !isOneShot(values))
            throw Error({"drawing gives heads caches of different length, which blocks cannot continue",
                         "parameter choice", "Choose choice=top, or prompt_block=0 and decode_tokens=0"});
        return {{"leverage", leverageOf(input, values, 0, input.rowCount(), LeverageParts::Scores).scores}};
    }

    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return {features.at("leverage"), {}};
    }

    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        const Protection kept = protection(values, count).within(count, input.rowCount());
        RowSelection best = keepBest(input, scores.total, kept, count);
        const bool samples = values.choice("choice") == "sample" && count < input.rowCount();
        auto log = input.recordSteps ? logOf(input, scores, values) : nullptr;
        RowSelection out = samples ? sampled(input, scores, kept, count, log.get()) : best;
        if (log && samples) {
            log->distortion = input.engine.spectralDistortion(input.preRopeKeys, setsOf(out), input.checkpoint);
            log->topDistortion = input.engine.spectralDistortion(input.preRopeKeys, setsOf(best), input.checkpoint);
        }
        out.steps = std::move(log);
        return out;
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        return leverageNotes(input, values);
    }

private:
    static RowSelection sampled(const PolicyInput& input, const Scores& scores, const Protection& kept,
                                std::int64_t count, LeverageLog* log) {
        const HostTensor& total = scores.total;
        const std::int64_t rows = input.rowCount();
        RowSelection out;
        out.protectedFirst = kept.first;
        out.protectedLast = kept.last;
        for (std::int64_t head = 0; head < total.shape[0]; ++head) {
            const Draws draws =
                drawn(input, head, total.data.data() + head * rows, kept, count - kept.first - kept.last);
            TopKHead chosen{{}, static_cast<float>(draws.closest)};
            RowWeights weights;
            const auto keep = [&](TokenIndex row, double weight) {
                chosen.kept.push_back(row);
                weights.numerator.push_back(static_cast<float>(weight));
            };
            for (std::int64_t i = 0; i < kept.first; ++i) keep(static_cast<TokenIndex>(i), 1);
            for (const auto& [row, weight] : draws.weights) keep(row, weight);
            for (std::int64_t i = rows - kept.last; i < rows; ++i) keep(static_cast<TokenIndex>(i), 1);
            weights.denominator = weights.numerator;
            out.heads.push_back(std::move(chosen));
            out.weights.push_back(std::move(weights));
            if (log) log->draws.push_back(draws.rows);
        }
        return out;
    }

    static std::shared_ptr<LeverageLog> logOf(const PolicyInput& input, const Scores& scores,
                                              const ParameterValues& values) {
        auto log = std::make_shared<LeverageLog>();
        Leverage leverage = leverageOf(input, values, 0, input.rowCount(), LeverageParts::ScoresAndSpectrum);
        log->spectrum = std::move(leverage.spectrum);
        log->rank = std::move(leverage.rank);
        log->leverage = scores.total;
        return log;
    }
};

} // namespace

const Policy& leveragePolicy() { return onlyPolicy<LeveragePolicy>(); }

} // namespace kvscope
