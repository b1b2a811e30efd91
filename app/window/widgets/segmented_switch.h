#pragma once

#include <QStringList>
#include <QWidget>

namespace kvscope {

/// A choice among a few words in a row, the chosen one filled with ink. A click and the keys Left and Right choose.
class SegmentedSwitch : public QWidget {
    Q_OBJECT

public:
    SegmentedSwitch(QStringList words, const QString& accessibleName, QWidget* parent = nullptr);

    void setCurrent(int index);
    int current() const { return m_current; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void chosen(int index); ///< by the user only

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QRectF segment(int index) const;
    void choose(int index);

    QStringList m_words;
    int m_current = 0;
};

} // namespace kvscope
