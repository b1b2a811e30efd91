// Paints itself, so that a new colour or text needs no new layout.
#include "app/window/widgets/live_number.h"

#include "app/window/style/appearance.h"

#include <QFontMetrics>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

constexpr std::chrono::milliseconds kSettles{160}; ///< longer than the time between two results of a fast drag

LiveNumber::LiveNumber(double designSize, int weight, QWidget* parent, Clock& clock)
    : QLabel(parent), m_font(numberFont(designSize, weight)), m_settles(clock.makeTimer([this] { update(); })) {
    setTextFormat(Qt::PlainText);
    reserve("–");
}

void LiveNumber::reserve(const QString& widest) {
    const QFontMetricsF metrics(m_font);
    double advance = 0; // character by character, which needs no text layout
    for (const QChar sign : widest) advance += metrics.horizontalAdvance(sign);
    const int width = static_cast<int>(std::ceil(advance)) + 1;
    if (width <= m_width) return;
    m_width = width;
    if (m_width <= m_most) return setFixedSize(sizeHint()); // Qt lays out anew for a new text unless the size is fixed
    setWordWrap(true);
    setMinimumSize(0, 0);
    setMaximumSize(m_width, QWIDGETSIZE_MAX);
}

void LiveNumber::show(const QString& text, bool isOutdated) {
    reserve(text);
    const bool wasOutdated = std::exchange(m_isOutdated, isOutdated);
    if (wasOutdated && !isOutdated) m_settles->start(kSettles);
    if (text != this->text())
        setText(text);
    else if (wasOutdated != isOutdated)
        update();
}

QSize LiveNumber::sizeHint() const { return {m_width, QFontMetrics(m_font).height()}; }

QSize LiveNumber::minimumSizeHint() const { return {std::min(m_width, m_most), sizeHint().height()}; }

int LiveNumber::heightForWidth(int width) const {
    if (!wordWrap()) return -1;
    return QFontMetrics(m_font).boundingRect({0, 0, width, QWIDGETSIZE_MAX}, flagsIn(width), text()).height();
}

/// Lines end at spaces, or anywhere if a word is wider than a line.
int LiveNumber::flagsIn(int width) const {
    if (!wordWrap()) return Qt::AlignRight | Qt::AlignVCenter;
    const QFontMetrics metrics(m_font);
    const bool fits = metrics.boundingRect({0, 0, width, QWIDGETSIZE_MAX}, Qt::TextWordWrap, text()).width() <= width;
    return Qt::AlignRight | Qt::AlignTop | (fits ? Qt::TextWordWrap : Qt::TextWrapAnywhere);
}

void LiveNumber::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setFont(m_font);
    const Theme& theme = chrome();
    painter.setPen(qColor(!isEnabled() ? theme.off : isDimmed() ? theme.text3 : theme.text1));
    painter.drawText(rect(), flagsIn(width()), text());
}

} // namespace kvscope
