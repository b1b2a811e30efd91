#pragma once

#include "app/workbench/step_driver.h"

#include <QWidget>

class QLabel;
class QToolButton;

namespace kvscope {

class SegmentedSwitch;
class StepScrubber;

/// Title, caption, transport, scrubber and speed of the shown step sequence. Redraws only when the step changes.
class StepPlayer : public QWidget {
    Q_OBJECT

public:
    explicit StepPlayer(StepDriver& driver, QWidget* parent = nullptr);

private:
    QWidget* buildTransport();
    QToolButton* button(const char* icon, const QString& tip, const char* name);
    void refresh();

    StepDriver& m_driver;
    QLabel *m_title = nullptr, *m_caption = nullptr, *m_count = nullptr;
    QToolButton *m_first = nullptr, *m_back = nullptr, *m_play = nullptr, *m_forward = nullptr, *m_last = nullptr;
    StepScrubber* m_scrubber = nullptr;
    SegmentedSwitch* m_speed = nullptr;
};

} // namespace kvscope
