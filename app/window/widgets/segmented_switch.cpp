// Painted, because a row of push buttons cannot share one sunken background with a gap around the active one.
#include "app/window/widgets/segmented_switch.h"

#include "app/window/style/appearance.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <utility>

namespace kvscope {

namespace {

double widthOf(const QString& word) {
    return QFontMetricsF(interfaceFont(12, QFont::DemiBold)).horizontalAdvance(word) + 2 * px(14);
}

} // namespace

SegmentedSwitch::SegmentedSwitch(QStringList words, const QString& accessibleName, QWidget* parent)
    : QWidget(parent), m_words(std::move(words)) {
    setFocusPolicy(Qt::TabFocus);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setAccessibleName(accessibleName);
    setCurrent(0);
}

void SegmentedSwitch::setCurrent(int index) {
    setAccessibleDescription(m_words.value(index));
    if (std::exchange(m_current, index) != index) update();
}

QSize SegmentedSwitch::sizeHint() const {
    double width = 0;
    for (const QString& word : m_words) width += widthOf(word);
    return {static_cast<int>(width) + 1, px(28)};
}

QRectF SegmentedSwitch::segment(int index) const {
    double x = 0;
    for (int i = 0; i < index; ++i) x += widthOf(m_words[i]);
    return {x, 0, widthOf(m_words[index]), static_cast<double>(height())};
}

void SegmentedSwitch::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Theme& theme = chrome();
    painter.setPen(hasFocus() ? QPen(qColor(theme.ink), 2) : QPen(qColor(theme.border), 1));
    painter.setBrush(qColor(theme.sunken));
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), px(5), px(5));
    for (int i = 0; i < m_words.size(); ++i) {
        const bool active = i == m_current;
        const QRectF box = segment(i);
        if (active) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(qColor(theme.ink));
            painter.drawRoundedRect(box.adjusted(px(2), px(2), -px(2), -px(2)), px(4), px(4));
        }
        painter.setFont(interfaceFont(12, active ? QFont::DemiBold : QFont::Medium));
        painter.setPen(qColor(active ? theme.paper : theme.text2));
        painter.drawText(box, Qt::AlignCenter, m_words[i]);
    }
}

void SegmentedSwitch::choose(int index) {
    if (index < 0 || index >= m_words.size() || index == m_current) return;
    setCurrent(index);
    emit chosen(index);
}

void SegmentedSwitch::mousePressEvent(QMouseEvent* event) {
    for (int i = 0; i < m_words.size(); ++i)
        if (segment(i).contains(event->position())) choose(i);
}

void SegmentedSwitch::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Left)
        choose(m_current - 1);
    else if (event->key() == Qt::Key_Right)
        choose(m_current + 1);
    else
        QWidget::keyPressEvent(event);
}

} // namespace kvscope
