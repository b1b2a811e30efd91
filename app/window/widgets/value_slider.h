#pragma once

#include "core/parameters/parameters.h"

#include <QAbstractSlider>

#include <cstdint>
#include <optional>

namespace kvscope {

/// Maps slider positions to values from min to max, in steps or continuous, linear or logarithmic. Pure arithmetic.
struct SliderScale {
    double min = 0, max = 1;
    double step = 0; ///< 0: continuous
    bool logarithmic = false;

    /// The scale of a parameter; `tokens`: number of tokens before the cut, where the range ends there.
    static SliderScale of(const ParameterSpec& spec, std::int64_t tokens);

    int positions() const;              ///< the slider runs over 0 .. positions()
    int positionOf(double value) const; ///< clamped
    double valueAt(int position) const; ///< on a step; both ends exact
    bool operator==(const SliderScale&) const = default;

private:
    /// log(x + offset): a logarithmic range that starts at 0 keeps its zero.
    double offset() const { return min > 0 ? 0 : 1 - min; }
};

/// The design's slider: track 4, thumb 12, a tick at the default. Keyboard and screen readers see an ordinary slider.
/// The wheel acts only with the focus; a double click resets.
class ValueSlider : public QAbstractSlider {
    Q_OBJECT

public:
    explicit ValueSlider(QWidget* parent = nullptr);

    void setScale(const SliderScale& scale);
    void setDefault(std::optional<double> value);
    /// Sets the shown value without emitting `edited`.
    void showValue(double value);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void edited(double value); ///< by the user, also while dragging
    void released();           ///< the edits so far are one undo step; a drag's step ends when the next one begins
    void resetRequested();

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;

    QRectF track() const;
    double xOf(double value) const;

private:
    void dragTo(double x);
    void beginStep();

    SliderScale m_scale;
    std::optional<double> m_default;
    bool m_isWheeled = false;
};

} // namespace kvscope
