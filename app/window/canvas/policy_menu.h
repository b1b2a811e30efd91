#pragma once

#include "core/policies/policy_spec.h"

#include <functional>

class QMenu;

namespace kvscope {

/// Fills a menu with every policy, each with its variants where it has several. The same menu serves "Add a policy",
/// the Policies menu and the pane headers.
void fillPolicyMenu(QMenu* menu, const std::function<void(const PolicySpec&)>& chosen);
/// The variants of one policy, the current one ticked.
void fillVariantMenu(QMenu* menu, const PolicySpec& current, const std::function<void(const PolicySpec&)>& chosen);

} // namespace kvscope
