// Options of views, as rows of the same kind of table as policies' parameters.
#include "views/common/view_options.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

ParameterSpec row(std::string id, std::string label, std::string help, std::string source, ParameterKind kind,
                  Stage stage) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.help = std::move(help);
    spec.source = std::move(source);
    spec.kind = kind;
    spec.step = 1;
    spec.stage = stage;
    return spec;
}

} // namespace

ParameterSpec choiceOption(std::string id, std::string label, std::string help, std::string source,
                           std::vector<ParameterChoice> choices, Stage stage) {
    ParameterSpec spec =
        row(std::move(id), std::move(label), std::move(help), std::move(source), ParameterKind::Choice, stage);
    spec.max = static_cast<double>(choices.size()) - 1;
    spec.choices = std::move(choices);
    return spec;
}

ParameterSpec flagOption(std::string id, std::string label, std::string help, std::string source, bool standard,
                         Stage stage) {
    ParameterSpec spec =
        row(std::move(id), std::move(label), std::move(help), std::move(source), ParameterKind::Flag, stage);
    spec.defaultValue = standard ? 1 : 0;
    return spec;
}

ParameterSpec integerOption(std::string id, std::string label, std::string help, std::string source, double min,
                            double max, double standard, Stage stage) {
    ParameterSpec spec =
        row(std::move(id), std::move(label), std::move(help), std::move(source), ParameterKind::Integer, stage);
    spec.min = min;
    spec.max = max;
    spec.defaultValue = standard;
    return spec;
}

ParameterSpec realOption(std::string id, std::string label, std::string help, std::string source, double min,
                         double max, double standard, Stage stage) {
    ParameterSpec spec =
        row(std::move(id), std::move(label), std::move(help), std::move(source), ParameterKind::Real, stage);
    spec.min = min;
    spec.max = max;
    spec.defaultValue = standard;
    spec.step = 0;
    return spec;
}

ParameterSpec textOption(std::string id, std::string label, std::string help, std::string source, std::string standard,
                         void (*check)(std::string_view), Stage stage) {
    ParameterSpec spec =
        row(std::move(id), std::move(label), std::move(help), std::move(source), ParameterKind::Text, stage);
    spec.step = 0;
    spec.defaultText = std::move(standard);
    spec.check = check;
    return spec;
}

ParameterSpec namingOption(std::string id, std::string label, std::string help, std::string source, const char* unit) {
    ParameterSpec spec =
        textOption(std::move(id), std::move(label), std::move(help), std::move(source), {}, nullptr, Stage::Features);
    spec.unit = unit;
    return spec;
}

std::vector<std::string> filesOf(std::string_view text) {
    std::vector<std::string> files;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(';'), text.size());
        std::string_view name = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t first = name.find_first_not_of(' ');
        if (first != std::string_view::npos)
            files.emplace_back(name.substr(first, name.find_last_not_of(' ') + 1 - first));
    }
    return files;
}

ParameterSpec colourMapOption() {
    return choiceOption("colours", "Colours", "Sequential colour map.", "viridis is even in lightness",
                        {{"viridis", "viridis", "even steps of lightness"},
                         {"cividis", "cividis", "the same for most kinds of colour vision"},
                         {"magma", "magma", "dark ground"},
                         {"greys", "greys", "for print"}});
}

} // namespace kvscope
