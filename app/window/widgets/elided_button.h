#pragma once

#include "app/window/style/appearance.h"

#include <QCheckBox>
#include <QPushButton>
#include <QStyleOptionButton>
#include <QStylePainter>

#include <algorithm>

namespace kvscope {

/// A button that elides its text where the place is too narrow for it. Its tool tip has to name the whole text.
template <class Button, QStyle::ControlElement kDrawn, QStyle::SubElement kContents>
class ElidedButton : public Button {
public:
    template <class... Arguments> explicit ElidedButton(Arguments&&... arguments) : Button(arguments...) {
        this->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed); // Qt's default never shrinks it
    }
    QSize minimumSizeHint() const override {
        const QSize whole = Button::sizeHint();
        const int text = this->fontMetrics().horizontalAdvance(this->text());
        return {whole.width() - std::max(0, text - px(30)), whole.height()};
    }
    /// What is painted.
    QString shownText() const {
        QStyleOptionButton option;
        this->initStyleOption(&option);
        const int room = this->style()->subElementRect(kContents, &option, this).width();
        return this->fontMetrics().elidedText(option.text, Qt::ElideRight, room);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QStyleOptionButton option;
        this->initStyleOption(&option);
        option.text = shownText();
        QStylePainter(this).drawControl(kDrawn, option);
    }
};

using ElidedPushButton = ElidedButton<QPushButton, QStyle::CE_PushButton, QStyle::SE_PushButtonContents>;
using ElidedCheckBox = ElidedButton<QCheckBox, QStyle::CE_CheckBox, QStyle::SE_CheckBoxContents>;

} // namespace kvscope
