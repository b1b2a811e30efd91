// Cases of the attention primitives: masks, softcap, grouped heads in any order, huge logits, weighted samples.
#include "tests/bench/engine_check/engine_case.h"

namespace kvscope::check {

namespace {

EngineCase columnCase(const std::string& name, const naive::Attention& in) {
    const double logits = double(in.queries.heads * in.queries.rows * in.keys.rows);
    return {"attentionColumnSums/" + name,
            2 * logits * double(in.keys.width),
            4 * double(in.queries.numbers.size() + in.keys.numbers.size()),
            kOneRounding,
            [in](const Engine& e) {
                AttentionInput input{uploadRows(e, in.queries), uploadRows(e, in.keys), TokenIndex(in.firstQuery),
                                     in.keyPositions, in.rule};
                return [&e, input] { return Outcome{e.attentionColumnSums(input, {}).data}; };
            },
            [in] { return naive::attentionColumnSums(in); },
            fastAttentionError(in.queries, in.keys, in.rule)};
}

naive::Attention attention(std::int64_t w, std::int64_t n, std::int64_t d, double spread = 1) {
    naive::Attention in{randomBlock(21, 6, w, d, spread), randomBlock(22, 3, n, d, spread), n - w, {}, {}};
    in.rule.scaling = 0.25;
    in.rule.gqaGroupOf = {2, 0, 1, 0, 2, 1}; // groups need not be neighbours
    return in;
}

EngineCase weightedCase(const std::string& name, const naive::Weighted& in) {
    const double terms = double(in.queries.heads * in.queries.rows * in.keys.rows);
    return {"weightedAttention/" + name,
            2 * terms * double(in.keys.width + in.values.width),
            4 * double(in.queries.numbers.size() + in.keys.numbers.size() + in.values.numbers.size()),
            kOneRounding,
            [in](const Engine& e) {
                const WeightedAttentionInput input{uploadRows(e, in.queries),
                                                   uploadRows(e, in.keys),
                                                   uploadRows(e, in.values),
                                                   TokenIndex(in.firstQuery),
                                                   TokenIndex(in.cut),
                                                   in.rule,
                                                   {},
                                                   in.reference.numbers.empty() ? Tensor()
                                                                                : uploadRows(e, in.reference)};
                return [&e, input, in] {
                    WeightedAttentionInput now = input;
                    now.kept = in.kept;
                    const WeightedAttention result = e.weightedAttention(now, {});
                    Outcome out{in.reference.numbers.empty() ? result.output.data : result.outputError.data};
                    out.numbers.insert(out.numbers.end(), result.logDenominator.data.begin(),
                                       result.logDenominator.data.end());
                    out.numbers.insert(out.numbers.end(), result.logNorm.data.begin(), result.logNorm.data.end());
                    return out;
                };
            },
            [in] { return naive::weightedAttention(in); },
            kFastNearZero};
}

naive::Weighted weighted(std::int64_t w, std::int64_t n, std::int64_t d, std::int64_t dv) {
    naive::Weighted in{
        randomBlock(31, 4, w, d), randomBlock(32, 2, n, d), randomBlock(33, 2, n, dv), n - w, n - w, {}, {}};
    in.rule.scaling = 0.3;
    in.rule.gqaGroupOf = {1, 0, 0, 1};
    return in;
}

/// Every third token for the numerator and every fifth for the denominator, with weights; some tokens twice.
std::vector<WeightedSet> samples(std::int64_t cut) {
    std::vector<WeightedSet> sets(2);
    for (std::int64_t i = 0; i < cut; ++i)
        for (std::size_t kv = 0; kv < 2; ++kv) {
            if ((i + std::int64_t(kv)) % 3 == 0) {
                sets[kv].numerator.push_back(TokenIndex(i));
                sets[kv].numeratorWeights.push_back(1 + float(i % 4));
            }
            for (int copies = 0; copies < 1 + int(i % 2) && i % 5 == std::int64_t(kv); ++copies) {
                sets[kv].denominator.push_back(TokenIndex(i));
                sets[kv].denominatorWeights.push_back(0.5F + float(i % 3));
            }
        }
    return sets;
}

void addColumnCase(std::vector<EngineCase>& cases, const std::string& name, const naive::Attention& floats) {
    for (const auto& [stored, suffix] : kRowTypes) {
        naive::Attention in = floats;
        in.queries = storedAs(stored, in.queries);
        in.keys = storedAs(stored, in.keys);
        cases.push_back(columnCase(name + suffix, in));
    }
}

void addWeightedCase(std::vector<EngineCase>& cases, const std::string& name, const naive::Weighted& floats) {
    for (const auto& [stored, suffix] : kRowTypes) {
        naive::Weighted in = floats;
        for (naive::Block* rows : {&in.queries, &in.keys, &in.values}) *rows = storedAs(stored, *rows);
        cases.push_back(weightedCase(name + suffix, in));
    }
}

void addColumnCases(std::vector<EngineCase>& cases) {
    addColumnCase(cases, "window-32", attention(32, 203, 24));
    addColumnCase(cases, "many-keys", attention(32, 700, 16)); // sums of several parts
    addColumnCase(cases, "last-query", attention(1, 130, 40));
    addColumnCase(cases, "all-queries", attention(75, 75, 16));
    addColumnCase(cases, "one-token", attention(1, 1, 3));
    addColumnCase(cases, "huge-logits", attention(5, 90, 64, 8)); // logits in the hundreds
    naive::Attention capped = attention(7, 61, 16, 4);
    capped.rule.softcap = 5;
    addColumnCase(cases, "softcap", capped);
    naive::Attention many = attention(33, 75, 16, 4); // enough lanes for the fast path
    many.rule.softcap = 5;
    addColumnCase(cases, "softcap-many-queries", many);
    naive::Attention shared = attention(11, 90, 16); // of more heads than a kernel takes at once
    shared.queries = randomBlock(23, 39, 11, 16);
    for (std::int32_t head = 6; head < 39; ++head) shared.rule.gqaGroupOf.push_back(head % 7 == 0 ? 0 : 1);
    addColumnCase(cases, "many-heads", shared);
    naive::Attention sliding = attention(40, 150, 16);
    sliding.rule.slidingWindow = 13;
    addColumnCase(cases, "sliding-window", sliding);
    naive::Attention thinned = attention(9, 30, 16);
    thinned.firstQuery = 60;
    for (TokenIndex kv = 0; kv < 3; ++kv) {
        thinned.keyPositions.emplace_back();
        for (TokenIndex r = 0; r < 30; ++r) thinned.keyPositions.back().push_back(10 + kv + 2 * r);
    }
    addColumnCase(cases, "evicted-rows", thinned);
    thinned.rule.slidingWindow = 4;
    thinned.firstQuery = 66;
    addColumnCase(cases, "queries-that-see-nothing", thinned);
    for (const auto& [name, queries] : {std::pair("sinks", 7), std::pair("sinks-many-queries", 33)}) {
        naive::Attention sinks = attention(queries, 75, 16);
        sinks.rule.sinks = {0, 2.5F, -30, 8, 40, -1};
        sinks.rule.slidingWindow = 20;
        addColumnCase(cases, name, sinks);
    }
}

void addWeightedCases(std::vector<EngineCase>& cases) {
    addWeightedCase(cases, "exact", weighted(33, 97, 16, 24));
    naive::Weighted subset = weighted(20, 120, 16, 9);
    subset.kept = {{{0, 3, 50, 99}, {}, {}, {}}, {{7}, {}, {}, {}}};
    addWeightedCase(cases, "subset", subset);
    subset.kept = {
        {{0, 3, 50, 99}, {}, {}, {}}, {{7}, {}, {}, {}}, {{7, 8}, {2, 3}, {}, {}}, {{1, 60, 61}, {}, {}, {}}};
    addWeightedCase(cases, "subset-per-query-head", subset);
    naive::Weighted estimator = weighted(37, 200, 20, 16);
    estimator.kept = samples(estimator.cut);
    addWeightedCase(cases, "two-samples", estimator);
    estimator.rule.slidingWindow = 25;
    estimator.rule.softcap = 3;
    addWeightedCase(cases, "two-samples-sliding-softcap", estimator);
    estimator.reference = randomBlock(34, 4, 37, 16);
    addWeightedCase(cases, "errors", estimator);
    estimator.reference = {};
    naive::Weighted sinks = estimator;
    sinks.rule.sinks = {0.5F, 7, -40, 30};
    addWeightedCase(cases, "sinks", sinks);
    sinks.kept = {{{}, {}, {}, {}}, {{3}, {}, {}, {}}};
    addWeightedCase(cases, "sinks-without-tokens", sinks);
    for (WeightedSet& set : estimator.kept) // one sample, its own weights below the line (B7)
        set.denominator.clear(), set.denominatorWeights.assign(set.numerator.size(), 4.0F);
    addWeightedCase(cases, "one-sample-two-weights", estimator);
    naive::Weighted seen = weighted(6, 40, 8, 8);
    seen.cut = 40; // no cut: queries look back at what is kept, some see nothing
    seen.kept = {{{2, 36}, {}, {}, {}}, {{37, 39}, {}, {}, {}}};
    addWeightedCase(cases, "nothing-seen", seen);
    naive::Weighted huge = weighted(3, 50, 16, 8);
    for (float& x : huge.queries.numbers) x *= 200;
    addWeightedCase(cases, "huge-logits", huge);
}

} // namespace

std::vector<EngineCase> attentionCases() {
    std::vector<EngineCase> cases;
    addColumnCases(cases);
    addWeightedCases(cases);
    return cases;
}

} // namespace kvscope::check
