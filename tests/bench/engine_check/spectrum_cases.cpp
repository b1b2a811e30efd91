// Cases of the primitives that ask for singular values: more rows than columns and fewer, chosen rows of unequal
// number, rank deficiency, and prefixes that grow from nothing.
#include "tests/bench/engine_check/engine_case.h"

namespace kvscope::check {

namespace {

// Half the digits of double go into the square, and what is left is divided by the condition number squared.
constexpr double kSpectrumError = 1e-6;

EngineCase valuesCase(const std::string& name, RowType type, const naive::Block& floats,
                      const RowPositions& chosen = {}) {
    const naive::Block rows = storedAs(type.stored, floats);
    const double numbers = double(rows.numbers.size());
    return {"singularValues/" + name + type.suffix,
            numbers * double(rows.width),
            4 * numbers,
            kSpectrumError,
            [rows, chosen](const Engine& e) {
                return [&e, chosen, t = uploadRows(e, rows)] { return Outcome{e.singularValues(t, chosen, {}).data}; };
            },
            [rows, chosen] { return naive::singularValues(rows, chosen); }};
}

EngineCase normsCase(const std::string& name, RowType type, const naive::Block& floats, std::int64_t first,
                     std::int64_t count) {
    const naive::Block rows = storedAs(type.stored, floats);
    const double numbers = double(rows.numbers.size());
    return {"prefixOperatorNorms/" + name + type.suffix,
            numbers * double(rows.width),
            4 * numbers,
            kSpectrumError,
            [rows, first, count](const Engine& e) {
                return [&e, first, count, t = uploadRows(e, rows)] {
                    return Outcome{e.prefixOperatorNorms(t, first, count, {}).data};
                };
            },
            [rows, first, count] { return naive::prefixOperatorNorms(rows, first, count); }};
}

} // namespace

std::vector<EngineCase> spectrumCases() {
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes) {
        cases.push_back(valuesCase("tall", type, randomBlock(61, 3, 90, 12)));
        cases.push_back(valuesCase("wide", type, randomBlock(62, 2, 5, 20)));
        cases.push_back(valuesCase("several-parts", type, randomBlock(63, 1, 4500, 6, 1, 2)));
        cases.push_back(valuesCase("chosen", type, randomBlock(64, 3, 50, 9), {{0, 7, 8, 41}, {}, {3}}));
        naive::Block twin = randomBlock(65, 1, 40, 8);
        for (std::size_t r = 0; r < 40; ++r)
            twin.numbers[r * 8 + 3] = 1e-4F * twin.numbers[r * 8 + 3]; // a small direction must survive the squares
        cases.push_back(valuesCase("badly-conditioned", type, twin));
        cases.push_back(normsCase("from-nothing", type, randomBlock(66, 2, 30, 7), 0, 30));
        cases.push_back(normsCase("tail", type, randomBlock(67, 2, 120, 16, 1, 1), 100, 20));
        naive::Block turning = randomBlock(68, 1, 24, 4, 0.1);
        turning.numbers[20 * 4 + 2] = 50; // one row turns the top direction around
        cases.push_back(normsCase("turning", type, turning, 10, 14));
        naive::Block across = randomBlock(69, 2, 24, 8); // nothing, then columns 0 to 3, then longer rows of the others
        for (std::size_t i = 0; i < across.numbers.size(); ++i) {
            const std::size_t row = i / 8 % 24;
            if (row < 4 || (i % 8 < 4) != (row < 12)) across.numbers[i] = 0;
            if (row >= 12) across.numbers[i] *= 3;
        }
        cases.push_back(normsCase("across", type, across, 2, 22));
    }
    return cases;
}

} // namespace kvscope::check
