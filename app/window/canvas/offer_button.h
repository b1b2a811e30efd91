#pragma once

#include "app/workbench/workbench.h"
#include "views/view.h"

#include <QPushButton>

namespace kvscope {

/// The pane whose error stands in place of the picture; -1: none does, or the whole layer cannot be read.
int failedPane(const View& view, const ViewInput& input, const ParameterValues& options);

/// Button below the message of a view that is empty because no policy suits it: adds such a policy. Where a pane's
/// policy cannot run, it leads to the pane's parameters. Hidden while there is nothing to offer.
class OfferButton : public QPushButton {
public:
    explicit OfferButton(QWidget* canvas);

    /// Updates the button from the view's offer.
    /// `hasParameters`: the panel of parameters is at hand.
    void refresh(const View& view, const ViewInput& input, const ParameterValues& options, bool hasParameters);
    /// Places the button below the message in the view's scene.
    void place(const Scene& scene);
    /// Height at the bottom of the canvas that the message leaves to the button, in device-independent pixels.
    int room() const;
    const std::optional<PaneOffer>& offer() const { return m_offer; }
    bool leadsToParameters() const { return m_leadsToParameters; }

private:
    std::optional<PaneOffer> m_offer;
    bool m_leadsToParameters = false;
};

/// Adds the offered policy as a further pane, or replaces the active pane's if there are kMaxPanes.
void takeOffer(Session& session, const PaneOffer& offer);

} // namespace kvscope
