// Mouse gestures of the canvas, as in napari, Tracy or RenderDoc (a text is read as in an editor): left drag pans,
// Ctrl+drag zooms to a box, Shift+drag brushes, Alt+drag draws a lasso (Shift adds, Ctrl removes; once armed, a plain
// drag draws it, for desktops that move windows with Alt), the wheel zooms at the cursor (Alt: x only, Shift: y only),
// a double click fits.
#include "app/window/canvas/canvas_widget.h"

#include "app/window/style/appearance.h"

#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QMouseEvent>
#include <QStyleHints>
#include <QWheelEvent>

#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr double kDragStart = 4;     // pixels before a press becomes a drag
constexpr double kPickTolerance = 4; // radius around a mark that still hits it, in pixels
constexpr double kZoomPerNotch = 1.2;
constexpr double kScrollPerNotch = 60;

} // namespace

Point CanvasWidget::toScene(const QPointF& position) const {
    return {position.x() / appearance().scale, position.y() / appearance().scale};
}

PickId CanvasWidget::pickUnder(const QPointF& position) { return pickAt(scene(), toScene(position), kPickTolerance); }

CanvasWidget::Gesture CanvasWidget::gestureFor(Qt::KeyboardModifiers modifiers) const {
    if (m_pressedPick.kind == PickId::Kind::Handle) return Gesture::Handle;
    if (m_lassoArmed || modifiers & Qt::AltModifier) return Gesture::Outline;
    if (m_readsText) return Gesture::Read;
    if (modifiers & Qt::ShiftModifier) return Gesture::Brush;
    if (!ShownPlot::of(m_scene).valid) return Gesture::Pan;
    return modifiers & Qt::ControlModifier ? Gesture::BoxZoom : Gesture::Pan;
}

void CanvasWidget::mousePressEvent(QMouseEvent* event) {
    setFocus(Qt::MouseFocusReason);
    if (std::exchange(m_focusByKeyboard, false)) redraw(); // it had the focus already
    if (event->button() != Qt::LeftButton) return;
    m_pressed = m_last = toScene(event->position());
    m_pressedPick = pickAt(scene(), m_pressed, kPickTolerance);
    m_pressedModifiers = event->modifiers();
    m_gesture = Gesture::Press;
    const auto interval = static_cast<quint64>(QGuiApplication::styleHints()->mouseDoubleClickInterval());
    if (m_doubleClicked == 0 || event->timestamp() > std::exchange(m_doubleClicked, 0) + interval) return;
    m_gesture = Gesture::None;
    emit sentenceWanted({m_pressed.x, m_pressed.y});
}

void CanvasWidget::mouseMoveEvent(QMouseEvent* event) {
    const Point at = toScene(event->position());
    if (m_gesture != Gesture::None && !(event->buttons() & Qt::LeftButton)) { // released over another window
        if (m_gesture != Gesture::Press) finishGesture(m_last);
        m_gesture = Gesture::None;
        redraw();
    }
    if (m_gesture == Gesture::None) return hoverAt(event->position());
    if (m_gesture == Gesture::Press && std::hypot(at.x - m_pressed.x, at.y - m_pressed.y) < kDragStart) return;
    if (m_gesture == Gesture::Press) {
        m_gesture = gestureFor(m_pressedModifiers);
        m_lasso.clear();
        m_lasso.add(m_pressed);
        if (m_gesture == Gesture::Read) emit readingBegun({m_pressed.x, m_pressed.y}, m_pressedModifiers);
        if (m_gesture == Gesture::Pan) emit pointerLeft(); // what it pointed at moves away
    }
    continueGesture(at);
}

void CanvasWidget::hoverAt(const QPointF& position) {
    const PickId pick = pickUnder(position);
    using enum PickId::Kind;
    setCursor(m_lassoArmed                            ? Qt::CrossCursor
              : pick.kind == Handle && pick.index < 0 ? Qt::OpenHandCursor
              : pick.kind == Handle                   ? Qt::SizeHorCursor
              : pick.kind == Token && m_readsText     ? Qt::IBeamCursor
              : pick.kind == None                     ? Qt::ArrowCursor
                                                      : Qt::PointingHandCursor);
    emit hovered(pick, position);
}

void CanvasWidget::continueGesture(Point at) {
    const Point moved{at.x - m_last.x, at.y - m_last.y};
    m_last = at;
    const ShownPlot shown = ShownPlot::of(scene());
    if (m_gesture == Gesture::Pan && shown.valid)
        emit rangeWanted(panBy(shown, moved.x, moved.y));
    else if (m_gesture == Gesture::Pan)
        emit scrollWanted(-moved.y);
    else if (m_gesture == Gesture::Brush)
        emit brushed(tokensInBox(scene(), m_pressed, at), false);
    else if (m_gesture == Gesture::Outline)
        outline(at, false);
    else if (m_gesture == Gesture::Handle)
        emit handleDragged(m_pressedPick, {at.x, at.y}, false);
    else if (m_gesture == Gesture::Read)
        emit readTo({at.x, at.y}, false);
    redraw();
}

void CanvasWidget::outline(Point at, bool finished) {
    m_lasso.add(at);
    emit lassoed(tokensInLasso(scene(), m_lasso), m_pressedModifiers, finished);
}

void CanvasWidget::armLasso() {
    m_lassoArmed = true;
    setCursor(Qt::CrossCursor);
}

bool CanvasWidget::abandonLasso() {
    const bool drawing = m_gesture == Gesture::Outline, something = drawing || m_lassoArmed;
    m_lassoArmed = false;
    if (!something) return false;
    unsetCursor();
    if (!drawing) return true;
    m_gesture = Gesture::None;
    emit lassoAbandoned();
    redraw();
    return true;
}

void CanvasWidget::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || m_gesture == Gesture::None) return;
    const Point at = toScene(event->position());
    if (m_gesture == Gesture::Press)
        emit clicked(m_pressedPick, m_pressedModifiers, event->position());
    else
        finishGesture(at);
    const bool panned = m_gesture == Gesture::Pan;
    m_gesture = Gesture::None;
    if (panned) hoverAt(event->position());
    redraw();
}

void CanvasWidget::finishGesture(Point at) {
    const ShownPlot shown = ShownPlot::of(scene());
    const bool wideEnough = std::abs(at.x - m_pressed.x) > kDragStart && std::abs(at.y - m_pressed.y) > kDragStart;
    if (m_gesture == Gesture::BoxZoom && shown.valid && wideEnough)
        emit rangeWanted(zoomToBox(shown, m_pressed, at));
    else if (m_gesture == Gesture::Brush)
        emit brushed(tokensInBox(scene(), m_pressed, at), true);
    else if (m_gesture == Gesture::Outline)
        finishOutline(at);
    else if (m_gesture == Gesture::Handle)
        emit handleDragged(m_pressedPick, {at.x, at.y}, true);
    else if (m_gesture == Gesture::Read)
        emit readTo({at.x, at.y}, true);
}

void CanvasWidget::finishOutline(Point at) {
    m_lassoArmed = false;
    unsetCursor();
    outline(at, true);
}

void CanvasWidget::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    m_gesture = Gesture::None;
    if (!m_readsText) return emit fitWanted();
    m_doubleClicked = event->timestamp();
    const Point at = toScene(event->position());
    emit wordWanted({at.x, at.y});
}

void CanvasWidget::wheelEvent(QWheelEvent* event) {
    // With Alt, Qt reports a vertical wheel as a horizontal one.
    const QPoint delta = event->angleDelta();
    const double notches = (delta.y() != 0 ? delta.y() : delta.x()) / 120.0;
    const ShownPlot shown = ShownPlot::of(scene());
    event->accept();
    if (notches == 0) return;
    if (!shown.valid) {
        emit scrollWanted(-notches * kScrollPerNotch);
        if (m_gesture == Gesture::Read) emit readTo({m_last.x, m_last.y}, false);
        if (m_gesture == Gesture::None) hoverAt(event->position());
        return;
    }
    const ZoomAxes axes = event->modifiers() & Qt::AltModifier     ? ZoomAxes::X
                          : event->modifiers() & Qt::ShiftModifier ? ZoomAxes::Y
                                                                   : ZoomAxes::Both;
    emit rangeWanted(zoomAt(shown, toScene(event->position()), std::pow(kZoomPerNotch, notches), axes));
    if (m_gesture == Gesture::None) hoverAt(event->position());
}

void CanvasWidget::contextMenuEvent(QContextMenuEvent* event) {
    if (m_gesture == Gesture::None) emit menuWanted(event->globalPos()); // a menu would take the release of the button
}

void CanvasWidget::leaveEvent(QEvent* event) {
    QWidget::leaveEvent(event);
    emit pointerLeft();
}

std::optional<Box> CanvasWidget::bandToDraw() const {
    if (m_gesture != Gesture::BoxZoom && m_gesture != Gesture::Brush) return std::nullopt;
    return Box{std::min(m_pressed.x, m_last.x), std::min(m_pressed.y, m_last.y), std::abs(m_pressed.x - m_last.x),
               std::abs(m_pressed.y - m_last.y)};
}

} // namespace kvscope
