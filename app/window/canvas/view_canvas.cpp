// Rebuilds a view's scene when the session or its results change; a view is a pure function of both.
#include "app/window/canvas/view_canvas.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/value_range.h"
#include "views/common/view_facts.h"

#include <QKeyEvent>
#include <QMetaMethod>
#include <QResizeEvent>
#include <QTimer>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {
constexpr std::chrono::milliseconds kOld{
    150}; ///< an older picture is faded only after this time, so that a drag does not flicker

/// Whether `a` and `b` are equal in what another pane's picture shows of them: the entry in the common legend and, if
/// the view shows it, the kept list.
bool isSameBeside(const PaneData& a, const PaneData& b, KvHeadIndex head, bool isKeptShown) {
    if (a.policyId != b.policyId || a.letter != b.letter) return false;
    if (a.result == b.result) return true;
    if (!a.result || !b.result || a.result->request.policy != b.result->request.policy) return false;
    const auto index = static_cast<std::size_t>(head.value);
    const auto &of = a.result->selection.heads, &other = b.result->selection.heads;
    if (index >= of.size() || index >= other.size()) return false;
    return of[index].protectedTokens.empty() == other[index].protectedTokens.empty() &&
           (!isKeptShown || of[index].kept == other[index].kept);
}

} // namespace

/// The inputs of a scene, except size and look, whose changes rebuild the scene anyway. No scene shows that a result is
/// outdated, being computed or measured: the canvas shows that.
struct ViewCanvas::Pictured {
    ViewInput input;
    ParameterValues options;
    std::optional<Viewport::Range> range;
    TokenIndex top = 0;

    bool isOf(const View& view, const Pictured& now) const {
        const auto what = [](const ViewInput& of) {
            return std::tie(of.capture, of.layer, of.kvHead, of.queryHead, of.cut.text, of.cut.token, of.activePane,
                            of.focus.selected, of.focus.selectionName, of.focus.hovered, of.focus.brushing, of.cursor,
                            of.data.value, of.data.computing, of.data.error);
        };
        const auto whose = [](const PaneData& of) {
            return std::tie(of.letter, of.policyId, of.policyName, of.variant, of.result, of.error);
        };
        const auto where = [](const std::optional<Viewport::Range>& of) {
            return of ? std::array{of->xMin, of->xMax, of->yMin, of->yMax} : std::array<double, 4>{};
        };
        const auto isSame = [&](const PaneData& a, const PaneData& b) {
            const bool isOwn = !view.card().perPane || &a == now.input.panes.data() + now.input.activePane;
            return isOwn ? whose(a) == whose(b)
                         : isSameBeside(a, b, now.input.kvHead, view.showsOtherPanes(now.options));
        };
        return what(now.input) == what(input) && now.options == options && now.range.has_value() == range.has_value() &&
               where(now.range) == where(range) && now.top == top &&
               std::ranges::equal(now.input.panes, input.panes, isSame);
    }
};

ViewCanvas::ViewCanvas(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_view(view), m_pane(pane), m_text(text),
      m_canvas(new CanvasWidget(
          text, [this](double w, double h) { return sceneFor(w, h); }, this)),
      m_offer(new OfferButton(this)), m_readOut(new ReadOut(workbench, this)),
      m_note(named("pictureNote", roleLabel({}, "note", this))),
      m_aging(workbench.clock().makeTimer([this] { showAge(drawn()); })) {
    setMinimumSize(px(200), px(60));
    setFocusProxy(m_canvas);
    m_canvas->setFocusPolicy(Qt::StrongFocus);
    m_canvas->setReadsText(isText());
    m_note->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_note->hide();
    connectGestures();
    connectWorkbench();
    connect(m_offer, &QPushButton::clicked, this, &ViewCanvas::takeOffered);
    m_canvas->setAccessibleName(fromUtf8(m_view.card().name));
}

void ViewCanvas::connectWorkbench() {
    // A canvas that is not painted again would keep the old capture open.
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { m_pictured = nullptr; });
    connect(&m_workbench, &Workbench::sessionChanged, this, &ViewCanvas::invalidateChanged);
    connect(&m_workbench, &Workbench::dataChanged, this, &ViewCanvas::dataChanged);
    connect(&m_workbench, &Workbench::focusChanged, this, &ViewCanvas::followFocus);
    connect(&m_workbench, &Workbench::rangeChanged, this, [this](const QString& viewId) {
        if (viewId == fromUtf8(m_view.card().id)) invalidate();
    });
    connect(&m_workbench, &Workbench::besideChanged, this, [this](const QString& viewId) {
        const bool mine = viewId.isEmpty() ? m_view.card().perPane : viewId == fromUtf8(m_view.card().id);
        if (!mine || !isVisible() || !options().has(kValueRangeOption)) return;
        std::string range = drawn().options.text(kValueRangeOption);
        if (std::exchange(m_range, range) != range) invalidate();
    });
    connect(&m_workbench, &Workbench::cursorChanged, this, [this] {
        if (!isVisible()) return;
        // The picture of a view without a step sequence does not depend on the step cursor.
        if (!m_view.stepSequence(input(), options()).events.empty()) return invalidate();
        const bool isUnderWay = m_workbench.session().look.cursor.has_value(); // what findings say
        if (std::exchange(m_isUnderWay, isUnderWay) != isUnderWay) emit drawnChanged();
    });
    connect(&m_workbench, &Workbench::panesChanged, this, &ViewCanvas::invalidateChanged);
    connect(&m_workbench, &Workbench::progressChanged, this, [this](int changed) {
        if (changed == m_pane && isVisible()) followAge(drawn());
    });
}

ViewCanvas::~ViewCanvas() {
    delete m_readOut;
    if (m_shown) m_workbench.hideView(m_view);
}

DrawnView ViewCanvas::drawn() const {
    DrawnView drawn = m_workbench.drawn(m_view, m_view.card().perPane ? m_pane : -1);
    if (isText() && drawn.input.focus.hovered < 0) drawn.input.focus.hovered = m_locked;
    return drawn;
}

Viewport ViewCanvas::viewportFor(double width, double height) const {
    Viewport viewport;
    viewport.width = width;
    viewport.height = height;
    viewport.pixelScale = appearance().scale * devicePixelRatioF();
    viewport.theme = appearance().theme;
    viewport.text = &m_text;
    viewport.top = m_peek.value_or(m_workbench.session().look.stripTop);
    viewport.besideOthers = m_besideOthers;
    viewport.range = shownRange(m_workbench.session(), m_view);
    return viewport;
}

Viewport ViewCanvas::viewport() const {
    return viewportFor(m_canvas->width() / appearance().scale, m_canvas->height() / appearance().scale);
}

void ViewCanvas::setBesideOthers(bool beside) {
    if (std::exchange(m_besideOthers, beside) != beside) m_canvas->invalidate();
}

Scene ViewCanvas::sceneFor(double width, double height) {
    const DrawnView shown = drawn();
    m_isCovered = m_workbench.isWithheld(m_view, true);
    const double offered = m_offer->room() / appearance().scale;
    const Viewport viewport = viewportFor(width, std::max(1.0, height - offered));
    Scene scene = m_isCovered ? emptyScene("Predict first: the lesson asks what this picture shows", viewport)
                              : m_view.buildScene(shown.input, shown.options, viewport);
    scene.height = height;
    m_pictured = std::make_unique<Pictured>(Pictured{shown.input, shown.options, viewport.range, viewport.top});
    return scene;
}

ViewTable ViewCanvas::table() const {
    const DrawnView shown = drawn();
    return withCheckWarning(m_view.table(shown.input, shown.options), shown.input);
}

QString ViewCanvas::finding() const {
    if (m_workbench.isWithheld(m_view)) return tr("Predict first: this is what the lesson asks");
    if (!m_workbench.capture()) return {};
    const DrawnView shown = drawn();
    return fromUtf8(m_view.finding(shown.input, shown.options));
}

QString ViewCanvas::headerFinding() const { return showsError() ? QString() : finding(); }

bool ViewCanvas::showsError() const {
    if (!m_workbench.capture()) return false;
    const DrawnView shown = drawn();
    return failedPane(m_view, shown.input, shown.options) >= 0;
}

void ViewCanvas::revealSelection() {
    const auto& selected = m_workbench.session().selected;
    if (selected == m_revealed || m_canvas->height() < 2) return;
    m_revealed = selected;
    const TokenIndex token = selected.empty() ? -1 : selected[selected.size() / 2];
    if (token >= 0 && !m_canvas->hasFocus()) reveal(token);
}

void ViewCanvas::reveal(TokenIndex token) {
    if (const auto top = m_view.scrollTo(input(), viewport(), token); top && !positionOfToken(m_canvas->scene(), token))
        m_workbench.change([&](Session& s) { s.look.stripTop = *top; }, tr("Scroll"));
}

void ViewCanvas::followFocus() {
    if (isText() && isVisible() && m_workbench.capture() && m_canvas->height() > 1) {
        const ViewInput now = m_workbench.viewInput(m_view);
        if (now.focus.hovered < 0)
            m_peek.reset();
        else if (!positionOfToken(m_canvas->scene(), now.focus.hovered))
            m_peek = m_view.scrollTo(now, viewport(), now.focus.hovered);
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
    const bool same = now.value == m_seen.value && now.computing == m_seen.computing && now.error == m_seen.error &&
                      m_workbench.isWithheld(m_view, true) == m_isCovered;
    m_seen = std::move(now);
    if (!same) m_canvas->invalidate(); // progress alone does not change the picture
    refreshSoon();
}

void ViewCanvas::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (!std::exchange(m_shown, true)) m_workbench.showView(m_view);
    invalidate();
}

void ViewCanvas::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    if (std::exchange(m_shown, false)) m_workbench.hideView(m_view);
}

void ViewCanvas::invalidate() {
    m_canvas->invalidate();
    refreshSoon();
}

void ViewCanvas::invalidateChanged() {
    if (!isVisible() || !m_pictured) return invalidate();
    DrawnView shown = drawn();
    const Viewport at = viewport();
    auto now = std::make_unique<Pictured>(Pictured{std::move(shown.input), std::move(shown.options), at.range, at.top});
    if (!m_pictured->isOf(m_view, *now)) {
        m_canvas->invalidate();
        m_pictured = std::move(now); // further signals of the same change find no difference
        emit drawnChanged();         // a frame that is already due draws the new picture before the queued refresh
    }
    refreshSoon();
}

void ViewCanvas::refreshSoon() {
    if (isVisible() && !std::exchange(m_isRefreshQueued, true))
        QMetaObject::invokeMethod(this, &ViewCanvas::refresh, Qt::QueuedConnection);
}

void ViewCanvas::refresh() {
    m_isRefreshQueued = false;
    if (!isVisible()) return;
    followLock();
    if (m_workbench.capture()) revealSelection();
    followAge(drawn());
    refreshReadOut();
    refreshOffer();
    m_canvas->setAccessibleDescription(finding());
    m_isUnderWay = m_workbench.session().look.cursor.has_value();
    emit drawnChanged();
}

/// A pane that lacks only its numbers is busy only while they are measured: during a drag the measurement waits.
bool ViewCanvas::isBusy(const DrawnView& drawn) const {
    const auto pane = static_cast<std::size_t>(m_pane);
    const bool isMeasuring = m_view.card().perPane && pane < drawn.input.panes.size() &&
                             drawn.input.panes[pane].computing && m_workbench.progress(m_pane) > 0;
    return drawn.isOutdated || isMeasuring;
}

void ViewCanvas::followAge(const DrawnView& drawn) {
    if (!isBusy(drawn) || m_note->isVisible()) {
        m_aging->stop();
        showAge(drawn);
    } else if (!m_aging->isActive()) {
        m_aging->start(kOld);
    }
}

void ViewCanvas::showAge(const DrawnView& drawn) {
    m_canvas->setFaded(drawn.isOutdated);
    m_note->setVisible(isBusy(drawn));
    if (!m_note->isVisible()) return;
    m_note->setText(noteOf(drawn));
    m_note->adjustSize();
    m_note->move(px(8), height() - m_note->height() - px(8));
    m_note->raise();
}

/// "drawn: 1,339 tokens   62 %   Esc cancels".
QString ViewCanvas::noteOf(const DrawnView& drawn) const {
    const bool ofPane = m_view.card().perPane;
    QStringList budgets;
    for (int pane = 0; pane < std::ssize(drawn.input.panes); ++pane) {
        const PaneData& data = drawn.input.panes[pane];
        if (!data.result || !drawn.isOutdated || (ofPane ? pane != m_pane : !data.outdated)) continue;
        budgets += (ofPane ? QString() : QString(QChar(data.letter)) + " ") + countText(data.result->requested);
    }
    QStringList parts;
    if (!budgets.isEmpty()) parts += tr("drawn: %1 tokens").arg(budgets.join(", "));
    if (ofPane && !drawn.isOutdated && drawn.input.panes[m_pane].result) parts += tr("measuring");
    const ViewInput now = m_workbench.viewInput(m_view); // the drawn input may be older than the computation
    const bool isComputing = ofPane ? m_pane < std::ssize(now.panes) && now.panes[m_pane].computing
                                    : now.data.computing || std::ranges::any_of(now.panes, &PaneData::computing);
    if (!isComputing) return parts.join("   "); // cancelled
    const double done = ofPane ? m_workbench.progress(m_pane) : now.data.progress;
    parts += tr("%1 %").arg(static_cast<int>(done * 100));
    if (ofPane) parts += tr("Esc cancels");
    return parts.join("   ");
}

void ViewCanvas::refreshOffer() {
    const bool leads = isSignalConnected(QMetaMethod::fromSignal(&ViewCanvas::parametersWanted)); // not in a Presenter
    m_offer->refresh(m_view, input(), options(), leads);
    if (m_offer->offer() && m_canvas->height() > 1) m_offer->place(m_canvas->scene());
}

void ViewCanvas::resizeEvent(QResizeEvent* event) {
    m_canvas->setGeometry(QRect(QPoint(0, 0), event->size()));
    const QSize pixels = event->size() * devicePixelRatioF();
    m_workbench.setFrame(m_view, pixels.width(), pixels.height());
    m_revealed.clear(); // line breaks have changed
    // Deferred: the refresh may scroll, which changes the session, and Qt is laying out the window.
    QTimer::singleShot(0, this, &ViewCanvas::invalidate);
}

void ViewCanvas::nudge(int tokens) {
    const auto last = static_cast<TokenIndex>(m_workbench.capture()->info().numTokens) - 1;
    const TokenIndex token = std::clamp<TokenIndex>(m_readOut->token() + tokens, 0, last);
    m_workbench.setHovered(token);
    m_readAt = placeOf(token).value_or(QPointF(width() / 2.0, height() / 2.0));
    m_readOut->showToken(token, *m_canvas, m_readAt, true);
}

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
    else
        QWidget::keyPressEvent(event);
}

void ViewCanvas::keyReleaseEvent(QKeyEvent* event) {
    if (!event->isAutoRepeat()) // a held key is one undo step, like a drag
        m_workbench.endMerge();
    QWidget::keyReleaseEvent(event);
}

} // namespace kvscope
