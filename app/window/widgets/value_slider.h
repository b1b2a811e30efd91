#pragma once

#include "app/window/widgets/slider_scale.h"

#include <QAbstractSlider>

#include <optional>

namespace kvscope {

/// The design's slider: track 4, thumb 12, a tick at the default. Keyboard and screen readers see an ordinary slider.
/// The wheel acts only with the focus; a double click resets.
class ValueSlider : public QAbstractSlider {
    Q_OBJECT

public:
    explicit ValueSlider(QWidget* parent = nullptr);

    void setScale(const SliderScale& scale);
    const SliderScale& scale() const { return m_scale; }
    void setDefault(std::optional<double> value);
    /// Sets the shown value without emitting `edited`.
    void showValue(double value);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void edited(double value); ///< by the user, also while dragging
    void released();           ///< a drag or a step has ended
    void resetRequested();

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;

    QRectF track() const;
    double xOf(double value) const;

private:
    void dragTo(double x);

    SliderScale m_scale;
    std::optional<double> m_default;
    bool m_showing = false;
};

} // namespace kvscope
