// A policy as typed: ID[:VARIANT][,parameter=value]...[@BUDGET]. The same text is in session files, captions and the
// command that regenerates a figure, so the printed form is the shortest one that parses back to the same.
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

std::vector<std::string> parameterIds(const PolicyCard& card) {
    std::vector<std::string> ids;
    for (const ParameterSpec& spec : *card.parameters)
        ids.push_back(spec.id);
    return ids;
}

[[noreturn]] void refuseParameter(const PolicyCard& card, const std::string& id) {
    if (!card.blockRefusal.empty() && isBlockParameter(id))
        throw Error({card.id + " cannot run in blocks: " + card.blockRefusal, "parameter " + id, "Leave it out", {}});
    throw Error({"unknown parameter '" + id + "' of " + card.id, {}, suggestName(id, parameterIds(card)), {}});
}

void assign(const PolicyCard& card, ParameterValues& values, const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        throw Error({"'" + assignment + "' is not parameter=value",
                     card.id,
                     "Write, for example, " +
                         (card.parameters->empty() ? card.id : card.id + "," + card.parameters->front().id + "=..."),
                     {}});
    const std::string id = assignment.substr(0, equals);
    if (!values.has(id))
        refuseParameter(card, id);
    values.setText(id, assignment.substr(equals + 1));
}

} // namespace

PolicySpec PolicySpec::parse(const std::string& text) {
    PolicySpec spec;
    const std::size_t at = text.find('@');
    if (at != std::string::npos)
        spec.budget = Budget::parse(text.substr(at + 1));
    const std::vector<std::string> parts = split(text.substr(0, at), ',');
    const std::size_t colon = parts.front().find(':');
    const PolicyCard& card = policyById(parts.front().substr(0, colon)).card();
    spec.policy = card.id;
    spec.variant = colon == std::string::npos ? card.variants.front().id : parts.front().substr(colon + 1);
    if (spec.variant.empty())
        throw Error({"'" + text + "' names no variant after the colon", card.id, "Leave the colon out", {}});
    spec.values = variantValues(card, spec.variant);
    for (std::size_t i = 1; i < parts.size(); ++i)
        assign(card, spec.values, parts[i]);
    return spec;
}

std::string PolicySpec::text() const {
    const PolicyCard& card = policyById(policy).card();
    const ParameterValues presets = variantValues(card, variant);
    std::string text = policy;
    if (variant != card.variants.front().id)
        text += ":" + variant;
    for (const ParameterSpec& row : *card.parameters)
        if (values.text(row.id) != presets.text(row.id))
            text += "," + row.id + "=" + values.text(row.id);
    return budget ? text + "@" + budget->text() : text;
}

} // namespace kvscope
