#pragma once

#include "views/common/policy_style.h"
#include "views/scene/axes.h"
#include "views/scene/theme.h"
#include "views/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// How a pane looks wherever panes stand side by side: its policy's colour and marker. The first pane of a policy has
/// the policy's dash and solid areas. A further one is dashed (the second 2-2), with paler areas, dashed outlines and
/// broken thin bars, so that two panes of one policy differ by more than their letters.
class PaneIdentity {
public:
    /// `earlier`: panes of the same policy before this one.
    PaneIdentity(std::string_view policyId, int earlier, ThemeId theme);

    Colour colour() const { return m_style.colour; }
    Marker marker() const { return m_style.marker; }
    const std::vector<double>& dash() const { return m_style.dash; } ///< of the pane's lines
    bool isRepeated() const { return m_earlier > 0; }

    Colour areaFill() const;
    Stroke areaOutline() const;                  ///< transparent for the first pane
    LegendEntry legend(std::string label) const; ///< a square filled like an area
    /// A bar or a cell.
    void drawArea(SceneBuilder& builder, const Box& box, PickId pick = {}) const;
    /// A horizontal bar that is too thin for an outline.
    void drawThinBar(SceneBuilder& builder, const Box& box) const;
    /// Whether a rail has the colour at this distance in pixels from its edge; the dash runs across its thickness.
    bool railHas(double fromEdge) const;

private:
    PolicyStyle m_style;
    int m_earlier = 0;
};

/// The identity of the pane with this letter and policy; of older data, of the policy that the pane had.
PaneIdentity identityOf(const ViewInput& input, char letter, std::string_view policyId, ThemeId theme);
PaneIdentity identityOf(const ViewInput& input, const PaneName& pane, ThemeId theme);

/// A pane's letter on its policy's colour, in a square of this size.
void drawBadge(SceneBuilder& builder, char letter, std::string_view policyId, Point centre, ThemeId theme,
               double size = 16);

} // namespace kvscope
