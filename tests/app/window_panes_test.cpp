// Panes that are gone, that show a recorded list, or have little room: for their pictures, read-outs and headers.
#include <QtTest>

#include "app/window/actions/window_actions.h"
#include "app/window/canvas/pane_frame.h"
#include "app/window/canvas/pane_header.h"
#include "app/window/canvas/read_out.h"
#include "app/window/canvas/view_canvas.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/docks/panel_dock.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/panels/status_line.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/value_slider.h"
#include "core/lists/selection_file.h"
#include "core/run/record_results.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTimer>

#include <set>
#include <span>
#include <vector>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class WindowPanesTest : public QObject {
    Q_OBJECT

private slots:
    void aWindowWithoutPanesSaysItsFile() {
        OpenWindow open;
        open.bench.change(
            [](Session& s) {
                s.selected.clear();
                s.selectionName.clear();
                s.panes.clear();
            },
            "Close all");
        open.settle();
        QVERIFY(open.window.statusLine()->text().contains("needle-1k.h5"));
    }

    // By the keyboard: the button goes with its pane, and the next key belongs to a pane, not to the window's first
    // control.
    void closingAPaneGivesTheFocusToTheActiveOne() {
        OpenWindow open;
        PaneFrame* last = open.window.findChildren<PaneFrame*>().back();
        QToolButton* close = nullptr;
        for (QToolButton* button : last->header()->findChildren<QToolButton*>())
            if (button->accessibleName() == "Remove this pane") close = button;
        QVERIFY(close);
        close->setFocus(Qt::TabFocusReason);
        QTest::keyClick(close, Qt::Key_Space);
        open.settle();
        QCOMPARE(open.bench.session().panes.size(), std::size_t{2});
        const QWidget* focused = open.window.focusWidget();
        const auto panes = open.window.findChildren<PaneFrame*>();
        QVERIFY(focused && panes[open.bench.session().activePane]->canvas()->isAncestorOf(focused));
    }

    // The rail of folded panels belongs to Whole model; it took the width of a pane from the layout behind it.
    void theRailLeavesWithItsLayout() {
        OpenWindow open;
        const int width = open.pane(0)->width();
        for (const WindowLayout layout : {WindowLayout::WholeModel, WindowLayout::ComparePolicies}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.arrange();
            QCOMPARE(open.window.findChild<QWidget*>("leftRail")->isVisible(), layout == WindowLayout::WholeModel);
        }
        QCOMPARE(open.pane(0)->width(), width);
    }

    void whatIsSaidLiesOverThePanels() {
        OpenWindow open;
        QWidget& notices = *open.window.notices().passing();
        open.window.notices().show("write a.svg", NoticeStrip::Tone::Progress, "Writing a.svg: 5 %"); // stays
        for (const WindowLayout layout : {WindowLayout::ExploreHead, WindowLayout::Teach, WindowLayout::WholeModel,
                                          WindowLayout::ComparePolicies}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.settle();
            for (const int x : {8, notices.width() / 2, notices.width() - 8}) {
                const QWidget* at = open.window.childAt(notices.pos() + QPoint(x, notices.height() / 2));
                QVERIFY(at == &notices || notices.isAncestorOf(at));
            }
            for (const QWidget* header : open.window.findChildren<QWidget*>("dockHeader"))
                QVERIFY(!header->isVisible() ||
                        !notices.geometry().intersects({header->mapTo(&open.window, QPoint()), header->size()}));
        }
    }

    void noNoticeHidesWhatHasTheFocus() {
        OpenWindow open({1280, 800});
        QWidget& notices = *open.window.notices().passing();
        open.window.notices().show("write a.svg", NoticeStrip::Tone::Progress, "Writing a.svg: 5 %"); // stays
        open.settle();
        const auto isHidden = [&](const QWidget* widget) { // its middle
            return notices.geometry().contains(widget->mapTo(&open.window, widget->rect().center()));
        };
        std::vector<QWidget*> under; // it, where it was
        for (QWidget* widget : open.window.findChildren<QWidget*>())
            if (widget->isVisible() && (widget->focusPolicy() & Qt::TabFocus) && !notices.isAncestorOf(widget) &&
                widget->height() < 40 && isHidden(widget))
                under.push_back(widget);
        QVERIFY(!under.empty());
        const QPoint before = notices.pos();
        for (QWidget* widget : under) {
            widget->setFocus(Qt::TabFocusReason);
            QVERIFY2(widget->hasFocus() && !isHidden(widget),
                     (widget->metaObject()->className() + widget->objectName().toUtf8()).constData());
        }
        open.window.findChild<BudgetBar*>()->slider()->setFocus(Qt::TabFocusReason);
        QCOMPARE(notices.pos(), before);
    }

    /// The axes of the projection have one scale: what counts is the largest square in a pane.
    void fourPanesStandWhereTheirPicturesAreLargest() {
        OpenWindow open({1920, 1080});
        open.bench.change(
            [](Session& s) {
                s.layout = WindowLayout::ComparePolicies;
                s.panes.push_back({PolicySpec::parse("h2o"), {}, {}});
            },
            "Pane");
        open.settle();
        const auto rows = [&] {
            std::set<int> heights;
            for (std::size_t i = 0; i < 4; ++i) heights.insert(open.pane(i)->y());
            return heights.size();
        };
        QCOMPARE(rows(), std::size_t{1});
        open.window.resize(1440, 900); // a quarter of the width would be too narrow for a header
        open.settle();
        QCOMPARE(rows(), std::size_t{2});
        open.window.resize(2560, 800); // room for four, in one row or two: the row is higher
        open.settle();
        QCOMPARE(rows(), std::size_t{1});
    }

    /// Legend, numbers and titles of the axes lie around the plot.
    void aPinnedReadOutCoversNoText() {
        OpenWindow open;
        open.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        open.settle();
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        const ReadOut* readOut = open.pane(0)->canvas()->readOut();
        for (const TokenIndex token : open.bench.session().selected) {
            const QPoint at = open.widgetPointOf(0, token);
            QTest::mouseMove(canvas, at);
            QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
            QVERIFY(readOut->isVisible() && readOut->isPinned());
            const QRect box(canvas->mapFrom(&open.window, readOut->pos()), readOut->size());
            QVERIFY(!box.contains(at));
            for (const Drawable& item : canvas->scene().items)
                if (const auto* text = std::get_if<TextItem>(&item))
                    QVERIFY2(!box.contains(QPointF(text->position.x, text->position.y).toPoint()), text->text.c_str());
            open.window.actions()->byName("clear")->trigger();
            QVERIFY(!readOut->isVisible());
        }
    }

    /// Long names yield; both choices stay in reach.
    void bothPanesOfADifferenceAreChosenInANarrowHeader() {
        OpenWindow open;
        open.bench.change(
            [](Session& s) {
                for (std::size_t pane : {0, 1}) s.panes[pane] = {PolicySpec::parse("balancekv_stream"), {}, {}};
            },
            "Panes");
        PanelDock* dock = open.window.docks()->dock("error_difference");
        dock->present();
        dock->setFloating(true);
        for (const int width : {700, 420, 360, 320}) {
            dock->resize(width, 260);
            open.settle();
            int chips = 0;
            for (const auto* chip : dock->titleBarWidget()->findChildren<QPushButton*>()) {
                if (!chip->isVisible()) continue;
                ++chips;
                QVERIFY2(chip->width() >= 56 && chip->focusPolicy() != Qt::NoFocus,
                         qPrintable(QString("%1 is %2 wide of %3").arg(chip->text()).arg(chip->width()).arg(width)));
                QVERIFY(chip->geometry().right() <= dock->titleBarWidget()->width());
            }
            QCOMPARE(chips, 2);
        }
    }

    /// The name comes before the words of the chips beside it.
    void aChipGivesItsRoomToTheName() {
        OpenWindow open({1440, 900});
        open.bench.change(
            [](Session& s) {
                s.layout = WindowLayout::ComparePolicies;
                s.panes[2] = {PolicySpec::parse("subgen"), {}, {}};
            },
            "Pane");
        open.settle();
        PaneHeader* header = open.pane(2)->header();
        const auto* name = header->findChild<ElidedLabel*>();
        const QString whole = name->accessibleName();
        QCOMPARE(whole, QString("SubGen"));
        int least = 0;
        for (int width = 360; width >= 200; width -= 4) {
            header->resize(width, header->height());
            open.arrange();
            header->resize(width, header->height());
            header->layout()->activate();
            if (name->text() == whole) {
                least = width;
                continue;
            }
            for (const QPushButton* chip : header->findChildren<QPushButton*>())
                QVERIFY2(!chip->isVisible() || chip->text() == QString::fromUtf8("▾") || chip->text().size() <= 6,
                         qPrintable(QString("%1 beside %2 at %3").arg(chip->text(), name->text()).arg(width)));
        }
        QVERIFY2(least > 0 && least < 280, qPrintable(QString::number(least)));
    }

    /// A list that is opened first opens the capture that it names, from beside itself.
    void aListOpensItsCapture() {
        const QTemporaryDir folder;
        const QString list = folder.filePath("list.json"), capture = folder.filePath("needle-1k.h5");
        OpenWindow open;
        const auto result = open.bench.viewInput().panes[0].result;
        writeSelection(list.toStdString(), recordSelection(std::span(&result, 1), {}), open.bench.capture()->tokens());
        open.window.actions()->byName("close")->trigger();
        QVERIFY(open.until([&] { return !open.bench.capture(); }));
        open.window.openPath(list);
        open.settle();
        QVERIFY(!open.bench.capture());
        const QString missing = open.window.notices().messages().join(' ');
        QVERIFY2(missing.contains("needle-1k.h5") && missing.contains("Locate it"), qPrintable(missing));
        QVERIFY(open.noticeButton("Locate…"));
        QVERIFY(QFile::copy(QString::fromStdString(kvscope::testing::kSample), capture));
        open.window.openPath(list);
        QVERIFY2(open.until([&] { return open.bench.capture() && open.bench.session().panes.size() == 4; }),
                 qPrintable(open.window.notices().messages().join(' ')));
        QCOMPARE(open.bench.session().panes.back().recordedPath, list.toStdString());
        QVERIFY(open.window.notices().messages().isEmpty());
    }

    // It has a file and no specification, and no command makes it.
    void aRecordedListIsCopiedAndExported() {
        const QTemporaryDir folder;
        const QString list = folder.filePath("list.json"), again = folder.filePath("again.json");
        OpenWindow open;
        const auto result = open.bench.viewInput().panes[0].result;
        writeSelection(list.toStdString(), recordSelection(std::span(&result, 1), {}), open.bench.capture()->tokens());
        open.bench.change([&](Session& s) { s.panes = {{{}, list.toStdString(), {}}}; }, "List");
        open.settle();
        for (QAction* action : open.window.findChild<PolicyPanel*>()->findChildren<QAction*>())
            if (action->text() == "Copy specification") action->trigger();
        QCOMPARE(QApplication::clipboard()->text(), list);
        QTimer::singleShot(0, qApp, [again] {
            auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            dialog->findChild<QComboBox*>()->setCurrentIndex(1); // the kept list
            kvscope::testing::answerFileDialog(again);
            QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save), Qt::LeftButton);
        });
        open.window.actions()->byName("export")->trigger();
        QVERIFY2(open.until([&] { return QFileInfo::exists(again); }),
                 qPrintable(open.window.notices().messages().join('|')));
        open.settle();
        const RecordedSelection read = readSelection(again.toStdString());
        QVERIFY(read.command.empty());
        QCOMPARE(read.heads[0].kept, result->selection.heads[0].kept);
    }
};

KVSCOPE_WINDOW_TEST(WindowPanesTest)
#include "window_panes_test.moc"
