// What the options of several views have in common, and how one depends on another: a chunk size needs the map of
// chunks, a floor the logarithmic scale. Menus, `kvscope views` and tests read these dependencies.
#include "views/common/view_options.h"

#include "core/parameters/parameter_rows.h"
#include "views/common/value_range.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvscope {

namespace {
constexpr std::string_view kEscaped = ";\\ "; // by a backslash, in the name of a file
} // namespace

std::vector<std::string> filesOf(std::string_view text) {
    std::vector<std::string> files;
    std::string name;
    std::size_t length = 0; // of the name without the blanks at its end
    const auto endName = [&] {
        name.resize(std::exchange(length, 0));
        if (!name.empty()) files.push_back(std::exchange(name, {}));
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool isEscaped = text[i] == '\\' && i + 1 < text.size() && kEscaped.find(text[i + 1]) != kEscaped.npos;
        const char c = text[isEscaped ? ++i : i];
        if (c == ';' && !isEscaped) {
            endName();
        } else if (c != ' ' || isEscaped || !name.empty()) {
            name += c;
            if (c != ' ' || isEscaped) length = name.size();
        }
    }
    endName();
    return files;
}

std::string filesText(const std::vector<std::string>& files) {
    std::string text;
    for (const std::string& file : files) {
        if (!text.empty()) text += ';';
        for (std::size_t i = 0; i < file.size(); ++i) {
            const bool isInside = i > 0 && i + 1 < file.size();
            if (kEscaped.find(file[i]) != kEscaped.npos && !(file[i] == ' ' && isInside)) text += '\\';
            text += file[i];
        }
    }
    return text;
}

ParameterSpec axisRangeOption(std::string source, void (*check)(std::string_view)) {
    return textRow(kValueRangeOption, "Range of values", "auto", Stage::Select,
                   "Values at the ends of the vertical axis, like 0.001..0.2; auto: around the values, one range for "
                   "pictures of two captures or of all heads; each: every picture its own.",
                   std::move(source), check);
}

ParameterSpec paneOption(std::string id, std::string label, char standard, Stage stage, std::string help,
                         std::string source) {
    ParameterSpec option = choiceRow(
        std::move(id), std::move(label),
        {{"A", "A", "first pane"}, {"B", "B", "second pane"}, {"C", "C", "third pane"}, {"D", "D", "fourth pane"}},
        stage, std::move(help), std::move(source));
    option.unit = kPaneUnit;
    option.defaultValue = standard - 'A';
    return option;
}

ParameterSpec colourMapOption(std::string id) {
    return choiceRow(std::move(id), "Colours",
                     {{"viridis", "viridis", "even steps of lightness"},
                      {"cividis", "cividis", "the same for most kinds of colour vision"},
                      {"magma", "magma", "dark ground"},
                      {"greys", "greys", "for print"}},
                     Stage::Select, "Sequential colour map.", "viridis is even in lightness");
}

namespace {

const ParameterSpec& specOf(const ParameterTable& options, std::string_view id) {
    const auto found = std::ranges::find(options, id, &ParameterSpec::id);
    assert(found != options.end());
    return *found;
}

/// A value as menus show it: the label of a choice, "on" or "off", "empty" for a text that holds nothing.
std::string shownValue(const ParameterSpec& spec, const std::string& value) {
    if (spec.kind == ParameterKind::Flag) return value == "true" ? "on" : "off";
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == value) return choice.label;
    return value.empty() ? "empty" : value;
}

/// "Map is Causal, Non-causal or Chunks". A long list of allowed values is worded by the excluded ones.
std::string termWords(const ParameterSpec& spec, const OptionIs& term) {
    if (term.values.empty()) return spec.label + " is set";
    const bool most = spec.choices.size() > 5 && 2 * term.values.size() > spec.choices.size();
    std::vector<std::string> listed = term.values;
    if (most) listed = choicesBut({spec}, spec.id, term.values);
    std::string words = spec.label + (most ? " is not " : " is ");
    for (std::size_t i = 0; i < listed.size(); ++i)
        words += (i == 0 ? "" : i + 1 < listed.size() ? ", " : " or ") + shownValue(spec, listed[i]);
    return words;
}

bool holds(const ParameterValues& options, const OptionIs& term) {
    if (term.values.empty()) return !options.isDefault(term.id);
    return std::ranges::find(term.values, options.text(term.id)) != term.values.end();
}

} // namespace

std::string needWords(const View& view, const OptionNeed& need) {
    std::string words;
    for (const OptionIs& term : need.anyOf)
        words += (words.empty() ? "" : ", or ") + termWords(specOf(*view.card().options, term.id), term);
    return words;
}

std::string whyIdle(const View& view, const ParameterValues& options, std::string_view id) {
    for (const OptionNeed& need : view.card().needs) {
        if (need.id != id) continue;
        std::string why = "Matters only while " + needWords(view, need);
        for (const OptionIs& term : need.anyOf)
            if (holds(options, term)) {
                why = whyIdle(view, options, term.id);
                if (why.empty()) break;
            }
        if (!why.empty()) return why;
    }
    return {};
}

std::vector<std::string> choicesBut(const ParameterTable& options, std::string_view id,
                                    const std::vector<std::string>& left) {
    std::vector<std::string> ids;
    for (const ParameterChoice& choice : specOf(options, id).choices)
        if (std::ranges::find(left, choice.id) == left.end()) ids.push_back(choice.id);
    return ids;
}

} // namespace kvscope
