// Rebuilds a view's scene when the session or its results change; a view is a pure function of both.
#include "app/window/canvas/view_canvas.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "views/common/view_facts.h"

#include <QKeyEvent>
#include <QResizeEvent>
#include <QTimer>

#include <algorithm>
#include <utility>

namespace kvscope {

ViewCanvas::ViewCanvas(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_view(view), m_pane(pane), m_text(text),
      m_canvas(new CanvasWidget(
          text, [this](double w, double h) { return sceneFor(w, h); }, this)),
      m_offer(new OfferButton(this)), m_readOut(new ReadOut(workbench, this)) {
    setMinimumSize(px(200), px(60));
    setFocusProxy(m_canvas);
    m_canvas->setFocusPolicy(Qt::StrongFocus);
    m_canvas->setReadsText(isText());
    connectGestures();
    connect(&m_workbench, &Workbench::sessionChanged, this, &ViewCanvas::sessionChanged);
    connect(&m_workbench, &Workbench::rangeChanged, this, &ViewCanvas::rangeChanged);
    connect(&m_workbench, &Workbench::dataChanged, this, &ViewCanvas::dataChanged);
    connect(&m_workbench, &Workbench::focusChanged, this, &ViewCanvas::followFocus);
    connect(&m_workbench, &Workbench::cursorChanged, this, &ViewCanvas::cursorChanged);
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        if (m_view.card().perPane && changed != m_pane) return;
        m_canvas->invalidate();
        m_readOut->refresh();
        m_canvas->setAccessibleDescription(finding());
        refreshOffer();
    });
    connect(m_offer, &QPushButton::clicked, this, &ViewCanvas::takeOffered);
    m_canvas->setAccessibleName(fromUtf8(m_view.card().name));
}

ViewCanvas::~ViewCanvas() {
    delete m_readOut;
    if (m_shown) m_workbench.hideView(m_view);
}

ViewInput ViewCanvas::input() const {
    ViewInput input = m_workbench.viewInput(m_view);
    if (m_view.card().perPane) input.activePane = m_pane;
    if (isText() && input.focus.hovered < 0) input.focus.hovered = m_locked;
    return input;
}

Viewport ViewCanvas::viewportFor(double width, double height) const {
    Viewport viewport;
    viewport.width = width;
    viewport.height = height;
    viewport.pixelScale = appearance().scale * devicePixelRatioF();
    viewport.theme = appearance().theme;
    viewport.text = &m_text;
    viewport.scroll = m_peek.value_or(m_workbench.session().look.stripScroll);
    viewport.besideOthers = m_besideOthers;
    viewport.range = shownRange(m_workbench.session(), m_view);
    return viewport;
}

void ViewCanvas::setBesideOthers(bool beside) {
    if (std::exchange(m_besideOthers, beside) != beside) m_canvas->invalidate();
}

Scene ViewCanvas::sceneFor(double width, double height) {
    const ViewInput now = input();
    const auto pane = static_cast<std::size_t>(m_pane);
    const bool waitsForResult =
        m_view.card().perPane && pane < now.panes.size() && !now.panes[pane].result && now.panes[pane].computing;
    const bool waitsForData = !m_view.card().data.empty() && !now.data.value && now.data.computing;
    // The old picture stays, faded, until the new one is ready, if it has the widget's size.
    const bool sameSize = m_lastScene.width == width && m_lastScene.height == height;
    if ((waitsForResult || waitsForData) && sameSize && !m_lastScene.items.empty()) return m_lastScene;
    const double offered = m_offer->room() / appearance().scale;
    m_lastScene = m_view.buildScene(now, options(), viewportFor(width, std::max(1.0, height - offered)));
    m_lastScene.height = height;
    return m_lastScene;
}

ViewTable ViewCanvas::table() const {
    const ViewInput shown = input();
    return withCheckWarning(m_view.table(shown, options()), shown);
}

QString ViewCanvas::finding() const {
    if (m_workbench.isWithheld(m_view)) return tr("Predict first: this is what the lesson asks");
    return m_workbench.capture() ? fromUtf8(m_view.finding(input(), options())) : QString();
}

void ViewCanvas::revealSelection() {
    const auto& selected = m_workbench.session().selected;
    if (selected == m_revealed || m_canvas->height() < 2) return;
    m_revealed = selected;
    const TokenIndex token = selected.empty() ? -1 : selected[selected.size() / 2];
    if (token >= 0 && !m_canvas->hasFocus()) reveal(token);
}

void ViewCanvas::reveal(TokenIndex token) {
    const Viewport viewport =
        viewportFor(m_canvas->width() / appearance().scale, m_canvas->height() / appearance().scale);
    if (const auto scroll = m_view.scrollTo(input(), viewport, token);
        scroll && !positionOfToken(m_canvas->scene(), token))
        m_workbench.change([&](Session& s) { s.look.stripScroll = *scroll; }, tr("Scroll"));
}

void ViewCanvas::followFocus() {
    if (isText() && isVisible() && m_workbench.capture() && m_canvas->height() > 1) {
        const ViewInput now = m_workbench.viewInput(m_view);
        if (now.focus.hovered < 0)
            m_peek.reset();
        else if (!positionOfToken(m_canvas->scene(), now.focus.hovered))
            m_peek = m_view.scrollTo(
                now, viewportFor(m_canvas->width() / appearance().scale, m_canvas->height() / appearance().scale),
                now.focus.hovered);
    }
    m_canvas->invalidate();
}

void ViewCanvas::followLock() {
    if (!isText() || !m_workbench.capture()) return;
    TokenIndex locked = -1;
    for (const View* view : m_workbench.shownViews())
        if (const auto key = view->lockedToken(m_workbench.viewInput(*view), viewOptions(m_workbench.session(), *view)))
            locked = *key;
    if (std::exchange(m_locked, locked) == locked) return;
    m_canvas->invalidate();
    if (locked >= 0 && m_canvas->height() > 1) reveal(locked);
}

void ViewCanvas::dataChanged(const QString& viewId) {
    followLock();
    if (viewId != fromUtf8(m_view.card().id)) return;
    DataState now = m_workbench.viewInput(m_view).data;
    const bool same = now.value == m_seen.value && now.computing == m_seen.computing && now.error == m_seen.error;
    m_seen = std::move(now);
    if (same) // progress alone does not change the picture
        return;
    m_canvas->invalidate();
    m_canvas->setAccessibleDescription(finding());
    refreshOffer();
}

void ViewCanvas::rangeChanged(const QString& viewId) {
    if (viewId != fromUtf8(m_view.card().id)) return;
    m_canvas->invalidate();
    m_readOut->refresh();
}

void ViewCanvas::cursorChanged() {
    // A view without a step sequence does not depend on the step cursor.
    if (!isVisible() || m_view.stepSequence(input(), options()).events.empty()) return;
    m_canvas->invalidate();
    m_readOut->refresh();
}

void ViewCanvas::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (!std::exchange(m_shown, true)) m_workbench.showView(m_view);
}

void ViewCanvas::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    if (std::exchange(m_shown, false)) m_workbench.hideView(m_view);
}

void ViewCanvas::sessionChanged() {
    m_canvas->invalidate();
    followLock();
    if (m_workbench.capture()) revealSelection();
    m_readOut->refresh();
    refreshOffer();
}

void ViewCanvas::refreshOffer() {
    m_offer->refresh(m_view, input(), options());
    if (m_offer->offer() && m_canvas->height() > 1) m_offer->place(m_canvas->scene());
}

void ViewCanvas::resizeEvent(QResizeEvent* event) {
    m_canvas->setGeometry(QRect(QPoint(0, 0), event->size()));
    const QSize pixels = event->size() * devicePixelRatioF();
    m_workbench.setFrame(m_view, pixels.width(), pixels.height());
    m_revealed.clear(); // line breaks have changed
    // Deferred: it changes the session, and Qt is laying out the window.
    QTimer::singleShot(0, this, &ViewCanvas::sessionChanged);
}

void ViewCanvas::resetView() { m_workbench.setRange(m_view, std::nullopt); }

void ViewCanvas::nudge(int tokens) {
    const auto last = static_cast<TokenIndex>(m_workbench.capture()->info().numTokens) - 1;
    const TokenIndex token = std::clamp<TokenIndex>(m_readOut->token() + tokens, 0, last);
    m_workbench.setHovered(token);
    const auto at = positionOfToken(m_canvas->scene(), token);
    const double scale = appearance().scale;
    m_readOut->showToken(token, *m_canvas,
                         at ? QPointF(at->x * scale, at->y * scale) : QPointF(width() / 2.0, height() / 2.0), true);
}

bool ViewCanvas::hasLockedCell() const { return isVisible() && m_view.lockReleased(options()); }

bool ViewCanvas::releaseCell() {
    if (!hasLockedCell()) return false;
    applyChange(*m_view.lockReleased(options()));
    return true;
}

bool ViewCanvas::moveLockedCell(int across, int down) {
    if (!hasLockedCell()) return false;
    if (const auto moved = m_view.lockMoved(input(), options(), across, down))
        applyChange(*moved, "keys " + fromUtf8(m_view.card().id));
    return true;
}

void ViewCanvas::keyPressEvent(QKeyEvent* event) {
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    const int step = shift ? 10 : 1;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
        if (moveLockedCell(event->key() == Qt::Key_Left ? -step : step, 0)) return;
        break;
    case Qt::Key_Up:
    case Qt::Key_Down:
        if (moveLockedCell(0, event->key() == Qt::Key_Up ? -step : step)) return;
        break;
    default: break;
    }
    const bool pinned = m_readOut->isPinned() && m_readOut->token() >= 0; // arrow keys then move from token to token
    if (pinned && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Up))
        nudge(-step);
    else if (pinned && (event->key() == Qt::Key_Right || event->key() == Qt::Key_Down))
        nudge(step);
    else if (event->key() == Qt::Key_Home)
        resetView();
    else
        QWidget::keyPressEvent(event);
}

void ViewCanvas::keyReleaseEvent(QKeyEvent* event) {
    if (!event->isAutoRepeat()) // a held key is one undo step, like a drag
        m_workbench.endMerge();
    QWidget::keyReleaseEvent(event);
}

} // namespace kvscope
