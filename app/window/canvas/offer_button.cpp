// A button that adds a suitable policy to a view that is empty without one.
#include "app/window/canvas/offer_button.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include "core/policies/policy.h"

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

OfferButton::OfferButton(QWidget* canvas) : QPushButton(canvas) {
    setObjectName("offer");
    hide();
}

void OfferButton::refresh(const View& view, const ViewInput& input, const ParameterValues& options) {
    m_offer = view.offer(input, options);
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
