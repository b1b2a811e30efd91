// BalanceKV as its theorems state it: a stream of tokens, halved by SoftmaxBalance and merged level by level, one tree
// for the keys of the denominator and one for every octave of value norms.
#include "core/policies/balance/balance_parameters.h"
#include "core/policies/balance/balance_tree.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

PolicyCard makeCard() {
    return {.id = "balancekv_stream",
            .name = "BalanceKV, streaming",
            .summary =
                "The algorithm of BalanceKV's theorems: trees of balanced halves, separate for values and denominator.",
            .paper = citation("BalanceKV", "Algorithms 1, 2 and 4"),
            .needs = {Need::Keys, Need::Values},
            .variants =
                {
                    {"paper", "Paper", "c = 30 ln(m/δ): at real norms the walk tosses coins (B1)", {}},
                    {"manual", "Chosen c", "c as given, 4 at first", {{"steps", "manual"}}},
                    {"greedy", "Greedy", "plain kernel with γ = 4, as in the blocked code", {{"steps", "gain"}}},
                },
            .parameters = withCommonParameters(balanceStreamParameters(), CommonParameters::None,
                                               {"batch", "levels", "steps", "c"}),
            .family = PolicyFamily::BalanceTree,
            .usesBudget = false,
            .usesSeed = true,
            .blockRefusal = "it is a stream of batches already",
            .scoreLabel = "no score: signs of walks"};
}

StreamSettings settingsOf(const ParameterValues& values) {
    StreamSettings settings;
    const std::string &steps = values.choice("steps"), &erase = values.choice("erase");
    settings.batch = values.integer("batch");
    settings.levels = values.integer("levels");
    settings.steps = steps == "theory" ? StepSize::Theory : steps == "manual" ? StepSize::Manual : StepSize::Gain;
    settings.c = values.real("c");
    settings.gamma = values.real("gamma");
    settings.delta = values.real("delta");
    settings.radius = values.real("radius");
    settings.epsilon = values.real("epsilon");
    settings.failOnOverflow = values.choice("on_overflow") == "fail";
    settings.erase = erase == "algorithm" ? EraseLine::Algorithm
                     : erase == "proof"   ? EraseLine::Proof
                                          : EraseLine::None;
    return settings;
}

/// The union of both samples with the weights of each; weight 0 where a row is not in a sample.
void addHead(const StreamSample& sample, float margin, RowSelection& selection) {
    TopKHead head;
    RowWeights weights;
    head.margin = margin;
    const WeightedSet& set = sample.set;
    std::ranges::set_union(set.numerator, set.denominator, std::back_inserter(head.kept));
    std::size_t n = 0, d = 0;
    for (const TokenIndex row : head.kept) {
        const bool inN = n < set.numerator.size() && set.numerator[n] == row;
        const bool inD = d < set.denominator.size() && set.denominator[d] == row;
        weights.numerator.push_back(inN ? set.numeratorWeights[n++] : 0);
        weights.denominator.push_back(inD ? set.denominatorWeights[d++] : 0);
    }
    weights.storedKeys = static_cast<std::int64_t>(set.numerator.size() + set.denominator.size());
    weights.storedValues = static_cast<std::int64_t>(set.numerator.size());
    selection.heads.push_back(std::move(head));
    selection.weights.push_back(std::move(weights));
}

void writeSets(const BalanceStream& stream, TokenIndex cursor, BalanceLog& log) {
    for (const BalanceTree& tree : stream.trees) {
        const auto sets = tree.setsAt(cursor);
        for (std::size_t level = 0; level < sets.size(); ++level) {
            BalanceSetLog set;
            set.kvHead = tree.kvHead;
            set.level = static_cast<std::int64_t>(level);
            set.tree = tree.numerator ? 1 : 0;
            set.bucket = tree.bucket;
            set.tokens = sets[level];
            set.weights.assign(sets[level].size(), std::ldexp(1.0, static_cast<int>(level)));
            log.sets.push_back(std::move(set));
        }
    }
}

class BalanceKvStream : public Policy {
public:
    BalanceKvStream() : Policy(makeCard()) {}

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues& values,
                        std::int64_t) const override {
        const std::shared_ptr<BalanceLog> log = input.recordSteps ? std::make_shared<BalanceLog>() : nullptr;
        BalanceStream stream = buildBalanceStream(input, settingsOf(values), log.get());
        const auto cursor = static_cast<TokenIndex>(input.rowCount());
        RowSelection selection;
        std::int64_t keys = 0, pairs = 0;
        std::size_t erased = 0;
        for (std::int64_t h = 0; h < input.keys.size(0); ++h) {
            const StreamSample sample = stream.sampleAt(h, cursor);
            addHead(sample, static_cast<float>(stream.margins[h]), selection);
            keys += static_cast<std::int64_t>(sample.set.denominator.size());
            pairs += static_cast<std::int64_t>(sample.set.numerator.size());
            erased += sample.erasedBuckets.size();
        }
        selection.notes.push_back("stores " + std::to_string(pairs) + " key-value pairs for the numerator and " +
                                  std::to_string(keys) +
                                  " keys for the denominator, over all KV heads; batch and levels decide that, "
                                  "not the budget");
        if (erased > 0)
            selection.notes.push_back(std::to_string(erased) + " buckets of values lie below the erase line");
        if (stream.repeats > 0) selection.notes.push_back(repeatedText(stream.repeats));
        if (log) {
            writeSets(stream, cursor, *log);
            log->stream = std::make_shared<const BalanceStream>(std::move(stream));
        }
        selection.steps = log;
        return selection;
    }
};

} // namespace

const Policy& balanceKvStreamPolicy() { return onlyPolicy<BalanceKvStream>(); }

} // namespace kvscope
