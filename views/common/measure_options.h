#pragma once

#include "core/metrics/measures.h"
#include "core/parameters/parameters.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The choices of a view's option: every measure of the registry that has a number per head, by groups, the output
/// error first. Each of the view's `own` quantities names a group and stands at its end.
std::vector<ParameterChoice> measureChoices(const std::vector<ParameterChoice>& own = {});
/// Whether this is the id of a measure that has a number per head.
bool isHeadMeasure(std::string_view id);
/// Ids of the signed measures (0 in the middle), which have diverging colours.
std::vector<std::string> signedMeasures();
/// The ids of choices, for checks of typed texts. The string views live as long as the choices.
std::vector<std::string_view> idsOf(const std::vector<ParameterChoice>& choices);

/// Words as they stand within a sentence; a capital that is followed by no small letter stays: "KL".
std::string uncapitalised(std::string words);
/// Within a sentence: "retained attention mass", "ε of BalanceKV (Frobenius norm)", "‖k‖".
inline std::string measureWords(const MeasureCard& card) { return uncapitalised(card.label); }
/// As an axis title: "Attention entropy, nat".
std::string withUnit(const std::string& title, const std::string& unit);
inline std::string measureTitle(const MeasureCard& card) { return withUnit(card.label, card.unit); }
/// " nat" after a number, or nothing.
std::string unitBehind(const std::string& unit);
/// Whether larger numbers are better; false for a measure without a direction, whose findings name the largest.
inline bool higherWins(const MeasureCard& card) { return card.better == MeasureDirection::LargerIsBetter; }

} // namespace kvscope
