// Cases of the primitives on scores: pooling, groups, and the choice of the best rows with ties and protected rows.
#include "tests/bench/engine_check/engine_case.h"

#include <algorithm>
#include <cmath>

namespace kvscope::check {

namespace {

EngineCase poolCase(PoolKind kind, std::int64_t width, std::int64_t n) {
    const naive::Block scores = randomBlock(41, 3, 1, n);
    return {std::string("pool/") + (kind == PoolKind::Max ? "max-" : "average-") + std::to_string(width) + "-of-" +
                std::to_string(n),
            double(3 * n * width),
            double(24 * n),
            kOneRounding,
            [=](const Engine& e) {
                return [&e, kind, width, t = uploadScores(e, scores)] {
                    return Outcome{e.download(e.pool(t, kind, width)).data};
                };
            },
            [=] { return naive::pool(scores, kind, width); }};
}

EngineCase groupCase(GroupRule rule, const std::string& name) {
    const naive::Block scores = randomBlock(42, 6, 1, 77);
    const std::vector<std::int32_t> kvOfQ = {2, 0, 1, 0, 2, 1};
    return {"reduceGroups/" + name,
            6 * 77,
            4 * 9 * 77,
            kOneRounding,
            [=](const Engine& e) {
                return [=, &e, t = uploadScores(e, scores)] {
                    return Outcome{e.download(e.reduceGroups(t, kvOfQ, 3, rule)).data};
                };
            },
            [=] { return naive::reduceGroups(scores, kvOfQ, 3, rule); }};
}

/// Kept rows of all heads one after the other, then the margins.
EngineCase topKCase(const std::string& name, const naive::Block& scores, const std::vector<std::int64_t>& counts,
                    std::int64_t first, std::int64_t last) {
    return {"topK/" + name,
            double(scores.numbers.size()),
            4 * double(scores.numbers.size()),
            kOneRounding,
            [=](const Engine& e) {
                return [=, &e, t = uploadScores(e, scores)] {
                    Outcome out;
                    std::vector<float> margins;
                    for (const TopKHead& head : e.topK({t, counts, first, last})) {
                        for (TokenIndex row : head.kept)
                            out.numbers.push_back(static_cast<float>(row));
                        margins.push_back(head.margin);
                        out.margin = std::min(out.margin, head.margin);
                    }
                    out.numbers.insert(out.numbers.end(), margins.begin(), margins.end());
                    return out;
                };
            },
            [=] {
                naive::Numbers rows, margins;
                for (std::int64_t h = 0; h < scores.heads; ++h) {
                    const naive::Choice choice = naive::topK(scores, h, counts[std::size_t(h)], first, last);
                    rows.insert(rows.end(), choice.kept.begin(), choice.kept.end());
                    margins.push_back(choice.margin);
                }
                rows.insert(rows.end(), margins.begin(), margins.end());
                return rows;
            }};
}

} // namespace

std::vector<EngineCase> scoreCases() {
    std::vector<EngineCase> cases = {poolCase(PoolKind::Average, 7, 100), poolCase(PoolKind::Max, 5, 33),
                                     poolCase(PoolKind::Average, 9, 3),   poolCase(PoolKind::Max, 1, 1),
                                     groupCase(GroupRule::Mean, "mean"),  groupCase(GroupRule::Sum, "sum"),
                                     groupCase(GroupRule::Max, "max")};
    const naive::Block scores = randomBlock(43, 3, 1, 501);
    naive::Block tied = scores;
    for (float& x : tied.numbers)
        x = std::round(x); // a handful of values, -0 among them
    cases.push_back(topKCase("free", scores, {50, 1, 500}, 0, 0));
    cases.push_back(topKCase("ties", tied, {77, 250, 3}, 0, 0));
    cases.push_back(topKCase("protected", tied, {10, 100, 5}, 4, 3));
    cases.push_back(topKCase("protected-more-than-kept", scores, {2, 5, 6}, 4, 3));
    cases.push_back(topKCase("all-and-none", scores, {501, 0, 501}, 2, 2));
    cases.push_back(topKCase("one-row", randomBlock(44, 2, 1, 1), {1, 0}, 1, 1));
    return cases;
}

} // namespace kvscope::check
