// The pane for views of balancing: the active pane, else any pane with such a policy, else an example.
#include "app/study/makers/balance_panes.h"

#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kvscope {

namespace {

bool runsOneOf(const PaneRequest& pane, std::span<const PolicyFamily> families) {
    return pane.recordedPath.empty() && std::ranges::find(families, familyOf(pane.run.policy.policy)) != families.end();
}

std::string nameOf(const PolicySpec& spec, std::size_t pane) {
    const PolicyCard& card = policyById(spec.policy).card();
    std::string name = std::string(1, static_cast<char>('A' + pane)) + "  " + card.name;
    const auto variant = std::ranges::find(card.variants, spec.variant, &PolicyVariant::id);
    return variant == card.variants.end() ? name : name + ", " + variant->id;
}

/// "BalanceKV streaming, batch 64, 4 levels": the typed parameters by label.
std::string inWords(const PolicySpec& spec) {
    const PolicyCard& card = policyById(spec.policy).card();
    std::string words = card.name;
    std::erase(words, ','); // commas of the name itself
    const ParameterValues presets = variantValues(card, spec.variant);
    for (const ParameterSpec& row : *card.parameters) {
        const std::string value = spec.values.text(row.id);
        if (value == presets.text(row.id)) continue;
        std::string label = row.label;
        label.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(label.front())));
        words += ", " + (row.unit == label ? value + " " + label : label + " " + value);
    }
    if (spec.budget && spec.budget->unit == Budget::Unit::Fraction)
        words += fmt::format(", {:g} % kept", 100 * spec.budget->value);
    return words;
}

} // namespace

ShownRun shownRun(const ViewDataRequest& request, std::span<const PolicyFamily> families, const std::string& standIn) {
    ShownRun shown;
    std::size_t chosen = request.panes.size();
    const auto active = static_cast<std::size_t>(std::max(0, request.activePane));
    for (std::size_t pane = request.panes.size(); pane-- > 0;)
        if (runsOneOf(request.panes[pane], families) && chosen != active) chosen = pane;
    if (active < request.panes.size() && runsOneOf(request.panes[active], families)) chosen = active;
    if (chosen < request.panes.size()) {
        shown.run = request.panes[chosen].run;
        shown.source = nameOf(shown.run.policy, chosen);
    } else {
        shown.standIn = true;
        shown.run = request.loggedRun(PolicySpec::parse(standIn));
        shown.source = inWords(shown.run.policy);
        shown.run.budget = shown.run.policy.budget.value_or(Budget{});
        shown.run.policy.budget.reset();
    }
    shown.run.measure = false;
    shown.run.recordSteps = true;
    return shown;
}

} // namespace kvscope
