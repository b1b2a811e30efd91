// Evaluates a formula over all rows at once, in double, one array per node of its tree. A number that is not finite
// throws where it arises, because a policy cannot rank by it.
#include "core/policies/score/score_expression.h"

#include "core/base/average_ranks.h"
#include "core/base/error.h"
#include "core/base/portable_log.h"
#include "core/base/portable_math.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

using Numbers = std::vector<double>; ///< one number for all rows, or one per row

double at(const Numbers& numbers, std::size_t i) { return numbers[numbers.size() == 1 ? 0 : i]; }

template <class Operation> Numbers combined(const Numbers& a, const Numbers& b, Operation operation) {
    Numbers result(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = operation(at(a, i), at(b, i));
    return result;
}

template <class Operation> Numbers mapped(Numbers numbers, Operation operation) {
    std::ranges::transform(numbers, numbers.begin(), operation);
    return numbers;
}

/// z-score: (x - mean) / standard deviation; 0 where x is constant up to float rounding (C3).
void standardise(double* x, std::size_t rows) {
    const auto count = static_cast<double>(rows);
    double mean = 0, variance = 0, largest = 0;
    for (std::size_t i = 0; i < rows; ++i) mean += x[i] / count;
    for (std::size_t i = 0; i < rows; ++i) {
        variance += (x[i] - mean) * (x[i] - mean) / count;
        largest = std::max(largest, std::abs(x[i]));
    }
    const double deviation = std::sqrt(variance);
    const bool constant = !(deviation > 0x1p-22 * largest);
    for (std::size_t i = 0; i < rows; ++i) x[i] = constant ? 0 : (x[i] - mean) / deviation;
}

/// Rank from 0 for the smallest to 1; ties share their average rank.
void rankFromZero(double* x, std::size_t rows) {
    const std::vector<double> ranks = averageRanks({x, rows});
    for (std::size_t i = 0; i < rows; ++i) x[i] = rows == 1 ? 0 : (ranks[i] - 1) / static_cast<double>(rows - 1);
}

struct Evaluation {
    std::string_view text;
    std::span<const Numbers> values;
    std::size_t heads, rows;
    const std::function<std::string(std::size_t, std::size_t)>& rowText;

    Numbers of(const ScoreNode& node) const {
        Numbers result = compute(node);
        const auto bad = std::ranges::find_if(result, [](double x) { return !std::isfinite(x); });
        if (bad != result.end()) refuse(node, *bad, static_cast<std::size_t>(bad - result.begin()));
        return result;
    }

private:
    [[noreturn]] void refuse(const ScoreNode& node, double value, std::size_t i) const {
        throw Error({fmt::format("in the score '{}': '{}' is {} at {}", text,
                                 text.substr(node.begin, node.end - node.begin), value, rowText(i / rows, i % rows)),
                     fmt::format("character {}", node.begin + 1), "Keep arguments in range, like log(max(x, 1e-9))"});
    }

    Numbers compute(const ScoreNode& node) const {
        using Kind = ScoreNode::Kind;
        if (node.kind == Kind::Number) return {node.number};
        if (node.kind == Kind::Feature) return values[node.feature];
        Numbers first = of(node.arguments.front());
        if (node.kind == Kind::Call) return call(node, std::move(first));
        if (node.kind == Kind::Negate) return mapped(std::move(first), [](double x) { return -x; });
        const Numbers second = of(node.arguments.back());
        switch (node.kind) {
        case Kind::Add: return combined(first, second, [](double a, double b) { return a + b; });
        case Kind::Subtract: return combined(first, second, [](double a, double b) { return a - b; });
        case Kind::Multiply: return combined(first, second, [](double a, double b) { return a * b; });
        default: return combined(first, second, [](double a, double b) { return a / b; });
        }
    }

    Numbers call(const ScoreNode& node, Numbers first) const {
        const std::string& name = node.function;
        if (name == "log") return mapped(std::move(first), portableLog);
        if (name == "exp") return mapped(std::move(first), [](double x) { return portableExp(x); });
        if (name == "sqrt") return mapped(std::move(first), [](double x) { return std::sqrt(x); });
        if (name == "abs") return mapped(std::move(first), [](double x) { return std::abs(x); });
        if (name == "z" || name == "rank") return perHead(std::move(first), name == "z" ? standardise : rankFromZero);
        if (name == "clip") {
            const Numbers low = of(node.arguments[1]), high = of(node.arguments[2]);
            const Numbers raised = combined(first, low, [](double a, double b) { return std::max(a, b); });
            return combined(raised, high, [](double a, double b) { return std::min(a, b); });
        }
        for (std::size_t i = 1; i < node.arguments.size(); ++i)
            first = combined(first, of(node.arguments[i]), [least = name == "min"](double a, double b) {
                return least ? std::min(a, b) : std::max(a, b);
            });
        return first;
    }

    /// Applies a per-head operation; a single number is treated as rows that are all equal.
    Numbers perHead(Numbers numbers, void (*operation)(double*, std::size_t)) const {
        if (numbers.size() == 1) numbers.assign(heads * rows, numbers.front());
        for (std::size_t head = 0; head < heads; ++head) operation(numbers.data() + head * rows, rows);
        return numbers;
    }
};

} // namespace

ScoreExpression ScoreExpression::parse(std::string_view text) {
    ScoreExpression formula;
    formula.m_text = text;
    formula.m_root = parseScore(text, formula.m_features);
    if (formula.m_features.empty())
        throw Error({fmt::format("the score '{}' names no feature: all tokens are equal", text), "character 1",
                     "Name one, like snapkv, leverage or vnorm"});
    return formula;
}

std::vector<double>
ScoreExpression::evaluate(std::span<const std::vector<double>> values, std::size_t heads, std::size_t rows,
                          const std::function<std::string(std::size_t, std::size_t)>& rowText) const {
    assert(values.size() == m_features.size());
    Numbers result = Evaluation{m_text, values, heads, rows, rowText}.of(m_root);
    if (result.size() == 1)
        result.assign(heads * rows, result.front()); // reached only without features, or with a single row
    return result;
}

} // namespace kvscope
