#pragma once

#include "app/workbench/workbench.h"

#include <QString>

namespace kvscope {

/// The first run of tokens after `after` whose joined text holds `needle` (case ignored); wraps around; a whole number
/// is a position. Empty: not found.
std::vector<TokenIndex> findTokens(const TokenTable& tokens, const QString& needle, TokenIndex after);

/// Selects the next segment of a kind after the current selection, wrapping around. False when the capture has none.
bool selectNextSegment(Workbench& workbench, SegmentKind kind);

} // namespace kvscope
