// The values of a parameter along an axis: all choices of a choice, equal steps of a number, equal factors of a number
// that spans decades.
#include "app/study/makers/phase_axis.h"

#include "core/base/error.h"
#include "core/base/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kLeastBudget = 0.02, kMostBudget = 0.9;
constexpr double kDecades = 16;      ///< a maximum beyond so many times the default makes the axis logarithmic
constexpr double kAroundDefault = 8; ///< a logarithmic axis spans this factor to both sides of the default

double between(double low, double high, std::size_t i, std::size_t points, bool factors) {
    const double t = points > 1 ? static_cast<double>(i) / static_cast<double>(points - 1) : 0;
    return factors ? low * std::pow(high / low, t) : low + (high - low) * t;
}

/// The number rounded to so many significant digits.
double rounded(double value, int digits) { return parseNumber<double>(fmt::format("{:.{}g}", value, digits)).value(); }

std::vector<double> spread(const ParameterSpec& spec, std::size_t points, std::int64_t tokens) {
    double low = spec.min, high = spec.maxIsTokens ? std::min(spec.max, static_cast<double>(tokens)) : spec.max;
    const double standard = spec.defaultValue;
    const bool factors = spec.logarithmic || (standard > 0 && high > kDecades * standard);
    if (factors) {
        const double centre = standard > 0 ? standard : std::sqrt(std::max(low, 1e-9) * high);
        low = std::max({low, centre / kAroundDefault, 1e-9});
        high = std::min(high, centre * kAroundDefault);
    } else if (spec.maxIsTokens) {
        high = std::min(high, static_cast<double>(tokens) / 2); // protecting every token shows nothing
    }
    std::vector<double> values;
    for (std::size_t i = 0; i < points; ++i) {
        double value = rounded(between(low, high, i, points, factors), 3); // nobody types more digits
        if (spec.step > 0) // 57 steps of 0.01 are 0.57, not 0.5700000000000001
            value = rounded(spec.min + std::round((value - spec.min) / spec.step) * spec.step, 12);
        if (spec.kind == ParameterKind::Integer) value = std::round(value);
        values.push_back(std::clamp(value, spec.min, spec.max));
    }
    return values;
}

std::vector<std::string> listed(const std::string& values) {
    std::vector<std::string> texts;
    for (std::size_t at = 0; at <= values.size();) {
        const std::size_t comma = std::min(values.find(',', at), values.size());
        if (comma > at) texts.push_back(values.substr(at, comma - at));
        at = comma + 1;
    }
    return texts;
}

PhaseAxis budgetAxis(const std::vector<std::string>& typed, std::size_t points) {
    PhaseAxis axis{"budget", "Budget, share kept or tokens (t)", {}, {}, true};
    for (std::size_t i = 0; typed.empty() && i < points; ++i)
        axis.texts.push_back(
            Budget{Budget::Unit::Fraction, std::round(100 * between(kLeastBudget, kMostBudget, i, points, true)) / 100}
                .text());
    for (const std::string& text : typed) axis.texts.push_back(Budget::parse(text).text());
    for (const std::string& text : axis.texts) axis.numbers.push_back(Budget::parse(text).value);
    return axis;
}

std::string titleOf(const ParameterSpec& spec) {
    const std::string unit = unitBeside(spec);
    return labelAndSymbol(spec) + (unit.empty() ? "" : ", " + unit);
}

PhaseAxis parameterAxis(const ParameterSpec& spec, const std::vector<std::string>& typed, ParameterValues values,
                        std::size_t points, std::int64_t tokens) {
    PhaseAxis axis{
        spec.id, titleOf(spec), {}, {}, spec.kind == ParameterKind::Real || spec.kind == ParameterKind::Integer};
    const auto add = [&] {
        axis.texts.push_back(values.text(spec.id));
        axis.numbers.push_back(axis.isNumeric ? values.real(spec.id) : static_cast<double>(axis.numbers.size()));
    };
    if (!typed.empty())
        for (const std::string& text : typed) values.setText(spec.id, text), add();
    else if (spec.kind == ParameterKind::Choice)
        for (const ParameterChoice& choice : spec.choices) values.setText(spec.id, choice.id), add();
    else if (spec.kind == ParameterKind::Flag)
        for (const char* text : {"false", "true"}) values.setText(spec.id, text), add();
    else
        for (const double value : spread(spec, points, tokens)) values.set(spec.id, value), add();
    return axis;
}

/// Without the values that rounding made equal.
PhaseAxis withoutRepeats(const PhaseAxis& axis) {
    PhaseAxis once{axis.id, axis.title, {}, {}, axis.isNumeric};
    for (std::size_t i = 0; i < axis.texts.size(); ++i)
        if (std::ranges::find(once.texts, axis.texts[i]) == once.texts.end()) {
            once.texts.push_back(axis.texts[i]);
            once.numbers.push_back(axis.numbers[i]);
        }
    return once;
}

} // namespace

PhaseAxis phaseAxisOf(const std::string& typed, const PolicySpec& policy, std::size_t points, std::int64_t tokens) {
    const std::size_t equals = std::min(typed.find('='), typed.size());
    const std::string id = typed.substr(0, equals);
    const std::vector<std::string> values =
        equals < typed.size() ? listed(typed.substr(equals + 1)) : std::vector<std::string>{};
    if (equals < typed.size() && values.empty())
        throw Error({"the axis '" + id + "' has no values", "axis", "Write " + id + "=v1,v2, or " + id + " alone"});
    if (id == "budget") return withoutRepeats(budgetAxis(values, points));
    policy.values.text(id); // throws with the nearest name
    const ParameterTable& table = policy.values.table();
    const auto spec = std::ranges::find(table, id, &ParameterSpec::id);
    if (spec->kind == ParameterKind::Text && values.empty())
        throw Error({"'" + id + "' is a text and has no range", "axis", "Write " + id + "=v1,v2"});
    return withoutRepeats(parameterAxis(*spec, values, policy.values, points, tokens));
}

std::string standardAxis(const PolicyCard& card, const std::string& taken) {
    if (card.usesBudget && taken != "budget") return "budget";
    for (const bool numbersOnly : {true, false})
        for (const ParameterSpec& spec : *card.parameters) {
            const bool number = spec.kind == ParameterKind::Real || spec.kind == ParameterKind::Integer;
            if (spec.id != taken && spec.kind != ParameterKind::Text && (number || !numbersOnly)) return spec.id;
        }
    throw Error(
        {card.name + " has nothing that could be varied", "axis", "Make a pane with another policy the active one"});
}

} // namespace kvscope
