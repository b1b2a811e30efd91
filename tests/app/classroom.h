#pragma once

#include "app/window/docks/dock_layout.h"
#include "app/workbench/step_driver.h"
#include "tests/app/window_fixture.h"

#include <QPushButton>
#include <QToolButton>

#include <algorithm>
#include <optional>

namespace kvscope::testing {

constexpr int kLessons = 16; ///< of the program

/// A window in which lessons are opened as from the list.
struct Classroom : OpenWindow {
    using OpenWindow::OpenWindow;

    PanelDock* dock(const char* id) const { return window.docks()->dock(id); }
    template <class T> T* find(const char* name) const { return window.findChild<T*>(name); }
    StepDriver& steps() { return *window.steps(); }
    std::optional<TokenIndex> cursor() const { return bench.session().look.cursor; }

    /// As the list in the Teach layout does, which a narrow window folds.
    void openLesson(int number) {
        QTest::keyClick(&window, Qt::Key_3, Qt::ControlModifier);
        QCOMPARE(bench.session().layout, WindowLayout::Teach);
        arrange();
        if (dock("lessons")->isHidden()) QTest::mouseClick(find<QToolButton>("unfold"), Qt::LeftButton);
        const auto row = [&] {
            const auto rows = window.findChildren<QPushButton*>(QString("lesson%1").arg(number));
            const auto seen = std::ranges::find_if(rows, &QWidget::isVisible);
            return seen == rows.end() ? nullptr : *seen;
        };
        QTRY_VERIFY_WITH_TIMEOUT(row(), 20'000); // when the docks are arranged
        QTest::mouseClick(row(), Qt::LeftButton);
        QTRY_VERIFY(lessonOf(bench.session()) && lessonOf(bench.session())->number == number);
        QTRY_VERIFY(find<QLabel>("lessonText") && find<QLabel>("lessonText")->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(settled(), 60'000); // on a busy machine, too
    }
    bool settled() const {
        const ViewInput input = bench.viewInput();
        return std::all_of(input.panes.begin(), input.panes.end(),
                           [](const PaneData& p) { return p.result && !p.computing; });
    }
};

} // namespace kvscope::testing
