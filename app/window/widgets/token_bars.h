#pragma once

#include <QString>
#include <QWidget>

#include <vector>

namespace kvscope {

/// A small bar for each token of a text. A marked one carries a dot, so that it is not told by colour alone. Hover says
/// what the token's bar is; a click, the arrow keys, Home, End, Enter and Space choose one.
class TokenBars : public QWidget {
    Q_OBJECT

public:
    struct Bar {
        double height = 0; ///< 0..1; NaN: no bar, the token has no number
        bool isMarked = false;
        QString tip = {};
    };

    explicit TokenBars(QWidget* parent = nullptr);
    void show(std::vector<Bar> bars, const QColor& colour, bool isDimmed);
    void setChosen(int token); ///< -1: none
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void chosen(int token);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    int tokenAt(double x) const; ///< -1: no token is there
    QRectF place(int token) const;

    std::vector<Bar> m_bars;
    QColor m_colour;
    bool m_isDimmed = false;
    int m_chosen = -1;
};

} // namespace kvscope
