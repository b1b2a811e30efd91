// A button that adds a suitable policy to a view that is empty without one.
#include "app/window/canvas/offer_button.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include "app/workbench/drawn_views.h"
#include "core/policies/policy.h"
#include "views/common/pane_offers.h"
#include "views/common/view_facts.h"

namespace kvscope {

namespace {

QString labelOf(const PaneOffer& offer, const ViewInput& input) {
    if (offer.spec.empty()) return fromUtf8(offer.label);
    const QString name = fromUtf8(policyById(PolicySpec::parse(offer.spec).policy).card().name);
    if (input.panes.size() < static_cast<std::size_t>(kMaxPanes)) return QObject::tr("Add a pane with %1").arg(name);
    return QObject::tr("Use %1 in pane %2").arg(name).arg(QChar(input.panes[input.activePane].letter));
}

/// The bottom of the lowest text in an empty view's scene.
double sentenceEnd(const Scene& scene) {
    double end = 0;
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item))
            end = std::max(end, text->position.y + text->style.size * 0.75);
    return end;
}

} // namespace

int failedPane(const View& view, const ViewInput& input, const ParameterValues& options) {
    const std::string why = view.whyNoPicture(input, options);
    if (why.empty() || isLayerBroken(input)) return -1;
    const auto failed = [&](int pane) { return withFullStop(asSentence(input.panes[pane].error)) == why; };
    const int count = static_cast<int>(input.panes.size());
    if (input.activePane >= 0 && input.activePane < count && failed(input.activePane)) return input.activePane;
    for (int pane = 0; pane < count; ++pane)
        if (failed(pane)) return pane;
    return -1;
}

OfferButton::OfferButton(QWidget* canvas) : QPushButton(canvas) {
    setObjectName("offer");
    hide();
}

void OfferButton::refresh(const View& view, const ViewInput& input, const ParameterValues& options,
                          bool hasParameters) {
    m_offer = view.offer(input, options);
    const int failed = m_offer || !hasParameters ? -1 : failedPane(view, input, options);
    m_leadsToParameters = failed >= 0;
    if (m_leadsToParameters) {
        m_offer = offerToShow(input, failed);
        m_offer->label = tr("Show the parameters of pane %1").arg(QChar(input.panes[failed].letter)).toStdString();
    }
    if (m_offer) {
        setText(labelOf(*m_offer, input));
        resize(sizeHint());
    }
    setVisible(m_offer.has_value());
}

int OfferButton::room() const { return m_offer ? sizeHint().height() + px(12) : 0; }

void OfferButton::place(const Scene& scene) {
    if (!m_offer) return;
    const QSize canvas = parentWidget()->size();
    const int under = static_cast<int>(sentenceEnd(scene) * appearance().scale) + px(8);
    move((canvas.width() - width()) / 2, std::min(under, canvas.height() - height() - px(4)));
}

void takeOffer(Session& session, const PaneOffer& offer) {
    const SessionPane pane{PolicySpec::parse(offer.spec), {}, {}};
    if (!addPane(session, pane)) session.panes[session.activePane] = pane;
}

} // namespace kvscope
