#pragma once

#include "app/workbench/workbench.h"

#include <QString>

namespace kvscope {

/// The first run of tokens after `after` whose joined text holds `needle` (case ignored); wraps around; a whole number
/// is a position. Empty: not found.
std::vector<TokenIndex> findTokens(const TokenTable& tokens, const QString& needle, TokenIndex after);

/// Selects the needle that the question asks for; where a needle is selected, the next one, wrapping around. False when
/// the capture has none.
bool selectNextNeedle(Workbench& workbench);

/// Selects all hits of a text. Returns how many there are; the selection stays where there is none. A capture is open.
std::int64_t selectHits(Workbench& workbench, const QString& wanted);
/// How many places hold the text, and how many of those before the cut each pane keeps with all their tokens.
QString hitsText(const ViewInput& input, const QString& wanted);

} // namespace kvscope
