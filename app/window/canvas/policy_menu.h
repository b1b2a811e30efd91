#pragma once

#include "core/policies/policy_spec.h"

#include <functional>

class QMenu;

namespace kvscope {

class Workbench;

/// Fills a menu with every policy, each with its variants where it has several; the chosen one becomes a pane.
void fillPolicyMenu(QMenu* menu, Workbench& workbench);
/// The variants of one policy, the current one ticked.
void fillVariantMenu(QMenu* menu, const PolicySpec& current, const std::function<void(const PolicySpec&)>& chosen);
void removePane(Workbench& workbench, int pane); ///< as one step of undo; nothing where there is no such pane

} // namespace kvscope
