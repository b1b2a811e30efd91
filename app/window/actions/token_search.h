#pragma once

#include "app/study/prompt_text.h"
#include "app/workbench/workbench.h"

#include <QString>

#include <optional>

namespace kvscope {

/// The position that the text is, if it is a whole number.
std::optional<TokenIndex> positionIn(const QString& wanted);
/// The places of the text (case ignored), ascending; if there are none and the text is a whole number, that position.
std::vector<TokenRun> placesOf(const TokenTable& tokens, const QString& wanted);

/// Selects the needle that the question asks for; where a needle is selected, the next one, wrapping around. False when
/// the capture has none.
bool selectNextNeedle(Workbench& workbench);

/// Selects all hits of a text, or leaves the selection if there are none. Returns their number. A capture must be open.
std::int64_t selectHits(Workbench& workbench, const QString& wanted);
/// How many places hold the text, and how many of those before the cut each pane keeps with all their tokens.
QString hitsText(const ViewInput& input, const QString& wanted);

} // namespace kvscope
