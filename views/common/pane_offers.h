#pragma once

#include "views/view.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// What would fill an empty view: a policy in a further pane, or a setting of an existing pane.
struct PaneOffer {
    std::string spec;                 ///< of the policy (`PolicySpec`); empty: `settingChange` is offered
    SettingChange settingChange = {}; ///< pane to activate, and its values
    std::string label = {};           ///< what `settingChange` does: "Show pane B"
};

/// Interface of views that show certain policies only.
class PaneOffersView {
public:
    virtual ~PaneOffersView() = default;
    /// Nothing while the view has a picture, waits for one, or no policy would help.
    virtual std::optional<PaneOffer> offer(const ViewInput& input, const ParameterValues& options) const = 0;
};

/// For a view of the active pane that shows these policies only (ids, the first is the one to add): another pane that
/// has one, else a further pane. Nothing while the active pane has one or waits for its first result.
std::optional<PaneOffer> offerPolicy(const ViewInput& input, const std::vector<std::string_view>& policies);
/// Makes a pane the active one.
PaneOffer offerToShow(const ViewInput& input, int pane);

} // namespace kvscope
