#pragma once

#include "app/study/prompt_text.h"
#include "app/workbench/workbench.h"

#include <QString>

namespace kvscope {

/// Where the text stands (case ignored); if nowhere, a whole number is a position. Ascending.
std::vector<TokenRun> placesOf(const TokenTable& tokens, const QString& wanted);

/// Selects the needle that the question asks for; where a needle is selected, the next one, wrapping around. False when
/// the capture has none.
bool selectNextNeedle(Workbench& workbench);

/// Selects all hits of a text. Returns how many there are; the selection stays where there is none. A capture is open.
std::int64_t selectHits(Workbench& workbench, const QString& wanted);
/// How many places hold the text, and how many of those before the cut each pane keeps with all their tokens.
QString hitsText(const ViewInput& input, const QString& wanted);

} // namespace kvscope
