// Checked values of a parameter table. Every number is held as a double, and its text form is the shortest one that
// reads back as the same double, so session files, command lines and cache keys agree to the last bit.
#include "core/parameters/parameters.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/base/number_text.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>
#include <optional>

namespace kvscope {

namespace {

/// Whole numbers in plain digits: "100000", not "1e+05", and -0 is 0.
std::string numberText(double value) {
    const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
    return whole ? std::to_string(static_cast<std::int64_t>(value)) : shortest(value);
}

std::optional<double> readFlag(std::string_view text) {
    if (text == "true" || text == "on" || text == "1") return 1;
    if (text == "false" || text == "off" || text == "0") return 0;
    return std::nullopt;
}

std::vector<std::string> choiceIds(const ParameterSpec& spec) {
    std::vector<std::string> ids;
    for (const ParameterChoice& choice : spec.choices) ids.push_back(choice.id);
    return ids;
}

std::optional<double> readChoice(const ParameterSpec& spec, std::string_view text) {
    for (std::size_t i = 0; i < spec.choices.size(); ++i)
        if (spec.choices[i].id == text) return static_cast<double>(i);
    return std::nullopt;
}

bool isWhole(const ParameterSpec& spec) { return spec.kind != ParameterKind::Real; }

// "a whole number from 1 to 63 in steps of 2"
std::string rangeText(const ParameterSpec& spec) {
    if (spec.kind == ParameterKind::Flag) return "true or false";
    std::string text = isWhole(spec) ? "a whole number from " : "a number from ";
    text += numberText(spec.min) + " to " + numberText(spec.max);
    if (isWhole(spec) && spec.step > 1) text += " in steps of " + numberText(spec.step);
    return text;
}

// On a whole-number parameter the step is a rule (an odd width), on a real one only the slider's grid.
bool fits(const ParameterSpec& spec, double value) {
    if (!(value >= spec.min && value <= spec.max)) return false;
    if (!isWhole(spec)) return true;
    return value == std::floor(value) && (spec.step <= 1 || std::fmod(value - spec.min, spec.step) == 0);
}

[[noreturn]] void refuse(const ParameterSpec& spec, std::string_view typed) {
    const std::string sentence = "'" + std::string(typed) + "' is not a value of " + spec.id;
    if (spec.kind == ParameterKind::Choice)
        throw Error({sentence, "parameter " + spec.id, suggestName(typed, choiceIds(spec)), ""});
    throw Error({sentence, "parameter " + spec.id, "Give " + rangeText(spec), ""});
}

// A text must fit on one line of a command line, a caption and a session file.
void refuseControlCharacters(const ParameterSpec& spec, std::string_view text) {
    for (const char c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            throw Error({"the text of " + spec.id + " holds a line break, a tab or another control character",
                         "parameter " + spec.id, "Write it on one line", ""});
}

const ParameterTable& emptyTable() {
    static const ParameterTable table;
    return table;
}

} // namespace

std::string labelAndSymbol(const ParameterSpec& spec) {
    return spec.symbol.empty() || spec.symbol == spec.label ? spec.label : spec.label + " " + spec.symbol;
}

std::string unitBeside(const ParameterSpec& spec) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    const auto found = std::search(spec.label.begin(), spec.label.end(), spec.unit.begin(), spec.unit.end(), same);
    return found == spec.label.end() ? spec.unit : std::string();
}

std::string quoted(std::string_view text) {
    if (text.find_first_of(",@\"\\ ([") == std::string_view::npos) return std::string(text);
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

ParameterValues::ParameterValues(std::shared_ptr<const ParameterTable> table) : m_table(std::move(table)) {
    assert(m_table);
    for (const ParameterSpec& spec : *m_table) {
        assert(spec.kind == ParameterKind::Text || fits(spec, spec.defaultValue));
        m_values.push_back(spec.defaultValue);
        m_texts.push_back(spec.defaultText);
    }
}

const ParameterTable& ParameterValues::table() const { return m_table ? *m_table : emptyTable(); }

bool ParameterValues::has(std::string_view id) const {
    return std::ranges::find(table(), id, &ParameterSpec::id) != table().end();
}

std::size_t ParameterValues::find(std::string_view id) const {
    return static_cast<std::size_t>(&requireNamed(table(), &ParameterSpec::id, id, "unknown parameter") -
                                    table().data());
}

double ParameterValues::real(std::string_view id) const { return m_values[find(id)]; }

std::int64_t ParameterValues::integer(std::string_view id) const {
    const std::size_t i = find(id);
    assert(isWhole(table()[i]));
    return static_cast<std::int64_t>(m_values[i]);
}

bool ParameterValues::flag(std::string_view id) const { return integer(id) != 0; }

const std::string& ParameterValues::choice(std::string_view id) const {
    const std::size_t i = find(id);
    assert(table()[i].kind == ParameterKind::Choice);
    return table()[i].choices[static_cast<std::size_t>(m_values[i])].id;
}

bool ParameterValues::isDefault(std::string_view id) const {
    const std::size_t i = find(id);
    return m_values[i] == table()[i].defaultValue && m_texts[i] == table()[i].defaultText;
}

void ParameterValues::reset(std::string_view id) {
    const std::size_t i = find(id);
    m_values[i] = table()[i].defaultValue;
    m_texts[i] = table()[i].defaultText;
}

void ParameterValues::set(std::string_view id, double value) {
    const std::size_t i = find(id);
    assert(table()[i].kind != ParameterKind::Text);
    if (!fits(table()[i], value)) refuse(table()[i], std::isfinite(value) ? numberText(value) : "not a number");
    m_values[i] = value;
}

void ParameterValues::setText(std::string_view id, std::string_view text) {
    const std::size_t i = find(id);
    const ParameterSpec& spec = table()[i];
    if (spec.kind == ParameterKind::Text) {
        refuseControlCharacters(spec, text);
        if (spec.check) spec.check(text);
        m_texts[i] = text;
        return;
    }
    const std::optional<double> value = spec.kind == ParameterKind::Choice ? readChoice(spec, text)
                                        : spec.kind == ParameterKind::Flag ? readFlag(text)
                                                                           : parseNumber<double>(text);
    if (!value || !fits(spec, *value)) refuse(spec, text);
    m_values[i] = *value;
}

std::string ParameterValues::text(std::string_view id) const {
    const std::size_t i = find(id);
    switch (table()[i].kind) {
    case ParameterKind::Choice: return table()[i].choices[static_cast<std::size_t>(m_values[i])].id;
    case ParameterKind::Flag: return m_values[i] != 0 ? "true" : "false";
    case ParameterKind::Text: return m_texts[i];
    case ParameterKind::Integer:
    case ParameterKind::Real: break;
    }
    return numberText(m_values[i]);
}

std::string ParameterValues::key(Stage stage) const {
    std::string key;
    for (const ParameterSpec& spec : table())
        if (spec.stage <= stage) key += (key.empty() ? "" : ",") + spec.id + "=" + quoted(text(spec.id));
    return key;
}

} // namespace kvscope
