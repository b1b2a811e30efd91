#pragma once

#include "app/study/session.h"

#include <string>

namespace kvscope {

/// One table with a row per pane (means over the query heads of the KV head shown), one with a row per query head of
/// the layer, as HTML.
std::string measureTables(const ViewInput& input);

/// Per pane: the kept positions of every KV head of the layer as ranges, the kept tokens of the shown head with text,
/// rank and score, and the command that writes the list. `session`: source of the commands.
std::string keptLists(const ViewInput& input, const Session& session);

} // namespace kvscope
