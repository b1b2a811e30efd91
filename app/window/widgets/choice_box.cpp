// Qt clips the text of a closed drop-down inside a letter; an ellipsis shows that it is cut.
#include "app/window/widgets/choice_box.h"

#include <QAbstractItemView>
#include <QHelpEvent>
#include <QScrollBar>
#include <QStyleOptionComboBox>
#include <QStylePainter>
#include <QToolTip>

namespace kvscope {

QString ChoiceBox::shownText() const {
    QStyleOptionComboBox option;
    initStyleOption(&option);
    const QRect field = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
    return fontMetrics().elidedText(currentText(), Qt::ElideRight, field.width());
}

void ChoiceBox::addHeading(const QString& text) {
    addItem(text.toUpper());
    setItemData(count() - 1, 0, Qt::UserRole - 1); // the item's flags: none
    QFont small = font();
    small.setBold(true);
    setItemData(count() - 1, small, Qt::FontRole);
}

void ChoiceBox::showPopup() {
    view()->setMinimumWidth(view()->sizeHintForColumn(0) + view()->verticalScrollBar()->sizeHint().width());
    QComboBox::showPopup();
}

void ChoiceBox::paintEvent(QPaintEvent*) {
    QStylePainter painter(this);
    QStyleOptionComboBox option;
    initStyleOption(&option);
    option.currentText = shownText();
    painter.drawComplexControl(QStyle::CC_ComboBox, option);
    painter.drawControl(QStyle::CE_ComboBoxLabel, option);
}

bool ChoiceBox::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && shownText() != currentText()) {
        const QString more = toolTip().isEmpty() ? currentText() : currentText() + "\n" + toolTip();
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), more, this);
        return true;
    }
    return QComboBox::event(event);
}

} // namespace kvscope
