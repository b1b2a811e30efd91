#pragma once

#include "app/workbench/workbench.h"
#include "views/common/pane_offers.h"

#include <QPushButton>

namespace kvscope {

/// Under the sentence of a view that is empty for want of a policy: gives it one. Hidden while the view offers nothing.
class OfferButton : public QPushButton {
public:
    explicit OfferButton(QWidget* canvas);

    /// Looks anew at what the view offers.
    void refresh(const View& view, const ViewInput& input, const ParameterValues& options);
    /// Puts itself where the sentence of the view's scene ends.
    void place(const Scene& scene);
    /// Height at the bottom of the canvas that the sentence leaves to the button, in device-independent pixels.
    int room() const;
    const std::optional<PaneOffer>& offer() const { return m_offer; }

private:
    std::optional<PaneOffer> m_offer;
};

/// The session with the policy that is offered: in a further pane or, where there are kMaxPanes, in the active one.
void takeOffer(Session& session, const PaneOffer& offer);

} // namespace kvscope
