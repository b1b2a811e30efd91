// Cases of BalanceKV's walks: every shape of kernel it is used with, odd sizes, protected rows, FAIL, and the workload
// of its speed target.
#include "tests/bench/engine_check/engine_case.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope::check {

namespace {

constexpr std::int64_t kRows = 150, kWidth = 13, kValueWidth = 9;

std::vector<double> uniforms(unsigned seed, std::size_t count) {
    std::vector<double> numbers;
    for (const float x : randomBlock(seed, 1, 1, std::int64_t(count)).numbers)
        numbers.push_back(double{x} - std::floor(double{x})); // near enough to uniform
    return numbers;
}

/// Blocks of `size` rows of two heads, as a round of the blocked algorithm has them.
BalancingWalks walksOf(const BalancingWalk& like, std::int64_t size, std::int64_t heads, std::int64_t rows) {
    BalancingWalks input;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t begin = 0; begin < rows; begin += size) {
            BalancingWalk walk = like;
            walk.head = h;
            for (std::int64_t r = begin; r < std::min(rows, begin + size); ++r)
                walk.rows.push_back(TokenIndex((r * 7) % rows)); // survivors come in any order
            walk.uniforms = uniforms(unsigned(90 + begin + h), walk.rows.size());
            input.walks.push_back(std::move(walk));
        }
    return input;
}

/// Numbers beyond the range of float, which a walk computes in double, count as 1e30.
double bounded(double x) { return std::clamp(x, -1e30, 1e30); }

void append(naive::Numbers& out, const std::vector<double>& numbers) {
    std::transform(numbers.begin(), numbers.end(), std::back_inserter(out), bounded);
}

void append(std::vector<float>& out, const std::vector<double>& numbers) {
    std::transform(numbers.begin(), numbers.end(), std::back_inserter(out), [](double x) { return float(bounded(x)); });
}

/// What float products and exponentials may do to an entry of a walk's kernel matrix, relative to its size: the
/// exponent is off by about two units of what it is made of, twice, and the exponential, the product of values and the
/// rest by some units more.
double fastEntryError(const naive::Balancing& data, const BalancingWalk& walk) {
    const auto longest = [](const naive::Block& rows) {
        double most = 0;
        for (std::int64_t h = 0; h < rows.heads; ++h)
            for (std::int64_t i = 0; i < rows.rows; ++i) {
                double square = 0;
                for (std::int64_t c = 0; c < rows.width; ++c) square += rows.at(h, i, c) * rows.at(h, i, c);
                most = std::max(most, square);
            }
        return std::sqrt(most);
    };
    const double reach =
        longest(data.keys) + std::max(longest(data.keys), longest(data.centres)); // of a key and the centre
    return 0x1.0p-24 * (16 + 4 * (walk.logScale * reach * reach + std::abs(walk.logShift)));
}

/// What |y| is made of, row by row: sum over j <= i of the sizes of M_ij, the value term without its sign.
naive::Numbers partsOf(const naive::Balancing& data, BalancingWalk walk) {
    const std::size_t m = walk.rows.size();
    const auto sizeOf = [&](std::size_t i) {
        double square = 0;
        for (std::int64_t c = 0; c < data.values.width; ++c)
            square += data.values.at(walk.head, walk.rows[i], c) * data.values.at(walk.head, walk.rows[i], c);
        return std::sqrt(square) * (walk.weights.empty() ? 1 : walk.weights[i]);
    };
    const double scale = walk.valueScale, constant = walk.valueConstant;
    walk.valueConstant = 1;
    const naive::Numbers powers = naive::balancingKernel({data.keys, {}, data.centres}, walk); // e^...
    naive::Numbers parts(m, 0.0);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j <= i; ++j) parts[i] += powers[i * m + j] * (scale * sizeOf(i) * sizeOf(j) + constant);
    return parts;
}

/// In the measure of errorOf, which asks more of products that cancel.
double fastWalkError(const naive::Balancing& data, const BalancingWalks& walks) {
    double worst = 0, scale = 0;
    std::vector<naive::Balanced> balanced;
    for (const BalancingWalk& walk : walks.walks) balanced.push_back(naive::balancingWalk(data, walk));
    for (const naive::Balanced& one : balanced)
        for (const auto& list : {one.products, one.diagonal})
            for (const double x : list) scale = std::max(scale, std::abs(bounded(x)));
    for (std::size_t w = 0; w < balanced.size(); ++w) {
        const naive::Numbers parts = partsOf(data, walks.walks[w]);
        const double entry = fastEntryError(data, walks.walks[w]);
        worst = std::max(worst, entry);                               // of the diagonal
        for (std::size_t i = 1; i < balanced[w].products.size(); ++i) // nothing is added to the first
            worst = std::max(worst,
                             bounded(entry * parts[i]) / (std::abs(bounded(balanced[w].products[i])) + 1e-6 * scale));
    }
    return worst;
}

Outcome outcomeOf(const std::vector<BalancingSteps>& results) {
    Outcome out;
    for (const BalancingSteps& steps : results) {
        out.numbers.insert(out.numbers.end(), steps.signs.begin(), steps.signs.end());
        append(out.numbers, steps.products);
        append(out.numbers, steps.diagonal);
        out.numbers.push_back(float(steps.failedAt));
        out.margin = std::min(out.margin, float(steps.margin));
    }
    return out;
}

naive::Numbers expectedOf(const naive::Balancing& data, const BalancingWalks& walks) {
    naive::Numbers out;
    for (const BalancingWalk& walk : walks.walks) {
        const naive::Balanced one = naive::balancingWalk(data, walk);
        for (const auto& list : {one.signs, one.products, one.diagonal}) append(out, list);
        out.push_back(double(one.failedAt));
    }
    return out;
}

naive::Balancing dataOf(bool values, bool centres, double spread, StoredType stored) {
    naive::Balancing data{storedAs(stored, randomBlock(81, 2, kRows, kWidth, spread, 0.3)), {}, {}};
    if (values) data.values = storedAs(stored, randomBlock(82, 2, kRows, kValueWidth));
    if (centres) data.centres = randomBlock(83, 2, 1, kWidth);
    return data;
}

BalancingWalks inputOf(const Engine& e, const naive::Balancing& data, const BalancingWalks& walks) {
    BalancingWalks input = walks;
    input.keys = uploadRows(e, data.keys);
    input.values = data.values.rows > 0 ? uploadRows(e, data.values) : Tensor();
    if (data.centres.rows > 0) input.centres = tableOf({2, 1, kWidth, data.centres.numbers});
    return input;
}

EngineCase walkCase(const std::string& name, RowType type, const BalancingWalk& like, std::int64_t size,
                    bool values = true, bool centres = false, double spread = 1) {
    const naive::Balancing data = dataOf(values, centres, spread, type.stored);
    const BalancingWalks walks = walksOf(like, size, 2, kRows);
    const auto prepare = [=](const Engine& e) {
        return [&e, input = inputOf(e, data, walks)] { return outcomeOf(e.balancingWalks(input, {})); };
    };
    // Products cancel, so they keep the rounding of their largest part.
    return {"balancingWalks/" + name + type.suffix,
            double(2 * kRows * size * (kWidth + kValueWidth)),
            double(8 * kRows * kWidth),
            1e-6,
            prepare,
            [=] { return expectedOf(data, walks); },
            fastWalkError(data, walks)};
}

/// Signs, and products over what they are made of: that lies between -1 and 1 and is off by the error of an entry, so
/// fast arithmetic is held to every sign and to sums that do not forget a row. Some rows are silent, some weigh more.
EngineCase sharesCase(const std::string& name, BalancingWalk like, std::int64_t size, naive::Balancing data) {
    BalancingWalks walks = walksOf(like, size, 2, kRows);
    for (BalancingWalk& walk : walks.walks)
        for (std::size_t i = 0; i < walk.rows.size(); ++i) {
            walk.weights.push_back(double(1 << (i % 3)));
            walk.silent.push_back(i % 11 == 5 ? 1 : 0);
        }
    std::vector<naive::Numbers> parts;
    double entryError = 0;
    for (const BalancingWalk& walk : walks.walks) {
        parts.push_back(partsOf(data, walk));
        entryError = std::max(entryError, fastEntryError(data, walk));
    }
    const auto numbersOf = [parts](std::size_t w, const auto& signs, const auto& products, auto& out) {
        for (std::size_t i = 0; i < signs.size(); ++i) {
            out.push_back(signs[i]);
            out.push_back(2 + products[i] / parts[w][i]);
        }
    };
    return {"balancingWalks/" + name,
            double(2 * kRows * size * (kWidth + kValueWidth)),
            double(8 * kRows * kWidth),
            2e-7,
            [=](const Engine& e) {
                return [=, &e, input = inputOf(e, data, walks)] {
                    naive::Numbers out;
                    float margin = std::numeric_limits<float>::infinity();
                    const std::vector<BalancingSteps> results = e.balancingWalks(input, {});
                    for (std::size_t w = 0; w < results.size(); ++w) {
                        numbersOf(w, results[w].signs, results[w].products, out);
                        margin = std::min(margin, float(results[w].margin));
                    }
                    return Outcome{{out.begin(), out.end()}, margin};
                };
            },
            [=] {
                naive::Numbers out;
                for (std::size_t w = 0; w < walks.walks.size(); ++w) {
                    const naive::Balanced one = naive::balancingWalk(data, walks.walks[w]);
                    numbersOf(w, one.signs, one.products, out);
                }
                return out;
            },
            entryError};
}

void addSharesCases(std::vector<EngineCase>& cases, const std::string& name, const BalancingWalk& like,
                    std::int64_t size, bool values, bool centres) {
    for (const auto& [stored, suffix] : kRowTypes)
        cases.push_back(sharesCase(name + suffix, like, size, dataOf(values, centres, 1, stored)));
}

/// u of every seventh drawn row a hair beside p: floats cannot settle its sign, doubles do.
void drawCloseToTheLine(const naive::Balancing& data, BalancingWalk& walk) {
    for (std::size_t i = 3; i < walk.rows.size(); i += 7) {
        const naive::Balanced steps = naive::balancingWalk(data, walk);
        if (i >= steps.products.size()) return; // it failed before
        walk.uniforms[i] = 0.5 - walk.gamma * steps.products[i] + (i % 2 == 0 ? 1e-9 : -1e-9);
    }
}

/// Signs and failures of all walks, then the smallest margin of each of two heads; 9 without a drawn sign.
Outcome signsOf(const BalancingWalks& walks, const std::vector<BalancingSteps>& results) {
    Outcome out;
    double margins[2] = {9, 9};
    for (std::size_t w = 0; w < results.size(); ++w) {
        out.numbers.insert(out.numbers.end(), results[w].signs.begin(), results[w].signs.end());
        out.numbers.push_back(float(results[w].failedAt));
        double& margin = margins[walks.walks[w].head];
        if (results[w].failedAt < 0) margin = std::min(margin, results[w].margin);
    }
    for (const double margin : margins) out.numbers.push_back(float(margin));
    return out;
}

naive::Numbers expectedSigns(const naive::Balancing& data, const BalancingWalks& walks) {
    naive::Numbers out;
    double margins[2] = {9, 9};
    for (const BalancingWalk& walk : walks.walks) {
        const naive::Balanced one = naive::balancingWalk(data, walk);
        append(out, one.signs);
        out.push_back(double(one.failedAt));
        double& margin = margins[walk.head];
        for (std::size_t i = walk.firstIsPlus ? 1 : 0; i < one.products.size() && one.failedAt < 0; ++i)
            if (walk.silent[i] == 0)
                margin = std::min(margin, std::abs(walk.uniforms[i] - (0.5 - walk.gamma * one.products[i])));
    }
    out.insert(out.end(), std::begin(margins), std::end(margins));
    return out;
}

/// What an engine may find with less than the exact sums.
EngineCase signsCase(const std::string& name, const BalancingWalk& like, std::int64_t size, RowType type, bool close,
                     bool centres = false, double weight = 1) {
    const naive::Balancing data = dataOf(true, centres, 1, type.stored);
    BalancingWalks walks = walksOf(like, size, 2, kRows);
    walks.signsOnly = true;
    for (BalancingWalk& walk : walks.walks) {
        for (std::size_t i = 0; i < walk.rows.size(); ++i) {
            walk.weights.push_back(weight * double(1 << (i % 3)));
            walk.silent.push_back(i % 11 == 5 ? 1 : 0);
        }
        if (close) drawCloseToTheLine(data, walk);
    }
    const auto prepare = [=](const Engine& e) {
        return [&e, input = inputOf(e, data, walks)] { return signsOf(input, e.balancingWalks(input, {})); };
    };
    return {"balancingWalks/" + name + type.suffix,
            double(2 * kRows * size * (kWidth + kValueWidth)),
            double(8 * kRows * kWidth),
            1e-6,
            prepare,
            [=] { return expectedSigns(data, walks); },
            2e6}; // fast arithmetic may take other signs so close to the line
}

/// Two rounds as BalanceKV's speed target has them: n = 16,384, 8 KV heads, d = 128, blocks of 256.
EngineCase speedCase(RowType type) {
    constexpr std::int64_t n = 16384, heads = 8, d = 128, block = 256;
    BalancingWalk like;
    like.gamma = 4;
    like.logScale = 0.1 * 0.0883883476;
    like.valueConstant = 0.025 + 1e-8;
    like.firstIsPlus = true;
    like.meanOver = block;
    return {std::string("balancingWalks/speed-two-rounds") + type.suffix,
            1.5 * n * block * heads * d * 2, // (n + n/2) rows, half the pairs, keys and values, 2 operations
            12.0 * n * heads * d,
            0,
            [=](const Engine& e) {
                BalancingWalks first = walksOf(like, block, heads, n), second = walksOf(like, block, heads, n / 2);
                first.keys = second.keys = uploadRows(e, storedAs(type.stored, randomBlock(85, heads, n, d, 1.3, 0.1)));
                first.signsOnly = second.signsOnly = true; // as policies ask for them
                first.values = second.values = uploadRows(e, storedAs(type.stored, randomBlock(86, heads, n, d, 0.3)));
                return [&e, first, second] {
                    (void)e.balancingWalks(first, {});
                    return Outcome{{float(e.balancingWalks(second, {}).front().margin)}};
                };
            },
            {},
            0,
            0,
            2e-3};
}

} // namespace

std::vector<EngineCase> balancingCases() {
    BalancingWalk blocked;
    blocked.gamma = 0.05;
    blocked.logScale = 0.1;
    blocked.logShift = 0.5;
    blocked.valueConstant = 0.025;
    blocked.firstIsPlus = true;
    blocked.meanOver = 70;
    BalancingWalk theory;
    theory.gamma = 0.02;
    theory.logScale = 0.25;
    theory.logShift = 6;
    theory.valueScale = 0.1;
    BalancingWalk denominator = theory;
    denominator.valueConstant = 1;
    BalancingWalk failing = theory;
    failing.failAbove = 0.05;
    BalancingWalk huge = theory;
    huge.logScale = 1e4;
    BalancingWalk far = theory; // of values times 2^75: a float of this scale is 0
    far.valueScale = 0.1 * 0x1p-150;
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes)
        cases.insert(cases.end(), {walkCase("blocked", type, blocked, 70), walkCase("theory", type, theory, 150),
                                   walkCase("denominator", type, denominator, 40, false),
                                   walkCase("given-centre", type, theory, 33, true, true),
                                   walkCase("fail", type, failing, 64), walkCase("one-row", type, blocked, 1),
                                   walkCase("huge-logits", type, huge, 50, true, false, 9), speedCase(type)});
    BalancingWalk often = failing;
    often.failAbove = 2;
    for (const RowType type : kRowTypes)
        cases.insert(cases.end(),
                     {signsCase("signs", blocked, 70, type, false), signsCase("signs-close", blocked, 150, type, true),
                      signsCase("signs-theory", theory, 64, type, true, true),
                      signsCase("signs-fail", often, 33, type, false),
                      signsCase("signs-far-values", far, 64, type, true, false, 0x1p75)});
    addSharesCases(cases, "blocked-shares", blocked, 150, true, false);
    addSharesCases(cases, "theory-shares", theory, 70, true, true);
    addSharesCases(cases, "denominator-shares", denominator, 64, false, false);
    return cases;
}

} // namespace kvscope::check
