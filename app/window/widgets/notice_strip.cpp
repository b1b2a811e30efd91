// A column of coloured rows that takes no room while empty.
#include "app/window/widgets/notice_strip.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace kvscope {

NoticeStrip::NoticeStrip(QWidget* parent) : QWidget(parent), m_rows(new QVBoxLayout(this)) {
    m_rows->setContentsMargins(0, 0, 0, 0);
    m_rows->setSpacing(0);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    setVisible(false);
}

void NoticeStrip::show(const QString& id, Tone tone, const QString& message, const QString& actionText,
                       std::function<void()> action) {
    dismiss(id);
    const Theme& theme = chrome();
    const bool isError = tone == Tone::Error;
    const Colour ground = isError ? theme.errorGround : theme.warningGround;
    const Colour line = isError ? theme.errorLine : theme.warningLine;
    const Colour text = isError ? theme.error : theme.warning;

    auto* row = new QFrame(this);
    row->setObjectName(id);
    row->setStyleSheet(QString("QFrame { background: %1; border: none; border-bottom: 1px solid %2; }")
                           .arg(qColor(ground).name(), qColor(line).name()));
    auto* layout = makeLayout<QHBoxLayout>(row, {12, 4, 8, 4});
    auto* icon = new QLabel(row);
    icon->setPixmap(themedIcon(isError ? "warning" : "info", text).pixmap(px(16), px(16)));
    icon->setStyleSheet("border: none;");
    layout->addWidget(icon);
    auto* label = new QLabel(message, row);
    label->setObjectName("message");
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setStyleSheet(QString("color: %1; border: none;").arg(qColor(theme.text1).name()));
    layout->addWidget(label, 1);
    if (action) {
        auto* button = new QPushButton(actionText, row);
        connect(button, &QPushButton::clicked, this, [this, id, action = std::move(action)] {
            dismiss(id);
            action();
        });
        layout->addWidget(button);
    }
    auto* close = iconButton("close", tr("Close this message"), row);
    connect(close, &QToolButton::clicked, this, [this, id] { dismiss(id); });
    layout->addWidget(close);
    m_rows->addWidget(row);
    setAccessibleName(message);
    setVisible(true);
}

void NoticeStrip::dismiss(const QString& id) {
    for (QFrame* row : findChildren<QFrame*>(id, Qt::FindDirectChildrenOnly)) {
        row->setObjectName({});
        m_rows->removeWidget(row);
        row->hide();
        row->deleteLater();
    }
    setVisible(m_rows->count() > 0);
}

void NoticeStrip::dismissAll() {
    for (QFrame* row : findChildren<QFrame*>(Qt::FindDirectChildrenOnly))
        if (!row->objectName().isEmpty()) dismiss(row->objectName());
}

QStringList NoticeStrip::messages() const {
    QStringList found;
    for (int i = 0; i < m_rows->count(); ++i)
        if (const auto* label = m_rows->itemAt(i)->widget()->findChild<QLabel*>("message")) found += label->text();
    return found;
}

} // namespace kvscope
