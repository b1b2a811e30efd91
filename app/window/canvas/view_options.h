#pragma once

#include "app/workbench/workbench.h"

class QHBoxLayout;
class QMenu;
class QWidget;

namespace kvscope {

/// Adds a view's options (choices, flags, small numbers) as menu entries that show and set the session's values. Call
/// when the menu opens.
void addOptionEntries(QMenu* menu, Workbench& workbench, const View& view);

/// Chips for the first choices among a view's options, following the session; nothing when it has none.
void addOptionChips(Workbench& workbench, const View& view, QHBoxLayout* row, QWidget* parent);

} // namespace kvscope
