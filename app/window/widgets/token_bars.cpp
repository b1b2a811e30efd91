// Bars share the widget's width; a long text gets thin ones.
#include "app/window/widgets/token_bars.h"

#include "app/window/style/appearance.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace kvscope {

constexpr int kPitch = 7, kNarrowest = 3, kWidest = 120, kDot = 3; // design pixels

TokenBars::TokenBars(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

QSize TokenBars::sizeHint() const {
    const int pitch = std::clamp(kWidest / std::max(1, static_cast<int>(m_bars.size())), kNarrowest, kPitch);
    return {px(std::max(20, pitch * static_cast<int>(m_bars.size()))), px(20)};
}

void TokenBars::show(std::vector<Bar> bars, const QColor& colour, bool isDimmed) {
    const bool isOtherSize = bars.size() != m_bars.size();
    m_bars = std::move(bars);
    m_colour = colour;
    m_isDimmed = isDimmed;
    if (isOtherSize) updateGeometry();
    update();
}

void TokenBars::setChosen(int token) {
    m_chosen = token;
    update();
}

QRectF TokenBars::place(int token) const {
    const double pitch =
        std::min<double>(px(kPitch), static_cast<double>(width()) / static_cast<double>(m_bars.size()));
    return {pitch * token, 0, pitch, static_cast<double>(height())};
}

int TokenBars::tokenAt(double x) const {
    for (int token = 0; token < std::ssize(m_bars); ++token)
        if (const QRectF at = place(token); x >= at.left() && x < at.right()) return token;
    return -1;
}

void TokenBars::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const Theme& theme = chrome();
    const double bottom = height() - px(3), room = std::min<double>(bottom - px(kDot + 4), px(22));
    for (int token = 0; token < std::ssize(m_bars); ++token) {
        const Bar& bar = m_bars[static_cast<std::size_t>(token)];
        const QRectF at = place(token);
        if (token == m_chosen) painter.fillRect(at, qColor(theme.hover));
        painter.fillRect(QRectF(at.left() + 1, bottom, at.width() - 1, 1), qColor(theme.axis));
        if (std::isnan(bar.height)) continue;
        const double height = room * std::clamp(bar.height, 0.0, 1.0);
        QColor colour = m_colour;
        if (m_isDimmed) colour.setAlphaF(0.4);
        painter.fillRect(QRectF(at.left() + 1, bottom - height, at.width() - 1, height), colour);
        if (!bar.isMarked) continue;
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(qColor(m_isDimmed ? theme.text3 : theme.text1));
        painter.drawEllipse(QPointF(at.center().x() + 0.5, bottom - height - px(kDot)), px(kDot) / 2.0, px(kDot) / 2.0);
        painter.setRenderHint(QPainter::Antialiasing, false);
    }
    if (!hasFocus()) return;
    painter.setPen(qColor(theme.ink));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void TokenBars::mousePressEvent(QMouseEvent* event) {
    const int token = event->button() == Qt::LeftButton ? tokenAt(event->position().x()) : -1; // the right one: a menu
    if (token >= 0) emit chosen(token);
}

void TokenBars::keyPressEvent(QKeyEvent* event) {
    const int last = static_cast<int>(m_bars.size()) - 1;
    int token = m_chosen;
    switch (event->key()) {
    case Qt::Key_Right: ++token; break;
    case Qt::Key_Left: --token; break;
    case Qt::Key_Home: token = 0; break;
    case Qt::Key_End: token = last; break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space: break;
    default: return QWidget::keyPressEvent(event);
    }
    if (last >= 0) emit chosen(std::clamp(token, 0, last));
}

bool TokenBars::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto& help = *static_cast<QHelpEvent*>(event);
        const int token = tokenAt(help.pos().x());
        QToolTip::showText(help.globalPos(), token < 0 ? QString() : m_bars[static_cast<std::size_t>(token)].tip, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace kvscope
