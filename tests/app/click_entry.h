#pragma once

#include <QMenu>
#include <QTest>

namespace kvscope::testing {

/// A click on an entry of an open menu. Before it the pointer moves about on the entry, as a hand's does: Qt 6.8
/// closes a menu without choosing when the button is released where the pointer was as the menu opened.
inline void clickEntry(QMenu& menu, QAction* entry) {
    const QPoint there = menu.actionGeometry(entry).center();
    for (int step = 8; step >= 0; --step) QTest::mouseMove(&menu, there - QPoint(step, 0));
    QTest::mouseClick(&menu, Qt::LeftButton, {}, there);
}

} // namespace kvscope::testing
