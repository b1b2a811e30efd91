#pragma once

#include "app/workbench/clock.h"

#include <QFont>
#include <QLabel>

#include <memory>

namespace kvscope {

/// A number that changes while the user drags: monospaced, right-aligned, always as wide as the widest text so far, so
/// that neither it nor its neighbours move. It is dimmed while it is older than what is asked for, and a moment longer,
/// so that a fast drag does not flicker.
class LiveNumber : public QLabel {
    Q_OBJECT

public:
    explicit LiveNumber(double designSize, int weight = QFont::Normal, QWidget* parent = nullptr,
                        Clock& clock = machineClock());

    void reserve(const QString& widest);
    void show(const QString& text, bool isOutdated = false);
    bool isDimmed() const { return m_isOutdated || m_settles->isActive(); }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QFont m_font;
    int m_width = 0;
    bool m_isOutdated = false;
    std::unique_ptr<Clock::Timer> m_settles;
};

} // namespace kvscope
