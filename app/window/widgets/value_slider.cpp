// QAbstractSlider provides range, keys, steps and accessibility; this class paints and maps the mouse.
#include "app/window/widgets/value_slider.h"

#include "app/window/style/appearance.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace kvscope {

ValueSlider::ValueSlider(QWidget* parent) : QAbstractSlider(parent) {
    setOrientation(Qt::Horizontal);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setScale(m_scale);
    connect(this, &QAbstractSlider::valueChanged, this, [this](int position) {
        if (!m_showing) emit edited(m_scale.valueAt(position));
    });
}

bool ValueSlider::event(QEvent* event) {
    // Home is also a window command; the focused slider has priority.
    if (event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Home) {
        event->accept();
        return true;
    }
    return QAbstractSlider::event(event);
}

void ValueSlider::setScale(const SliderScale& scale) {
    m_showing = true;
    m_scale = scale;
    const int positions = scale.positions();
    setRange(0, positions);
    setSingleStep(std::max(1, positions / 100));
    setPageStep(std::max(1, positions / 10));
    m_showing = false;
    update();
}

void ValueSlider::setDefault(std::optional<double> value) {
    m_default = value;
    update();
}

void ValueSlider::showValue(double value) {
    m_showing = true;
    setValue(m_scale.positionOf(value));
    m_showing = false;
}

QSize ValueSlider::sizeHint() const { return {px(200), px(24)}; }

QSize ValueSlider::minimumSizeHint() const { return {px(60), px(24)}; }

QRectF ValueSlider::track() const {
    const double inset = px(8);
    return {inset, height() / 2.0 - px(2), width() - 2 * inset, static_cast<double>(px(4))};
}

double ValueSlider::xOf(double value) const {
    return track().left() + track().width() * m_scale.positionOf(value) / std::max(1, maximum());
}

void ValueSlider::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Theme& theme = chrome();
    const QColor ink = qColor(isEnabled() ? theme.ink : theme.off);
    const QRectF line = track();
    const double x = line.left() + line.width() * sliderPosition() / std::max(1, maximum());
    painter.setPen(Qt::NoPen);
    painter.setBrush(qColor(isEnabled() ? theme.control : theme.border));
    painter.drawRoundedRect(line, px(2), px(2));
    painter.setBrush(ink);
    painter.drawRoundedRect(QRectF(line.left(), line.top(), x - line.left(), line.height()), px(2), px(2));
    const QPointF centre(x, line.center().y());
    if (m_default) {
        painter.setBrush(qColor(theme.text3));
        painter.drawRect(QRectF(xOf(*m_default) - 0.75, centre.y() + px(6), 1.5, px(5)));
    }
    const double radius = isSliderDown() ? px(7.5) : px(6);
    painter.setBrush(isSliderDown() ? ink : qColor(theme.raised));
    painter.setPen(QPen(ink, px(2)));
    painter.drawEllipse(centre, radius - 1, radius - 1);
    if (!hasFocus()) return;
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(centre, px(6) + px(3.5), px(6) + px(3.5));
}

void ValueSlider::dragTo(double x) {
    const QRectF line = track();
    setSliderPosition(static_cast<int>(std::lround((x - line.left()) / line.width() * maximum())));
}

void ValueSlider::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    setSliderDown(true);
    dragTo(event->position().x());
    update();
}

void ValueSlider::mouseMoveEvent(QMouseEvent* event) {
    if (isSliderDown()) dragTo(event->position().x());
}

void ValueSlider::mouseReleaseEvent(QMouseEvent*) {
    if (!isSliderDown()) return;
    setSliderDown(false);
    update();
    emit released();
}

void ValueSlider::mouseDoubleClickEvent(QMouseEvent*) {
    setSliderDown(false);
    emit resetRequested();
    emit released();
}

void ValueSlider::wheelEvent(QWheelEvent* event) {
    if (!hasFocus()) {
        event->ignore();
        return;
    }
    QAbstractSlider::wheelEvent(event);
}

void ValueSlider::keyReleaseEvent(QKeyEvent* event) {
    QAbstractSlider::keyReleaseEvent(event);
    if (!event->isAutoRepeat()) emit released();
}

} // namespace kvscope
