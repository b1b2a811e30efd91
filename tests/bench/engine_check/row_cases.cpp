// Cases of what moves rows or looks at a few of them.
#include "tests/bench/engine_check/engine_case.h"

#include <algorithm>
#include <cmath>

namespace kvscope::check {

namespace {

EngineCase gatherCase(RowType type) {
    constexpr std::int64_t width = 7;
    const naive::Block rows = storedAs(type.stored, randomBlock(47, 2, 41, width));
    const RowPositions chosen = {{0, 3, 4, 40}, {1, 2, 39, 40}};
    return {std::string("gatherRows/rows") + type.suffix,
            0,
            4.0 * double(rows.numbers.size()),
            0,
            [=](const Engine& e) {
                return [=, &e, t = uploadRows(e, rows)] { return Outcome{e.download(e.gatherRows(t, chosen)).data}; };
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

EngineCase projectCase(RowType type) {
    const naive::Block rows = storedAs(type.stored, randomBlock(48, 2, 60, 9)), mean = randomBlock(49, 1, 1, 9),
                       axes = randomBlock(50, 1, 2, 9);
    return {std::string("project/two-axes") + type.suffix,
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
EngineCase distortionCase(RowType type) {
    const naive::Block rows = storedAs(type.stored, randomBlock(57, 2, 30, 2));
    const std::vector<WeightedSet> kept = {{{2, 5, 17}, {1, 4, 2.5F}, {}, {}}, {{0, 1, 2, 28, 29}, {}, {}, {}}};
    return {std::string("spectralDistortion/plane") + type.suffix,
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
                    for (std::int64_t r = 0; r < 30; ++r) add(g, r, 1);
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

} // namespace

std::vector<EngineCase> rowCases() {
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes)
        cases.insert(cases.end(), {gatherCase(type), projectCase(type), distortionCase(type)});
    return cases;
}

} // namespace kvscope::check
