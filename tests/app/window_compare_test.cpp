// Two captures in one window, and recorded lists that say whose they are, with real events.
#include <QtTest>

#include "app/window/actions/window_actions.h"
#include "app/window/canvas/pane_header.h"
#include "app/window/canvas/range_dialog.h"
#include "app/window/canvas/view_dock.h"
#include "app/window/dialogs/export_dialog.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/panels/fact_grid.h"
#include "app/window/panels/metrics_table.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/style/appearance.h"
#include "app/workbench/second_workbench.h"
#include "core/lists/selection_file.h"
#include "core/run/record_results.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/common/colour_scale.h"

#include <QAction>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QTableView>
#include <QTemporaryDir>

#include <algorithm>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::OpenWindow;

namespace {

const QString kOther = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/records-2k.h5");

struct ComparedWindow : OpenWindow {
    QSize before;
    bool compares = false;

    explicit ComparedWindow(const QString& other = kOther) {
        before = window.size();
        answerFileDialog(other);
        QTest::keyClick(&window, Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
        compares = until([this] {
            const auto panes = bench.second().viewInput().panes;
            return panes.size() == 3 && panes[0].result && panes[1].result && panes[2].result;
        });
        arrange();
    }
    QLabel* caption(int number) const {
        for (auto* label : window.canvases()->findChildren<QLabel*>(QString("captureCaption%1").arg(number),
                                                                    Qt::FindDirectChildrenOnly))
            return label;
        return nullptr;
    }
};

/// Whether a pane has the frame of the active one.
bool isFramed(PaneFrame* pane) {
    return pane->grab(QRect(0, 20, 1, 1)).toImage().pixelColor(0, 0) == qColor(chrome().ink);
}

} // namespace

class WindowCompareTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() {
        QSettings().clear();
        QSettings().setValue("tourTaken", true);
    }

    void bothCapturesStandInOneWindow() {
        ComparedWindow open;
        QVERIFY(open.compares);
        QCOMPARE(open.window.size(), open.before); // it does not grow
        const auto& second = open.window.canvases()->secondPanes();
        QCOMPARE(second.size(), std::size_t{3});
        for (int number : {1, 2}) {
            QVERIFY(open.caption(number) && open.caption(number)->isVisible());
            QVERIFY(open.caption(number)->toolTip().contains(number == 1 ? "needle-1k.h5" : "records-2k.h5"));
            QVERIFY(open.caption(number)->toolTip().contains("tokens seen"));
        }
        for (std::size_t pane = 0; pane < 3; ++pane) {
            QVERIFY(second[pane]->isVisible() && open.pane(pane)->isVisible());
            QVERIFY(second[pane]->y() > open.pane(pane)->y()); // each below its policy
            QCOMPARE(second[pane]->x(), open.pane(pane)->x());
            QVERIFY(second[pane]->header()->findChild<QLabel*>("paneKept")->text() != open.kept(pane));
        }
        for (ViewDock* dock : open.window.canvases()->docks()) {
            const bool both = dock->canvas()->view().card().id == "two_captures";
            QCOMPARE(dock->canvases().size(), std::size_t(both ? 1 : 2));
        }
        QVERIFY(open.window.windowTitle().contains("needle-1k.h5 and records-2k.h5"));
        // A click on a pane of the second capture turns both to that policy.
        QVERIFY(isFramed(open.pane(0)) && !isFramed(second[0]));
        open.activate();
        QTest::mouseClick(second[2]->header(), Qt::LeftButton, {}, QPoint(60, 40));
        QCOMPARE(open.bench.session().activePane, 2);
        QVERIFY(isFramed(second[2]) && !isFramed(open.pane(2)) && !isFramed(open.pane(0)));
        QTest::mouseClick(open.pane(1)->header(), Qt::LeftButton, {}, QPoint(60, 40));
        QVERIFY(isFramed(open.pane(1)) && !isFramed(second[1]) && !isFramed(second[2]));
        // Ctrl+W closes the second capture alone.
        QTest::keyClick(&open.window, Qt::Key_W, Qt::ControlModifier);
        open.settle();
        QVERIFY(open.bench.capture());
        QVERIFY(!open.bench.second().isOpen());
        QVERIFY(open.window.canvases()->secondPanes().empty());
        QVERIFY(!open.caption(1)->isVisible());
        QVERIFY(open.strip()->width() > open.strip()->parentWidget()->width() - 10); // its dock again
        for (ViewDock* dock : open.window.canvases()->docks())
            for (std::size_t i = 1; i < dock->canvases().size(); ++i) QVERIFY(!dock->canvases()[i]->isVisibleTo(dock));
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY(open.bench.second().isOpen());
    }

    void numbersOfBothCapturesAreShown() {
        ComparedWindow open;
        QVERIFY(open.compares);
        const auto isMeasured = [](const Workbench& bench) {
            const auto panes = bench.viewInput().panes;
            return std::ranges::all_of(
                panes, [](const PaneData& pane) { return pane.result && pane.result->fidelity && !pane.computing; });
        };
        QTRY_VERIFY_WITH_TIMEOUT(isMeasured(open.bench) && isMeasured(open.bench.second()), 60000);
        const ViewInput first = open.bench.viewInput(), second = open.bench.second().viewInput();
        const ViewTable both = metricsOf(first, &second), one = metricsOf(first);
        QCOMPARE(both.rowCount, 2 * one.rowCount);
        QCOMPARE(both.columns[1], std::string("capture"));
        for (int row = 0; row < one.rowCount; ++row) {
            QCOMPARE(both.cell(2 * row, 0), one.cell(row, 0));
            QCOMPARE(both.cell(2 * row, 1), std::string("needle-1k.h5"));
            QCOMPARE(both.cell(2 * row, 2), one.cell(row, 1));
            QCOMPARE(both.cell(2 * row + 1, 0), one.cell(row, 0)); // the same policy
            QCOMPARE(both.cell(2 * row + 1, 1), std::string("records-2k.h5"));
            QCOMPARE(both.cell(2 * row + 1, 2), metricsOf(second).cell(row, 1));
            QVERIFY(both.cell(2 * row, 2) != both.cell(2 * row + 1, 2));
        }
        const auto* table = open.window.findChild<MetricsTable*>();
        QVERIFY(table);
        const QAbstractItemModel* model = table->findChild<QTableView*>()->model();
        QCOMPARE(model->rowCount(), 6);
        for (QWidget* above = table->parentWidget(); above; above = above->parentWidget())
            if (auto* dock = qobject_cast<QDockWidget*>(above)) dock->raise();
        QTRY_VERIFY(table->isVisible());
        const auto* shown = table->findChild<QTableView*>();
        for (int column = 0; column < 3; ++column) // nothing is cut
            QVERIFY(shown->columnWidth(column) >
                    QFontMetrics(shown->font()).horizontalAdvance(model->index(1, column).data().toString()));
        QCOMPARE(model->index(1, 1).data().toString(), QString("records-2k.h5"));
        emit table->findChild<QTableView*>()->clicked(model->index(5, 0));
        QCOMPARE(open.bench.session().activePane, 2); // the third policy, on the second capture
        const auto* facts = open.window.findChild<FactGrid*>("secondFidelity");
        const QString error = QString::fromStdString(both.cell(5, 2));
        const auto says = [&] {
            const auto labels = facts->findChildren<QLabel*>();
            return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text() == error; });
        };
        QTRY_VERIFY_WITH_TIMEOUT(facts && facts->isVisible() && says(), 60000);
        open.bench.second().stopComparing();
        open.arrange();
        QVERIFY(!facts->isVisible());
        QCOMPARE(model->rowCount(), 3);
    }

    void panesOfBothCapturesHaveRoom() {
        ComparedWindow open;
        QVERIFY(open.compares);
        open.arrange();
        QVERIFY(!open.window.docks()->dock("two_captures")->visibleRegion().isEmpty());
        for (const auto* row : {&open.window.canvases()->panes(), &open.window.canvases()->secondPanes()})
            for (const PaneFrame* pane : *row) {
                QCOMPARE(pane->y(), row->front()->y()); // side by side
                QVERIFY2(pane->width() >= 272 && pane->height() >= 200,
                         qPrintable(QString("%1 x %2").arg(pane->width()).arg(pane->height())));
            }
    }

    void aClickTakesTheFrameOfTheKeyboard() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        const auto edge = [&] { return canvas->grab(QRect(1, 40, 1, 1)).toImage().pixelColor(0, 0); };
        open.strip()->canvas()->setFocus();
        canvas->setFocus(Qt::TabFocusReason);
        QCOMPARE(edge(), qColor(chrome().ink));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, canvas->rect().center());
        QVERIFY(canvas->hasFocus() && edge() != qColor(chrome().ink));
    }

    void thePictureInUseIsPresented() {
        ComparedWindow open;
        QVERIFY(open.compares);
        ViewCanvas* second = nullptr;
        for (ViewCanvas* canvas : open.window.findChildren<ViewCanvas*>())
            if (!second && canvas->isVisible() && &canvas->workbench() == &open.bench.second() &&
                canvas->view().card().perPane)
                second = canvas;
        QVERIFY(second);
        open.activate();
        second->canvas()->setFocus();
        QCOMPARE(open.window.currentCanvas(), second);
        open.window.actions()->byName("presenter")->trigger();
        open.settle();
        const auto* presenter = open.window.findChild<QWidget*>("presenter");
        QVERIFY(presenter);
        const auto shown = presenter->findChildren<ViewCanvas*>();
        QCOMPARE(shown.size(), 1);
        QCOMPARE(&shown[0]->workbench(), static_cast<Workbench*>(&open.bench.second()));
        const auto* title = presenter->findChild<QLabel*>("presenterTitle");
        QVERIFY2(title->text().endsWith("records-2k.h5"), qPrintable(title->text()));
    }

    void aTableSaysWhoseItIs() {
        ComparedWindow open;
        QVERIFY(open.compares);
        const auto* first = new DataDialog(open.bench, *open.pane(0)->canvas(), &open.window);
        const auto* second =
            new DataDialog(open.bench.second(), *open.window.canvases()->secondPanes()[2]->canvas(), &open.window);
        const auto isOf = [](const QDialog* dialog, const char* file, const char* pane) {
            return dialog->windowTitle().contains(file) && dialog->windowTitle().endsWith(pane);
        };
        QVERIFY2(isOf(first, "needle-1k.h5", "pane A"), qPrintable(first->windowTitle()));
        QVERIFY2(isOf(second, "records-2k.h5", "pane C"), qPrintable(second->windowTitle()));
        open.bench.second().stopComparing();
        open.settle();
        QVERIFY2(!first->windowTitle().contains("needle-1k.h5"), qPrintable(first->windowTitle()));
    }

    void aSecondFileThatChangedIsReloaded() {
        QTemporaryDir folder;
        const QString path = folder.filePath("second.h5");
        QVERIFY(QFile::copy(kOther, path));
        ComparedWindow open(path);
        QVERIFY(open.compares);
        const auto first = open.bench.capture(), second = open.bench.second().capture();
        // Another program writes the file anew, as atomic writers do.
        QVERIFY(QFile::copy(kOther, folder.filePath("newer.h5")) && QFile::remove(path));
        QVERIFY(QFile::rename(folder.filePath("newer.h5"), path));
        const auto said = [&] { return open.window.notices().messages().join(' '); };
        QTRY_VERIFY_WITH_TIMEOUT(said().contains("second.h5 has changed on disk"), 60'000);
        QTRY_VERIFY(open.noticeButton("Reload"));
        open.noticeButton("Reload")->click();
        const auto isNew = [&] {
            const auto& now = open.bench.second().capture();
            return now && now != second;
        };
        QTRY_VERIFY_WITH_TIMEOUT(isNew(), 60'000);
        QVERIFY(open.bench.capture() != first);
        open.finish();
        QVERIFY2(!said().contains("changed on disk"), qPrintable(said()));
    }

    void bothPicturesShareTheirColours() {
        ComparedWindow open;
        QVERIFY(open.compares);
        for (const QLabel* caption : open.window.findChildren<QLabel*>(QRegularExpression("captureCaption.")))
            if (caption->isVisible()) QVERIFY(caption->contentsRect().height() >= caption->fontMetrics().height());
        const View& map = viewById("attention_map");
        open.bench.showView(map);
        open.bench.second().showView(map);
        const auto rangeOf = [&](const Workbench& bench) {
            const DrawnView drawn = bench.drawn(map);
            const auto scale = map.colourScale(drawn.input, drawn.options);
            return scale ? std::pair(*scale->range().low, *scale->range().high) : std::pair(0.0, 0.0);
        };
        const auto ownOf = [&](const Workbench& bench) {
            const auto scale = map.colourScale(bench.viewInput(map), viewOptions(bench.session(), map));
            return scale ? std::pair(*scale->range().low, *scale->range().high) : std::pair(0.0, 0.0);
        };
        const auto isDone = [&](const Workbench& bench) {
            const DataState now = bench.viewInput(map).data;
            return now.value && !now.computing;
        };
        for (const int layer : {0, 2, 3}) {
            open.bench.change([&](Session& s) { s.layer = LayerIndex(layer); }, "Layer");
            QTRY_VERIFY_WITH_TIMEOUT(isDone(open.bench) && isDone(open.bench.second()), 60000);
            const auto [low, high] = rangeOf(open.bench);
            QCOMPARE(rangeOf(open.bench.second()), std::pair(low, high));
            const auto one = ownOf(open.bench), other = ownOf(open.bench.second());
            QVERIFY(std::abs(low / std::min(one.first, other.first) - 1) < 1e-6);
            QVERIFY(std::abs(high / std::max(one.second, other.second) - 1) < 1e-6);
        }
        open.window.docks()->open(open.window.docks()->dock("attention_map"));
        open.settle();
        QTRY_VERIFY_WITH_TIMEOUT(isDone(open.bench) && isDone(open.bench.second()), 60000);
        for (ViewDock* dock : open.window.canvases()->docks())
            if (&dock->canvas()->view() == &map) dock->canvas()->showRange();
        const auto* dialog = open.window.findChild<RangeDialog*>();
        QVERIFY(dialog);
        QTest::mouseClick(dialog->findChild<QPushButton*>("coloursEach"), Qt::LeftButton);
        QCOMPARE(viewOptions(open.bench.session(), map).text("range"), std::string("each"));
        QVERIFY(ownOf(open.bench) != ownOf(open.bench.second()));
        QCOMPARE(rangeOf(open.bench), ownOf(open.bench));
        QCOMPARE(rangeOf(open.bench.second()), ownOf(open.bench.second()));
    }

    void aListSaysWhoseItIsAndAWrongOneIsRefusedOnce() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("mine.json").toStdString();
        OpenWindow open;
        RunRequest run = open.bench.viewInput().panes.at(1).result->request;
        run.budget = {Budget::Unit::Fraction, 0.1};
        const auto result = open.bench.runner().run(run, {});
        writeSelection(path, recordSelection(std::span(&result, 1), {}), open.bench.capture()->tokens());
        open.window.openPath(QString::fromStdString(path));
        QVERIFY(open.until([&] { return open.bench.viewInput().panes.size() == 4 && open.idle(); }));
        const PaneData pane = open.bench.viewInput().panes.at(3);
        QCOMPARE(pane.policyName, std::string("SnapKV (recorded)"));
        QVERIFY2(pane.variant.ends_with("cut 995, budget 10.0\u00a0%") ||
                     pane.variant.ends_with("cut 995, budget 10.0 %"),
                 pane.variant.c_str());
        // Its budget is not the session's: marked in its header.
        bool marked = false;
        for (const auto* chip : open.pane(3)->header()->findChildren<QPushButton*>())
            marked |= chip->isVisible() && chip->text() == "own budget";
        QVERIFY(marked);
        QStringList facts;
        for (const QLabel* label :
             open.window.policyPanel()->findChild<QWidget*>("recordedFacts")->findChildren<QLabel*>())
            if (label->isVisibleTo(open.window.policyPanel())) facts += label->text();
        for (const char* fact : {"mine.json", "snapkv", "Budget", "Cut", "Seed", "window"})
            QVERIFY2(facts.contains(fact), qPrintable(QString(fact) + " in " + facts.join(" | ")));
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        QVERIFY(open.until([&] { return open.idle(); }));
        for (const auto* chip : open.pane(3)->header()->findChildren<QPushButton*>())
            QVERIFY(!chip->isVisible() || chip->text() != "own budget");
        // On another capture the list is refused by one message, and no pane is added for it.
        open.window.openPath(kOther);
        QVERIFY(open.until([&] { return open.bench.capture()->info().fileName == "records-2k.h5" && open.idle(); }));
        const std::size_t panes = open.bench.session().panes.size();
        open.window.openPath(QString::fromStdString(path));
        open.finish();
        QCOMPARE(open.bench.session().panes.size(), panes);
        QCOMPARE(open.visibleTexts().filter("needle-1k.h5").size(), 1);
    }
};

KVSCOPE_WINDOW_TEST(WindowCompareTest)
#include "window_compare_test.moc"
