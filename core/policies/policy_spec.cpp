// A policy as typed: ID[:VARIANT][,parameter=value]...[@BUDGET]. Session files, captions and regenerating commands hold
// the shortest text that parses back to the same policy.
#include "core/policies/policy_spec.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

#include <set>

namespace kvscope {

namespace {

/// A text split at its commas, and the part after its first @. Commas and @ in quotes do not split, nor do commas in
/// parentheses and brackets, which may be those of a formula.
struct Pieces {
    std::vector<std::string> parts{std::string()};
    std::optional<std::string> budget;
};

Pieces split(const std::string& text) {
    Pieces pieces;
    int depth = 0;
    bool inQuotes = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inQuotes && c == '\\' && i + 1 < text.size()) {
            pieces.parts.back() += text[++i];
        } else if (c == '"') {
            inQuotes = !inQuotes;
        } else if (!inQuotes && c == '@') {
            pieces.budget = text.substr(i + 1);
            return pieces;
        } else if (!inQuotes && c == ',' && depth <= 0) {
            pieces.parts.emplace_back();
            depth = 0;
        } else {
            depth += inQuotes ? 0 : c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
            pieces.parts.back() += c;
        }
    }
    if (inQuotes)
        throw Error({"'" + text + "' opens a quote and does not close it", "policy", "Add the closing quote"});
    return pieces;
}

std::vector<std::string> parameterIds(const PolicyCard& card) {
    std::vector<std::string> ids;
    for (const ParameterSpec& spec : *card.parameters) ids.push_back(spec.id);
    return ids;
}

[[noreturn]] void refuseParameter(const PolicyCard& card, const std::string& id) {
    if (!card.blockRefusal.empty() && isBlockParameter(id))
        throw Error({card.id + " cannot run in blocks: " + card.blockRefusal, "parameter " + id, "Leave it out"});
    throw Error({"unknown parameter '" + id + "' of " + card.id, "", suggestName(id, parameterIds(card))});
}

/// Assigns one "parameter=value"; returns the parameter's id.
std::string assign(const PolicyCard& card, ParameterValues& values, const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        throw Error({"'" + assignment + "' is not parameter=value", card.id,
                     "Write, for example, " +
                         (card.parameters->empty() ? card.id : card.id + "," + card.parameters->front().id + "=...")});
    const std::string id = assignment.substr(0, equals);
    if (!values.has(id)) refuseParameter(card, id);
    values.setText(id, assignment.substr(equals + 1));
    return id;
}

} // namespace

PolicySpec PolicySpec::parse(const std::string& text) {
    const Pieces pieces = split(text);
    std::optional<Budget> budget;
    if (pieces.budget) budget = Budget::parse(*pieces.budget);
    const std::vector<std::string>& parts = pieces.parts;
    const std::size_t colon = parts.front().find(':');
    const PolicyCard& card = policyById(parts.front().substr(0, colon)).card();
    const std::string afterColon = colon == std::string::npos ? std::string() : parts.front().substr(colon + 1);
    if (colon != std::string::npos && afterColon.empty())
        throw Error({"'" + text + "' names no variant after the colon", card.id, "Leave the colon out"});
    PolicySpec spec = specOfVariant(card.id, card.colonParameter.empty() ? afterColon : std::string());
    spec.budget = budget;
    std::set<std::string> named;
    if (!card.colonParameter.empty() && colon != std::string::npos) {
        spec.values.setText(card.colonParameter, afterColon);
        named.insert(card.colonParameter);
    }
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::string id = assign(card, spec.values, parts[i]);
        if (!named.insert(id).second)
            throw Error({"'" + text + "' names the parameter " + id + " twice", card.id, "Leave one of them out"});
    }
    return spec;
}

PolicySpec specOfVariant(const std::string& policy, const std::string& variant) {
    const PolicyCard& card = policyById(policy).card();
    PolicySpec spec;
    spec.policy = card.id;
    spec.variant = variant.empty() ? card.variants.front().id : variant;
    spec.values = variantValues(card, spec.variant);
    return spec;
}

std::string PolicySpec::text() const {
    const PolicyCard& card = policyById(policy).card();
    const ParameterValues presets = variantValues(card, variant);
    std::string text = policy;
    if (variant != card.variants.front().id) text += ":" + variant;
    if (!card.colonParameter.empty() && !values.isDefault(card.colonParameter))
        text += ":" + values.text(card.colonParameter);
    for (const ParameterSpec& row : *card.parameters)
        if (row.id != card.colonParameter && values.text(row.id) != presets.text(row.id))
            text += "," + row.id + "=" + quoted(values.text(row.id));
    return budget ? text + "@" + budget->text() : text;
}

} // namespace kvscope
