#pragma once

#include "app/window/canvas/pane_header.h"
#include "app/window/canvas_area.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/notice_strip.h"
#include "tests/app/sample.h"
#include "tests/app/window_parts.h"
#include "views/view.h"

#include <QApplication>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QWindow>

namespace kvscope::testing {

/// A window on the sample with everything computed.
struct OpenWindow : WindowParts {
    explicit OpenWindow(QSize size = {1440, 900}) : WindowParts(2) {
        window.resize(size);
        window.show();
        (void)QTest::qWaitForWindowExposed(&window);
        activate();
        bench.openCapture(kSample);
        waitForResults();
    }
    /// Shortcuts belong to the active window: needed before each that follows a dialog.
    void activate() {
        window.activateWindow();
        QTRY_COMPARE(QApplication::activeWindow(), &window); // qWaitForWindowActive is content with a dialog's parent
    }
    bool idle() const {
        const ViewInput input = bench.viewInput();
        for (const PaneData& pane : input.panes)
            if (!pane.result || pane.computing) return false;
        return bench.viewInput(viewById("key_projection")).data.value != nullptr;
    }
    void waitForResults() {
        const auto areThere = [this] { return bench.capture() && idle(); };
        while (!until(areThere) && clock.expireNext()) { // the numbers of a drag wait for its rest
        }
        QVERIFY2(areThere(), qPrintable(window.notices().messages().join(" | ")));
        arrange();
    }
    PaneFrame* pane(std::size_t i) const { return window.canvases()->panes().at(i); }
    ViewCanvas* strip() const {
        for (ViewDock* dock : window.canvases()->docks())
            if (dock->canvas()->view().card().id == "token_strip") return dock->canvas();
        return nullptr;
    }
    /// Frames that each canvas has drawn when everything has come to its end.
    std::vector<int> framesWhenStill() {
        settle();
        std::vector<int> frames;
        for (const CanvasWidget* canvas : window.findChildren<CanvasWidget*>()) frames.push_back(canvas->framesDrawn());
        return frames;
    }
    /// Objects of the window that are going to do something by themselves, by class; a text cursor may blink.
    QStringList runningTimers() const {
        QStringList running;
        for (const QObject* object : window.findChildren<QObject*>())
            if (!QAbstractEventDispatcher::instance()->registeredTimers(const_cast<QObject*>(object)).isEmpty() &&
                !object->inherits("QWidgetLineControl"))
                running += object->metaObject()->className();
        return running;
    }
    QString kept(std::size_t i) const { return pane(i)->header()->findChild<QLabel*>("paneKept")->text(); }
    /// All that the header of a pane says, also what a narrow one has no room for.
    QString headerText(std::size_t i) const {
        QStringList texts;
        for (const QLabel* label : pane(i)->header()->findChildren<QLabel*>()) texts += label->text();
        return texts.join(' ');
    }
    /// The one strip that stands when a file has been read or refused.
    QString verdict() {
        finish();
        const QStringList said = window.notices().messages();
        return said.size() == 1 ? said[0] : "not one strip: " + said.join(" | ");
    }
    /// What the notice `id` says; empty: it does not stand.
    QString said(const char* id) {
        for (const QWidget* rows : {static_cast<QWidget*>(&window.notices()), window.notices().passing()})
            if (const auto* row = rows->findChild<QFrame*>(id)) return row->findChild<QLabel*>("message")->text();
        return {};
    }
    /// A button that a notice shows; null: none does.
    QPushButton* noticeButton(const QString& text) {
        for (const QWidget* rows : {static_cast<QWidget*>(&window.notices()), window.notices().passing()})
            for (auto* button : rows->findChildren<QPushButton*>())
                if (button->isVisible() && button->text() == text) return button;
        return nullptr;
    }
    QStringList visibleTexts() const {
        QStringList texts;
        for (const QLabel* label : window.findChildren<QLabel*>())
            if (label->isVisible()) texts += label->text();
        return texts;
    }
    QPoint widgetPointOf(std::size_t paneIndex, TokenIndex token) const {
        CanvasWidget* canvas = pane(paneIndex)->canvas()->canvas();
        const auto at = positionOfToken(canvas->scene(), token);
        return at ? QPoint(static_cast<int>(at->x * appearance().scale), static_cast<int>(at->y * appearance().scale))
                  : QPoint(-1, -1);
    }
};

} // namespace kvscope::testing
