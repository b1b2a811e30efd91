#pragma once

#include <QCoreApplication>
#include <QDropEvent>
#include <QMimeData>
#include <QTest>
#include <QUrl>
#include <QWidget>

namespace kvscope::testing {

/// Drags something from another program over the middle of the window and drops it.
inline void dropUrl(QWidget& window, const QUrl& url, Qt::KeyboardModifiers modifiers = {}) {
    QMimeData data;
    data.setUrls({url});
    const QPoint at = window.rect().center();
    QDragEnterEvent enter(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, modifiers);
    QCoreApplication::sendEvent(&window, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, modifiers);
    QCoreApplication::sendEvent(&window, &drop);
    QVERIFY(drop.isAccepted());
}

} // namespace kvscope::testing
