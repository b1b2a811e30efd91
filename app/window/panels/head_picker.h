#pragma once

#include "app/session/workbench.h"

#include <QWidget>

namespace kvscope {

/// Layer x KV head in miniature: one cell per head of the capture, coloured by the active pane's output error as far as
/// layers have been computed, hollow before. Click or arrow keys choose a head.
class HeadPicker : public QWidget {
    Q_OBJECT

public:
    explicit HeadPicker(Workbench& workbench, QWidget* parent = nullptr);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

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
    std::optional<double> errorOf(Cell cell) const;
    void choose(Cell cell);

    Workbench& m_workbench;
    Cell m_hovered;
};

} // namespace kvscope
