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
    /// A text that is wider than this may be broken into lines where there is no room for it.
    void breakBeyond(int width) { m_most = width; }
    void show(const QString& text, bool isOutdated = false);
    bool isDimmed() const { return m_isOutdated || m_settles->isActive(); }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int flagsIn(int width) const;

    QFont m_font;
    int m_width = 0, m_most = QWIDGETSIZE_MAX;
    bool m_isOutdated = false;
    std::unique_ptr<Clock::Timer> m_settles;
};

} // namespace kvscope
