#pragma once

#include <QLayout>

#include <array>

namespace kvscope {

/// A name and its value beside each other, or the value below the name where it is too narrow for both: a name may
/// wrap, a value keeps its least width. Its height is a function of its width alone: a layout that remembers how it
/// stood makes a scroll area show and hide its bar without end.
class NameValueLine : public QLayout {
public:
    NameValueLine(QWidget* name, QWidget* value, int spacing);
    ~NameValueLine() override;

    void addItem(QLayoutItem* item) override;
    int count() const override;
    QLayoutItem* itemAt(int index) const override;
    QLayoutItem* takeAt(int index) override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;
    QSize minimumSize() const override;
    void setGeometry(const QRect& place) override;

private:
    bool isStacked(int width) const;
    int valueWidth(int width) const;

    std::array<QLayoutItem*, 2> m_items = {}; ///< name and value
};

} // namespace kvscope
