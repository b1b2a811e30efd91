#pragma once

#include "app/window/panels/head_colours.h"
#include "app/workbench/workbench.h"

#include <QWidget>

namespace kvscope {

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
    bool event(QEvent* event) override;

private:
    struct Cell {
        int row = -1, column = -1;
    };
    int rowCount() const;
    int columnCount() const;
    QRectF cellBox(Cell cell) const;
    Cell cellAt(QPointF point) const;
    double pitch() const;
    LayerIndex layerOf(Cell cell) const;
    Cell chosen() const;
    std::optional<double> valueOf(Cell cell) const; ///< NaN where the measure has none
    QString factOf(Cell cell) const;
    QString whyNoNumbers() const;
    HeadColours colours() const;
    void refresh();
    void drawScale(QPainter& painter, const HeadColours& colours) const;
    void choose(Cell cell);

    Workbench& m_workbench;
    Cell m_hovered;
};

} // namespace kvscope
