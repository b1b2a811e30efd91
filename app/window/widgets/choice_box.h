#pragma once

#include <QComboBox>

namespace kvscope {

/// A drop-down whose text ends with an ellipsis where it does not fit; the whole text is in the tool tip then.
class ChoiceBox : public QComboBox {
    Q_OBJECT

public:
    using QComboBox::QComboBox;
    /// What is painted.
    QString shownText() const;
    /// With room for whole names, however narrow the closed box is.
    void showPopup() override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;
};

} // namespace kvscope
