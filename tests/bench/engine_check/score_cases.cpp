// Cases of the primitives on scores: entries one by one, pooling, groups, the choice of the best rows with ties and
// protected rows; and what moves rows or looks at a few of them.
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
    const std::vector<std::int32_t> gqaGroupOf = {2, 0, 1, 0, 2, 1};
    return {"reduceGroups/" + name,
            6 * 77,
            4 * 9 * 77,
            kOneRounding,
            [=](const Engine& e) {
                return [=, &e, t = uploadScores(e, scores)] {
                    return Outcome{e.download(e.reduceGroups(t, gqaGroupOf, 3, rule)).data};
                };
            },
            [=] { return naive::reduceGroups(scores, gqaGroupOf, 3, rule); }};
}

EngineCase entryCase(const std::string& name,
                     const std::function<Tensor(const Engine&, const Tensor&, const Tensor&)>& work,
                     const std::function<double(double, double)>& entry) {
    const naive::Block a = randomBlock(45, 3, 1, 77), b = randomBlock(46, 3, 1, 77);
    return {name,
            2 * 3 * 77,
            12 * 3 * 77,
            kOneRounding,
            [=](const Engine& e) {
                return [=, &e, x = uploadScores(e, a), y = uploadScores(e, b)] {
                    return Outcome{e.download(work(e, x, y)).data};
                };
            },
            [=] {
                naive::Numbers numbers;
                for (std::size_t i = 0; i < a.numbers.size(); ++i)
                    numbers.push_back(entry(double{a.numbers[i]}, double{b.numbers[i]}));
                return numbers;
            }};
}

/// Rows of [H, n, d], and of [H, n] where d is 1.
EngineCase gatherCase(const std::string& name, std::int64_t width) {
    const naive::Block rows = width == 1 ? randomBlock(47, 2, 1, 41) : randomBlock(47, 2, 41, width);
    const RowPositions chosen = {{0, 3, 4, 40}, {1, 2, 39, 40}};
    return {"gatherRows/" + name,
            0,
            4.0 * double(rows.numbers.size()),
            0,
            [=](const Engine& e) {
                return [=, &e, t = width == 1 ? uploadScores(e, rows) : uploadRows(e, rows)] {
                    return Outcome{e.download(e.gatherRows(t, chosen)).data};
                };
            },
            [=] {
                naive::Numbers numbers;
                for (std::size_t h = 0; h < 2; ++h)
                    for (const TokenIndex row : chosen[h])
                        for (std::int64_t c = 0; c < width; ++c)
                            numbers.push_back(
                                double{rows.numbers[std::size_t((std::int64_t(h) * 41 + row) * width + c)]});
                return numbers;
            }};
}

EngineCase projectCase() {
    const naive::Block rows = randomBlock(48, 2, 60, 9), mean = randomBlock(49, 1, 1, 9),
                       axes = randomBlock(50, 1, 2, 9);
    return {"project/two-axes",
            2 * 60 * 9 * 2,
            4 * 60 * 9,
            2 * kOneRounding, // rows lose their mean first
            [=](const Engine& e) {
                PrincipalAxes onto;
                onto.mean = {Shape{9}, mean.numbers};
                onto.axes = {Shape{2, 9}, axes.numbers};
                return [=, &e, t = uploadRows(e, rows)] { return Outcome{e.project(t, 1, onto).data}; };
            },
            [=] {
                naive::Numbers numbers;
                for (std::int64_t r = 0; r < 60; ++r)
                    for (std::int64_t a = 0; a < 2; ++a) {
                        double sum = 0;
                        for (std::int64_t c = 0; c < 9; ++c)
                            sum += (rows.at(1, r, c) - mean.at(0, 0, c)) * axes.at(0, a, c);
                        numbers.push_back(sum);
                    }
                return numbers;
            }};
}

/// Of rows in a plane: the largest |l - 1| over the roots l of det(H - l G) = 0, where G sums all rows and H the kept
/// ones with their weights.
EngineCase distortionCase() {
    const naive::Block rows = randomBlock(57, 2, 30, 2);
    const std::vector<WeightedSet> kept = {{{2, 5, 17}, {1, 4, 2.5F}, {}, {}}, {{0, 1, 2, 28, 29}, {}, {}, {}}};
    return {"spectralDistortion/plane",
            8 * 60,
            4 * 120,
            1e-6,
            [=](const Engine& e) {
                return [=, &e, t = uploadRows(e, rows)] {
                    const std::vector<double> found = e.spectralDistortion(t, kept, {});
                    return Outcome{{found.begin(), found.end()}};
                };
            },
            [=] {
                naive::Numbers numbers;
                for (std::int64_t h = 0; h < 2; ++h) {
                    double g[3] = {}, k[3] = {}; // xx, xy, yy
                    const auto add = [&](double* sums, std::int64_t r, double weight) {
                        const double x = rows.at(h, r, 0), y = rows.at(h, r, 1);
                        sums[0] += weight * x * x, sums[1] += weight * x * y, sums[2] += weight * y * y;
                    };
                    for (std::int64_t r = 0; r < 30; ++r)
                        add(g, r, 1);
                    const WeightedSet& set = kept[std::size_t(h)];
                    for (std::size_t i = 0; i < set.numerator.size(); ++i)
                        add(k, set.numerator[i], set.numeratorWeights.empty() ? 1 : double{set.numeratorWeights[i]});
                    const double a = g[0] * g[2] - g[1] * g[1], b = k[0] * g[2] + k[2] * g[0] - 2 * k[1] * g[1];
                    const double c = k[0] * k[2] - k[1] * k[1], root = std::sqrt(b * b - 4 * a * c);
                    numbers.push_back(std::max(std::abs((b + root) / (2 * a) - 1), std::abs((b - root) / (2 * a) - 1)));
                }
                return numbers;
            }};
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
    cases.push_back(entryCase(
        "scale/minus-a-third", [](const Engine& e, const Tensor& a, const Tensor&) { return e.scale(a, -1 / 3.0); },
        [](double a, double) { return -1 / 3.0 * a; }));
    cases.push_back(entryCase(
        "blend/0.3", [](const Engine& e, const Tensor& a, const Tensor& b) { return e.blend(a, b, 0.3); },
        [](double a, double b) { return a + 0.3 * b; }));
    cases.push_back(entryCase(
        "multiply/two", [](const Engine& e, const Tensor& a, const Tensor& b) { return e.multiply(a, b); },
        [](double a, double b) { return a * b; }));
    cases.push_back(gatherCase("rows", 7));
    cases.push_back(gatherCase("scores", 1));
    cases.push_back(projectCase());
    cases.push_back(distortionCase());
    return cases;
}

} // namespace kvscope::check
