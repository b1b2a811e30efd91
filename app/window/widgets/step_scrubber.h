#pragma once

#include "app/window/widgets/value_slider.h"

#include <vector>

namespace kvscope {

/// The slider of a step sequence: one position per step and 0 before the first, a tick above every event, a tall one
/// for milestones. Where events are closer than three pixels only milestones have ticks.
class StepScrubber : public ValueSlider {
    Q_OBJECT

public:
    explicit StepScrubber(QWidget* parent = nullptr);

    /// One entry per event: whether it is a milestone.
    void setEvents(std::vector<bool> milestones);
    int tickCount() const; ///< ticks that are drawn at the present width

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    bool isDrawn(std::size_t event) const;

    std::vector<bool> m_milestones;
};

} // namespace kvscope
