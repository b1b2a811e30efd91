// Ticks are above the track, so that the thumb does not hide them.
#include "app/window/widgets/step_scrubber.h"

#include "app/window/style/appearance.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace kvscope {

constexpr double kClosest = 3, kTall = 9, kShort = 5,
                 kTickGap = 9; // design pixels; the gap is from the middle of the track

StepScrubber::StepScrubber(QWidget* parent) : ValueSlider(parent) { setAccessibleName(tr("Step")); }

void StepScrubber::setEvents(std::vector<bool> milestones) {
    if (milestones == m_milestones) return;
    m_milestones = std::move(milestones);
    setScale({0, static_cast<double>(std::max<std::size_t>(1, m_milestones.size())), 1, false});
    setSingleStep(1);
    setPageStep(std::max(1, maximum() / 10));
    update();
}

bool StepScrubber::isDrawn(std::size_t event) const {
    return m_milestones[event] || track().width() / maximum() >= px(kClosest);
}

int StepScrubber::tickCount() const {
    int count = 0;
    for (std::size_t event = 0; event < m_milestones.size(); ++event) count += isDrawn(event) ? 1 : 0;
    return count;
}

QSize StepScrubber::sizeHint() const { return {px(300), px(40)}; }

QSize StepScrubber::minimumSizeHint() const { return {px(120), px(40)}; }

void StepScrubber::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    const QRectF line = track();
    const Theme& theme = chrome();
    for (std::size_t i = 0; i < m_milestones.size(); ++i) {
        if (!isDrawn(i)) continue;
        const bool tall = m_milestones[i];
        const double x = std::floor(xOf(static_cast<double>(i + 1))) + 0.5;
        const double bottom = line.center().y() - px(kTickGap);
        painter.setPen(QPen(qColor(tall ? theme.text1 : theme.text3), tall ? px(1.5) : 1));
        painter.drawLine(QPointF(x, bottom - px(tall ? kTall : kShort)), QPointF(x, bottom));
    }
    painter.end();
    ValueSlider::paintEvent(event);
}

} // namespace kvscope
