// Options, axis titles and sentences of views that show any measure, from the registry of measures.
#include "views/common/measure_options.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace kvscope {

std::vector<ParameterChoice> measureChoices(const std::vector<ParameterChoice>& own) {
    using enum MeasureGroup;
    std::vector<ParameterChoice> choices;
    for (const MeasureGroup group : {OutputError, Mass, TwoPanes, KeptKeys, ExactAttention, Geometry}) {
        for (const MeasureCard& card : allMeasures())
            if (card.isPerHead() && card.group == group)
                choices.push_back({card.id, measureTitle(card), card.help, headingOf(group)});
        std::ranges::copy_if(own, std::back_inserter(choices),
                             [&](const ParameterChoice& choice) { return choice.group == headingOf(group); });
    }
    return choices;
}

bool isHeadMeasure(std::string_view id) {
    const std::vector<MeasureCard>& all = allMeasures();
    return std::ranges::any_of(all, [&](const MeasureCard& card) { return card.id == id && card.isPerHead(); });
}

std::vector<std::string> signedMeasures() {
    std::vector<std::string> ids;
    for (const MeasureCard& card : allMeasures())
        if (card.isSigned) ids.push_back(card.id);
    return ids;
}

std::vector<std::string_view> idsOf(const std::vector<ParameterChoice>& choices) {
    std::vector<std::string_view> ids;
    for (const ParameterChoice& choice : choices) ids.emplace_back(choice.id);
    return ids;
}

std::string uncapitalised(std::string words) {
    if (words.size() > 1 && static_cast<unsigned char>(words[1]) < 128 &&
        std::islower(static_cast<unsigned char>(words[1])))
        words[0] =
            static_cast<char>(std::tolower(static_cast<unsigned char>(words[0]))); // ASCII only: ε and ‖ are longer
    return words;
}

std::string withUnit(const std::string& title, const std::string& unit) {
    return unit.empty() ? title : title + ", " + unit;
}

std::string unitBehind(const std::string& unit) { return unit.empty() ? "" : " " + unit; }

} // namespace kvscope
