// Budgets: how a typed fraction or token count becomes a number of kept tokens. Sources round differently (X2), so the
// rounding is an argument; whatever it is, at least one token is kept.
#include "core/policies/selection.h"

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/policies/fraction_removed.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr const char* budgetForm = "Give the fraction kept (0.25), tokens (2048t) or a quality (tau=0.95)";

[[noreturn]] void refuseBudget(const std::string& typed, const std::string& why,
                               const std::string& remedy = budgetForm) {
    throw Error({"budget '" + typed + "' " + why, "budget", remedy});
}

double readBudgetNumber(const std::string& text, std::string_view digits) {
    const auto value = parseNumber<double>(digits);
    if (!value || !std::isfinite(*value)) refuseBudget(text, "is not a number");
    return *value;
}

std::int64_t roundedTokens(double fraction, double n, Rounding rounding) {
    switch (rounding) {
    case Rounding::Floor:
        return static_cast<std::int64_t>(std::floor(tokensLeft(n, fraction)));            // 9 of 100 at r = 0.1 (X2)
    case Rounding::Round: return static_cast<std::int64_t>(std::nearbyint(fraction * n)); // halves to even
    case Rounding::Ceil: break;
    }
    return static_cast<std::int64_t>(std::ceil(fraction * n - 1e-9));
}

constexpr std::string_view qualityPrefix = "tau=";

/// "tau=0.95" or "tau=0.95:CURVE".
Budget readQuality(const std::string& text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    Budget budget{Budget::Unit::Quality, 0, {}};
    budget.value =
        readBudgetNumber(text, std::string_view(text).substr(qualityPrefix.size(), colon - qualityPrefix.size()));
    if (!(budget.value > 0 && budget.value <= 1))
        refuseBudget(text, "asks for no quality from above 0 to 1", "Give tau=0.95, say");
    if (colon + 1 == text.size())
        refuseBudget(text, "names no curve after the colon",
                     "Leave the colon out, or write tau=0.95:proxy, tau=0.95:k=-5 or tau=0.95:FILE.json");
    if (colon < text.size()) budget.curve = text.substr(colon + 1);
    return budget;
}

} // namespace

bool Selection::sameLists(const Selection& other) const {
    return std::ranges::equal(heads, other.heads, [](const HeadSelection& a, const HeadSelection& b) {
        return a.kept == b.kept &&
               std::ranges::equal(a.queryHeads, b.queryHeads, [](const QueryHeadSet& x, const QueryHeadSet& y) {
                   return x.queryHead == y.queryHead && x.kept == y.kept;
               });
    });
}

bool Selection::perQueryHead() const {
    return std::ranges::any_of(heads, [](const HeadSelection& head) { return !head.queryHeads.empty(); });
}

double HeadSelection::attendedTokens() const {
    if (queryHeads.empty()) return static_cast<double>(kept.size());
    double sum = 0;
    for (const QueryHeadSet& own : queryHeads) sum += static_cast<double>(own.kept.size());
    return sum / static_cast<double>(queryHeads.size());
}

const std::vector<TokenIndex>& HeadSelection::attendedBy(std::int32_t queryHead) const {
    const auto own = std::ranges::find(queryHeads, queryHead, &QueryHeadSet::queryHead);
    return own == queryHeads.end() ? kept : own->kept;
}

Budget Budget::parse(const std::string& text) {
    if (text.starts_with(qualityPrefix)) return readQuality(text);
    const bool tokens = !text.empty() && text.back() == 't';
    Budget budget;
    budget.unit = tokens ? Unit::Tokens : Unit::Fraction;
    budget.value = readBudgetNumber(text, std::string_view(text).substr(0, text.size() - (tokens ? 1 : 0)));
    if (tokens && (budget.value < 1 || budget.value != std::floor(budget.value) || budget.value > 0x1p31))
        refuseBudget(text, "is not a whole number of tokens, at least 1");
    if (!tokens && budget.value > 1 && budget.value == std::floor(budget.value))
        refuseBudget(text, "is not a fraction from above 0 to 1", "For tokens write " + text + "t");
    if (!tokens && !(budget.value > 0 && budget.value <= 1)) refuseBudget(text, "is not a fraction from above 0 to 1");
    return budget;
}

std::string Budget::text() const {
    if (unit == Unit::Tokens) return std::to_string(static_cast<std::int64_t>(value)) + "t";
    if (unit == Unit::Fraction) return shortest(value);
    return std::string(qualityPrefix) + shortest(value) + (curve.empty() ? "" : ":" + curve);
}

std::int64_t resolveBudget(const Budget& budget, std::int64_t n, Rounding rounding) {
    if (n < 1) throw Error({"no token lies before the cut", "cut", "Choose a later cut"});
    if (budget.unit == Budget::Unit::Quality)
        throw Error({"budget '" + budget.text() + "' is a quality, and no curve has made a retention of it", "budget",
                     "Give the fraction kept (0.25) or tokens (2048t)"});
    if (budget.unit == Budget::Unit::Tokens) {
        if (!(budget.value >= 1 && budget.value <= static_cast<double>(n)))
            refuseBudget(budget.text(), "does not fit: " + std::to_string(n) + " tokens lie before the cut",
                         "Give 1t to " + std::to_string(n) + "t");
        return static_cast<std::int64_t>(budget.value);
    }
    if (!(budget.value > 0 && budget.value <= 1)) refuseBudget(budget.text(), "is not a fraction from above 0 to 1");
    return std::clamp<std::int64_t>(roundedTokens(budget.value, static_cast<double>(n), rounding), 1, n);
}

double retentionOf(const Budget& budget, std::int64_t rows) {
    return budget.unit == Budget::Unit::Fraction ? budget.value : budget.value / static_cast<double>(rows);
}

} // namespace kvscope
