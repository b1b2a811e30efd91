#pragma once

#include "app/window/docks/panel_dock.h"
#include "tests/app/window_fixture.h"

#include <initializer_list>

namespace kvscope::testing {

/// Drags the separator at a dock's right side by hand, over these distances in pixels, to the last of them.
inline void dragSeparator(OpenWindow& open, const PanelDock& dock, std::initializer_list<int> distances) {
    const QPoint grip = dock.mapTo(&open.window, QPoint(dock.width() + 2, dock.height() / 2));
    QVERIFY(!open.window.childAt(grip));
    const auto moveMouse = [&](const QPoint& to) {
        QTest::mouseMove(&open.window, to);
        open.arrange(); // Qt moves the separator when it is idle
    };
    moveMouse(grip); // Qt shows a split cursor there
    QTRY_COMPARE(open.window.cursor().shape(), Qt::SplitHCursor);
    QTest::mousePress(&open.window, Qt::LeftButton, {}, grip);
    QPoint end = grip;
    for (const int distance : distances) moveMouse(end = grip + QPoint(distance, 0));
    QTest::mouseRelease(&open.window, Qt::LeftButton, {}, end);
    open.arrange();
}

} // namespace kvscope::testing
