// The half of the canvas that paints.
#include "app/window/canvas/canvas_renderer.h"
#include "app/window/canvas/canvas_widget.h"
#include "app/window/style/appearance.h"

#include <QPainter>
#include <QResizeEvent>

#include <set>
#include <utility>

namespace kvscope {

namespace {

/// Canvases whose pictures must be drawn before they are shown again.
std::set<CanvasWidget*>& dueCanvases() {
    static std::set<CanvasWidget*> due;
    return due;
}

} // namespace

CanvasWidget::CanvasWidget(const TextService& text, Builder builder, QWidget* parent)
    : QWidget(parent), m_text(text), m_builder(std::move(builder)) {
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

CanvasWidget::~CanvasWidget() { dueCanvases().erase(this); }

void CanvasWidget::redraw() {
    m_redraw = true;
    if (m_renderer) dueCanvases().insert(this);
    update();
}

void CanvasWidget::invalidate() {
    m_dirty = true;
    redraw();
}

const Scene& CanvasWidget::scene() {
    if (m_dirty) {
        m_scene = m_builder(width() / appearance().scale, height() / appearance().scale);
        m_dirty = false;
    }
    return m_scene;
}

void CanvasWidget::setFaded(bool faded) {
    if (faded == m_faded) return;
    m_faded = faded;
    redraw();
}

void CanvasWidget::resizeEvent(QResizeEvent* event) {
    m_dirty = m_redraw = true;
    QWidget::resizeEvent(event);
}

void CanvasWidget::draw() {
    const QSize pixels = (QSizeF(size()) * devicePixelRatioF()).toSize();
    const bool isNew = std::exchange(m_redraw, false) || m_drawn != pixels;
    if (!m_renderer) m_renderer = makeOpenGlRenderer(m_text);
    if (!m_renderer) m_renderer = makeQPainterRenderer();
    dueCanvases().erase(this);
    if (!isNew || pixels.isEmpty()) return;
    const auto own = static_cast<std::ptrdiff_t>(scene().items.size());
    addOverlays(m_scene);
    const Colour ground = m_scene.background.a > 0 ? m_scene.background : chrome().canvas;
    if (!m_renderer->draw(m_scene, pixels, ground)) {
        m_renderer = makeQPainterRenderer();
        m_renderer->draw(m_scene, pixels, ground);
    }
    m_scene.items.erase(m_scene.items.begin() + own, m_scene.items.end());
    m_drawn = pixels;
    m_isRead = false;
}

const QImage& CanvasWidget::picture() {
    draw();
    if (std::exchange(m_isRead, true)) return m_picture;
    if (!m_renderer->read(m_picture)) { // lost since it was drawn
        m_redraw = true;
        draw();
        m_isRead = m_renderer->read(m_picture);
    }
    ++m_frames;
    return m_picture;
}

/// All canvases that are due draw before the first is read: one is painted while the scene of the next is built.
void CanvasWidget::paintEvent(QPaintEvent*) {
    draw();
    for (CanvasWidget* other : std::set(dueCanvases()))
        if (other->isVisible() && other->window() == window()) other->draw();
    QPainter(this).drawImage(rect(), picture());
    emit painted();
}

void CanvasWidget::addOverlays(Scene& picture) const {
    const Theme& theme = chrome();
    if (m_faded)
        picture.items.push_back(
            RectangleItem{{0, 0, picture.width, picture.height}, withAlpha(theme.canvas, 0.65), {}, 0, {}});
    if (const auto band = bandToDraw())
        picture.items.push_back(RectangleItem{*band, withAlpha(theme.ink, 0.08), {theme.ink, 1, {4, 3}}, 0, {}});
    if (m_gesture == Gesture::Outline)
        picture.items.push_back(PolygonItem{m_lasso.path(), withAlpha(theme.ink, 0.08), {theme.ink, 1, {4, 3}}});
    if (hasFocus() && m_focusByKeyboard)
        picture.items.push_back(
            RectangleItem{{1, 1, picture.width - 2, picture.height - 2}, kTransparent, {theme.ink, 2, {}}, 0, {}});
}

void CanvasWidget::focusInEvent(QFocusEvent* event) {
    m_focusByKeyboard = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason;
    QWidget::focusInEvent(event);
    redraw();
    emit focused();
}

void CanvasWidget::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    redraw();
}

} // namespace kvscope
