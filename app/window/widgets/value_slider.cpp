// QAbstractSlider provides range, keys, steps and accessibility; this class paints and maps the mouse.
#include "app/window/widgets/value_slider.h"

#include "app/window/style/appearance.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalBlocker>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

constexpr int kFinest = 2000;

ValueSlider::ValueSlider(QWidget* parent) : QAbstractSlider(parent) {
    setOrientation(Qt::Horizontal);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setScale(m_scale);
    connect(this, &QAbstractSlider::valueChanged, this,
            [this](int position) { emit edited(m_scale.valueAt(position)); });
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
    const QSignalBlocker shown(this);
    const bool isNew = std::exchange(m_scale, scale) != scale;
    const int positions = scale.positions();
    setRange(0, positions);
    setSingleStep(std::max(1, positions / 100));
    setPageStep(std::max(1, positions / 10));
    if (isNew) update();
}

void ValueSlider::setDefault(std::optional<double> value) {
    if (std::exchange(m_default, value) != value) update();
}

void ValueSlider::showValue(double value) {
    const QSignalBlocker shown(this);
    setValue(m_scale.positionOf(value));
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
    beginStep();
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
    update(); // the step ends when another begins: this may be the first click of a double click
}

void ValueSlider::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    setSliderDown(false);
    emit resetRequested();
    emit released();
}

void ValueSlider::beginStep() {
    m_isWheeled = false;
    emit released();
}

void ValueSlider::wheelEvent(QWheelEvent* event) {
    if (!hasFocus()) {
        event->ignore();
        return;
    }
    if (!m_isWheeled) beginStep();
    m_isWheeled = true; // successive turns of the wheel are one step
    QAbstractSlider::wheelEvent(event);
}

void ValueSlider::keyPressEvent(QKeyEvent* event) {
    if (!event->isAutoRepeat()) beginStep();
    QAbstractSlider::keyPressEvent(event);
}

void ValueSlider::keyReleaseEvent(QKeyEvent* event) {
    QAbstractSlider::keyReleaseEvent(event);
    if (!event->isAutoRepeat()) emit released();
}

SliderScale SliderScale::of(const ParameterSpec& spec, std::int64_t tokens) {
    SliderScale scale{spec.min, spec.max, spec.step, spec.logarithmic};
    if (spec.kind == ParameterKind::Integer && scale.step == 0) scale.step = 1;
    if (spec.maxIsTokens && tokens > 0)
        scale.max = std::max(scale.min, std::min(scale.max, static_cast<double>(tokens)));
    return scale;
}

int SliderScale::positions() const {
    if (max <= min) return 1;
    const double steps = step > 0 && !logarithmic ? std::round((max - min) / step) : kFinest;
    return static_cast<int>(std::clamp<double>(steps, 1, kFinest));
}

int SliderScale::positionOf(double value) const {
    if (max <= min) return 0;
    value = std::clamp(value, min, max);
    const double along =
        logarithmic ? std::log((value + offset()) / (min + offset())) / std::log((max + offset()) / (min + offset()))
                    : (value - min) / (max - min);
    return static_cast<int>(std::lround(along * positions()));
}

double SliderScale::valueAt(int position) const {
    if (position <= 0 || max <= min) return min;
    if (position >= positions()) return max;
    const double along = static_cast<double>(position) / positions();
    double value = logarithmic ? (min + offset()) * std::pow((max + offset()) / (min + offset()), along) - offset()
                               : min + along * (max - min);
    if (step > 0) value = min + std::round((value - min) / step) * step;
    return std::clamp(value, min, max);
}

} // namespace kvscope
