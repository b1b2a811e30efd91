#pragma once

#include "app/workbench/workbench.h"
#include "core/metrics/measures.h"
#include "views/common/colour_scale.h"

#include <QString>
#include <QWidget>

#include <functional>
#include <span>
#include <vector>

class QPainter;
class QRectF;

namespace kvscope {

/// The colours of one measure in the head picker. The output error has a fixed logarithmic range, so that its colours
/// stay comparable; other measures span their values, signed ones symmetrically around 0.
class HeadColours {
public:
    HeadColours(const MeasureCard& measure, std::vector<double> values);

    bool hasRange() const { return m_isError || !m_scale.isEmpty(); }
    Colour colourOf(double value) const; ///< not for NaN
    Colour colourAt(double place) const; ///< of the colour bar, 0 left .. 1 right

    struct Number {
        double place = 0;
        QString text;
    };
    /// Numbers below the bar in order of importance: the ends, then those between; one where all are alike. None
    /// without a range.
    std::vector<Number> numbers() const;

private:
    bool m_isError;
    ValueScale m_scale;
};

/// A number with its place below a bar.
struct PlacedNumber {
    double tick = 0, left = 0, width = 0;
    QString text;
};
/// The numbers that fit side by side below a bar of this width; later ones closer than `gap` to an earlier one are
/// dropped. `widthOf` measures text.
std::vector<PlacedNumber> placeNumbers(std::span<const HeadColours::Number> numbers, double barWidth, double gap,
                                       const std::function<double(const QString&)>& widthOf);

/// Layer x KV head in miniature: one cell per head, coloured by the session's measure, hollow until its layer is
/// computed. Click or arrow keys choose a head.
class HeadPicker : public QWidget {
    Q_OBJECT

public:
    explicit HeadPicker(Workbench& workbench, QWidget* parent = nullptr);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Cell {
        int row = -1, column = -1;
    };
    int rowCount() const;
    int columnCount() const { return m_workbench.capture() ? m_workbench.capture()->info().numKvHeads : 0; }
    QRectF cellBox(Cell cell) const;
    Cell cellAt(QPointF point) const;
    double pitch() const; ///< height of a row
    double widestPitch() const;
    LayerIndex layerOf(Cell cell) const { return m_workbench.capture()->info().layers[cell.row].layer; }
    Cell chosen() const;
    std::optional<double> valueOf(Cell cell) const; ///< NaN where the measure has none
    QString factOf(Cell cell) const;
    QString whyNoNumbers() const;
    HeadColours colours() const;
    void refresh();
    void drawScale(QPainter& painter, const HeadColours& colours) const;
    void choose(Cell cell, const QString& mergeKey = {});

    Workbench& m_workbench;
    Cell m_hovered;
};

} // namespace kvscope
