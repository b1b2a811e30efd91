// Cases of the primitives that look at keys alone.
#include "tests/bench/engine_check/engine_case.h"

#include <array>
#include <utility>

namespace kvscope::check {

namespace {

/// Keys with what breaks careless code: a zero row, a repeated row, and rows that are no multiple of anything.
naive::Block awkwardKeys(std::int64_t heads, std::int64_t n, std::int64_t d) {
    naive::Block keys = randomBlock(11, heads, n, d, 1, 0.25);
    for (std::int64_t c = 0; c < d && n > 4; ++c) {
        keys.numbers[static_cast<std::size_t>(2 * d + c)] = 0;
        keys.numbers[static_cast<std::size_t>(3 * d + c)] = keys.numbers[static_cast<std::size_t>(4 * d + c)];
    }
    return keys;
}

std::string sizeText(const naive::Block& keys) {
    return std::to_string(keys.heads) + "x" + std::to_string(keys.rows) + "x" + std::to_string(keys.width);
}

void addSizes(std::vector<EngineCase>& cases, const naive::Block& floats, RowType type) {
    const naive::Block keys = storedAs(type.stored, floats);
    const double numbers = double(keys.numbers.size());
    const std::string size = sizeText(keys) + type.suffix;
    cases.push_back(
        {"rowNorms/" + size, 2 * numbers, 4 * numbers, kOneRounding,
         [keys](const Engine& e) { return [&e, t = uploadRows(e, keys)] { return Outcome{e.rowNorms(t, {}).data}; }; },
         [keys] { return naive::rowNorms(keys); }});
    for (auto [kind, name] : {std::pair{AnchorKind::Mean, "mean"}, std::pair{AnchorKind::NormalisedMean, "normalised"},
                              std::pair{AnchorKind::Median, "median"}})
        cases.push_back({std::string("anchor/") + name + "-" + size, 3 * numbers, 4 * numbers, kOneRounding,
                         [keys, kind = kind](const Engine& e) {
                             return [&e, kind, t = uploadRows(e, keys)] { return Outcome{e.anchor(t, kind, {}).data}; };
                         },
                         [keys, kind = kind] { return naive::anchor(keys, kind); }});
    const naive::Block anchors = randomBlock(12, keys.heads, 1, keys.width);
    for (auto [metric, name] : {std::pair{SimilarityMetric::Cosine, "cosine"}, std::pair{SimilarityMetric::Dot, "dot"},
                                std::pair{SimilarityMetric::Euclidean, "euclidean"}}) {
        cases.push_back({std::string("similarity/") + name + "-" + size, 4 * numbers, 4 * numbers, kOneRounding,
                         [=, metric = metric](const Engine& e) {
                             return [&e, metric, t = uploadRows(e, keys), a = tableOf(anchors)] {
                                 return Outcome{e.similarity(t, a, metric, {}).data};
                             };
                         },
                         [=, metric = metric] { return naive::similarity(keys, anchors, metric); }});
        cases.push_back({std::string("pairwiseSums/") + name + "-" + size, 2 * numbers * double(keys.rows), 4 * numbers,
                         kOneRounding,
                         [keys, metric = metric](const Engine& e) {
                             return [&e, metric, t = uploadRows(e, keys)] {
                                 return Outcome{e.pairwiseSums(t, metric, {}).data};
                             };
                         },
                         [keys, metric = metric] { return naive::pairwiseSums(keys, metric); }});
    }
}

EngineCase axesCase(const std::string& name, naive::Block keys, int components, RowType type) {
    for (std::size_t i = 0; i < keys.numbers.size(); ++i) // one spread per coordinate, so that the axes are distinct
        keys.numbers[i] *= 1 + 0.5F * static_cast<float>(i % static_cast<std::size_t>(keys.width));
    keys = storedAs(type.stored, std::move(keys));
    const double numbers = double(keys.rows * keys.width);
    // Axes are eigenvectors, not sums: their error is that of the covariance divided by the gap of the eigenvalues.
    return {"principalAxes/" + name + type.suffix,
            2 * numbers * double(keys.width),
            4 * numbers,
            1e-6,
            [keys, components](const Engine& e) {
                return [&e, components, t = uploadRows(e, keys)] {
                    const PrincipalAxes axes = e.principalAxes(t, 1, components, {});
                    Outcome out{axes.mean.data};
                    out.numbers.insert(out.numbers.end(), axes.axes.data.begin(), axes.axes.data.end());
                    for (double share : axes.explainedVariance) out.numbers.push_back(static_cast<float>(share));
                    out.numbers.push_back(static_cast<float>(axes.totalVariance));
                    return out;
                };
            },
            [keys, components] { return naive::principalAxes(keys, 1, components); }};
}

} // namespace

std::vector<EngineCase> keyCases() {
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes) {
        for (const auto& [heads, n, d] : {std::array{2, 301, 37}, {3, 1, 5}, {1, 65, 128}})
            addSizes(cases, awkwardKeys(heads, n, d), type);
        cases.push_back(axesCase("few-of-64", randomBlock(13, 2, 700, 64), 3, type));
        cases.push_back(axesCase("all-of-7", randomBlock(14, 2, 50, 7), 7, type));
        cases.push_back(axesCase("far-from-origin", randomBlock(15, 2, 4111, 33, 1, 20), 2, type));
    }
    return cases;
}

} // namespace kvscope::check
