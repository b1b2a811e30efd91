#pragma once

#include <QComboBox>

namespace kvscope {

/// A drop-down that elides its text; the whole text is then the tool tip.
class ChoiceBox : public QComboBox {
    Q_OBJECT

public:
    using QComboBox::QComboBox;
    /// A line that cannot be chosen, above the choices of a group.
    void addHeading(const QString& text);
    /// What is painted.
    QString shownText() const;
    /// The popup has room for whole names, however narrow the closed box is.
    void showPopup() override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;
};

} // namespace kvscope
