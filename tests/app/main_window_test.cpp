// The window as a user has it: real events on a real display (Xvfb in the tests), real results of the sample capture.
#include "app/window/actions/key_sheet.h"
#include "app/window/actions/window_actions.h"
#include "app/window/canvas/pane_header.h"
#include "app/window/canvas/view_options.h"
#include "app/window/canvas_area.h"
#include "app/window/main_window.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/parameter_panel.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/panels/status_line.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/value_slider.h"
#include "core/policies/policy.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QAction>
#include <QApplication>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTest>
#include <QTimer>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

bool hasColour(const QImage& image, Colour colour) {
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
            const QColor pixel = image.pixelColor(x, y);
            if (std::abs(pixel.red() - colour.r) + std::abs(pixel.green() - colour.g) +
                    std::abs(pixel.blue() - colour.b) <
                24)
                return true;
        }
    return false;
}

} // namespace

class MainWindowTest : public QObject {
    Q_OBJECT

private slots:
    void threePanesStandSideBySideWithTheNeedle() {
        OpenWindow open;
        QCOMPARE(open.window.canvases()->panes().size(), std::size_t{3});
        for (std::size_t i = 0; i < 3; ++i) {
            QVERIFY(open.pane(i)->isVisible());
            QCOMPARE(open.pane(i)->y(), open.pane(0)->y());
            QVERIFY2(open.headerText(i).contains("needle"), qPrintable(open.headerText(i)));
        }
        QVERIFY(open.pane(0)->x() < open.pane(1)->x() && open.pane(1)->x() < open.pane(2)->x());
        QVERIFY(open.headerText(0).contains("12/16"));
        QVERIFY(open.headerText(2).contains("0/16"));
        QVERIFY(open.window.statusLine()->text().contains("needle-1k.h5"));
    }

    // Who compares policies at one budget must see which of them did not keep it, and why.
    void aBudgetThatIsNotKeptIsSaidLoudly() {
        OpenWindow open;
        const auto* warning = open.window.findChild<QWidget*>("budgetWarning");
        QVERIFY(warning && !warning->isVisible());
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("subgen"); }, "Policy");
        open.waitForResults();
        const auto kept = open.bench.viewInput().panes[0].result->selection.heads[1].kept.size();
        QTRY_VERIFY(warning->isVisible());
        const auto says = [&](const QString& part) {
            const auto labels = warning->findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(),
                               [&](const QLabel* l) { return l->isVisible() && l->text().contains(part); });
        };
        QVERIFY(says(QString("Keeps %1 tokens (").arg(kept)) && says("%), not 249 tokens (25.0 %)"));
        QVERIFY(says("the radius decides that, not the budget"));
        open.bench.change([](Session& s) { s.activePane = 1; }, "Active pane");
        QVERIFY(!warning->isVisible()); // SnapKV keeps what was asked for
    }

    void aNarrowStatusLineKeepsTheHeadAndTheSelection() {
        OpenWindow open({1280, 800});
        const auto* line = open.window.statusLine()->findChild<ElidedLabel*>();
        const QString selected = "selected: needle, 16 tokens, 12 kept by A";
        QTRY_VERIFY2(line->text().contains(selected) && line->text().contains("query head"), qPrintable(line->text()));
        QVERIFY(!line->text().contains(QChar(0x2026)));
        QVERIFY(line->accessibleName().contains("needle-1k.h5") &&
                line->accessibleName().contains("bf16")); // all of it
        open.window.resize(1440, 900);
        open.bench.change([](Session& s) { s.activePane = 2; }, "Active pane");
        QTRY_VERIFY2(line->accessibleName().contains("0 kept by C"), qPrintable(line->accessibleName()));
    }

    void numbersOfViewsAreTypedInADialog() {
        OpenWindow open;
        QMenu menu(&open.window);
        addOptionEntries(&menu, open.bench, viewById("leverage"));
        QAction* entry = nullptr;
        for (QAction* action : menu.actions())
            if (action->text() == QString("Sketch columns: 0…")) entry = action;
        QVERIFY(entry);
        QTimer::singleShot(0, &open.window, [] {
            auto* dialog = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            dialog->setTextValue("16");
            dialog->accept();
        });
        entry->trigger();
        QCOMPARE(viewOptions(open.bench.session(), viewById("leverage")).integer("sketch_size"), 16);
        open.window.actions()->byName("undo")->trigger();
        QCOMPARE(viewOptions(open.bench.session(), viewById("leverage")).integer("sketch_size"), 0);
    }

    void theBudgetSliderMovesAllPanesAndIsOneUndoStep() {
        OpenWindow open;
        const QString before = open.kept(1);
        QCOMPARE(before, QString("249"));
        ValueSlider* slider = open.window.budgetBar()->slider();
        const QPoint middle(slider->width() / 2, slider->height() / 2);
        QTest::mousePress(slider, Qt::LeftButton, {}, middle);
        for (int step = 1; step <= 8; ++step) QTest::mouseMove(slider, middle + QPoint(step * slider->width() / 20, 0));
        QTest::mouseRelease(slider, Qt::LeftButton, {}, middle + QPoint(8 * slider->width() / 20, 0));
        open.waitForResults();
        QVERIFY2(open.kept(1).toInt() > 400, qPrintable(open.kept(1)));
        QCOMPARE(open.kept(1), open.kept(2));
        QVERIFY(open.bench.history().canUndo());
        open.window.actions()->byName("undo")->trigger();
        open.waitForResults();
        QTRY_COMPARE(open.kept(1), before);
        QVERIFY(!open.bench.history().canUndo());
    }

    void theSliderWorksByKeyboard() {
        OpenWindow open;
        ValueSlider* slider = open.window.budgetBar()->slider();
        slider->setFocus();
        QTest::keyClick(slider, Qt::Key_Right);
        const double oneStep = open.bench.session().budget.value;
        QVERIFY(oneStep > 0.25);
        QTest::keyClick(slider, Qt::Key_Home);
        QCOMPARE(open.bench.session().budget.value, 0.01);
        open.bench.undo(); // each key that was pressed and released is a step
        QCOMPARE(open.bench.session().budget.value, oneStep);
        open.bench.undo();
        QCOMPARE(open.bench.session().budget.value, 0.25);
    }

    void aTypedBudgetIsExactAndABadOneIsRefusedInAStrip() {
        OpenWindow open;
        auto* field = open.window.findChild<QLineEdit*>("budgetTokens");
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, "100");
        QTest::keyClick(field, Qt::Key_Return);
        open.waitForResults();
        QTRY_COMPARE(open.kept(2), QString("100"));
        QTest::keyClick(field, Qt::Key_Z, Qt::ControlModifier); // the value was taken: the window undoes it
        QCOMPARE(open.bench.session().budget.value, 0.25);
        QTest::keyClick(field, Qt::Key_Y, Qt::ControlModifier);
        QCOMPARE(open.bench.session().budget.value, 100.0);
        field->selectAll();
        QTest::keyClicks(field, "5000");
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(open.window.notices().messages().size(), 1);
        QVERIFY(field->property("wrong").toBool());
        QCOMPARE(open.bench.session().budget.text(), std::string("100t"));
    }

    void everyPolicyHasAPanelMadeFromItsTable() {
        OpenWindow open;
        for (const Policy* policy : allPolicies()) {
            open.bench.change(
                [&](Session& s) {
                    s.panes[0].policy = PolicySpec::parse(policy->card().id);
                    s.activePane = 0;
                },
                "Policy");
            const ParameterPanel* panel = open.window.policyPanel()->parameters();
            QCOMPARE(panel->rowCount(), policy->card().parameters->size());
            for (const ParameterSpec& spec : *policy->card().parameters) {
                QVERIFY2(panel->row(spec.id), spec.id.c_str());
                QVERIFY2(panel->row(spec.id)->toolTip().contains(QString::fromStdString(spec.help).toHtmlEscaped()),
                         spec.id.c_str());
            }
            if (policy->card().id == "imported") // nothing to choose from until a file is named
                QTRY_VERIFY(QString::fromStdString(open.bench.viewInput().panes[0].error).contains("file"));
            else
                open.waitForResults();
        }
    }

    void aTypedParameterChangesTheSessionAndABadOneSaysWhy() {
        OpenWindow open;
        ParameterRow* row = open.window.policyPanel()->parameters()->row("protect_last");
        QVERIFY(row);
        auto* field = row->findChild<QLineEdit*>();
        field->selectAll();
        QTest::keyClicks(field, "7");
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(open.bench.session().panes[0].policy.values.integer("protect_last"), 7);
        field->selectAll();
        QTest::keyClicks(field, "-4");
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY2(row->errorMessage().contains("Protect last"), qPrintable(row->errorMessage()));
        QCOMPARE(open.bench.session().panes[0].policy.values.integer("protect_last"), 7);
    }

    void thePictureShowsKeptAndEvictedInTheirColours() {
        OpenWindow open;
        for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark}) {
            open.bench.change([&](Session& s) { s.look.theme = choice; }, "Theme");
            open.arrange();
            CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
            const QImage image = canvas->picture();
            const Theme& theme = chrome();
            QVERIFY(hasColour(image, theme.kept));
            QVERIFY(hasColour(image, theme.evicted));
            QVERIFY(hasColour(image, theme.canvas));
        }
    }

    void theScreenNamesWhatItShows() {
        OpenWindow open;
        const QStringList texts = open.visibleTexts();
        for (const char* wanted : {"Capture", "needle-1k.h5", "Policies", "KeyDiff", "SnapKV", "StreamingLLM",
                                   "Parameters", "Fidelity", "relative output error", "Token strip", "Overlap", "995"})
            QVERIFY2(!texts.filter(wanted).isEmpty(), wanted);
    }

    void noNumberOrLabelIsCut_data() {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1280 x 800") << QSize(1280, 800);
        QTest::newRow("1440 x 900") << QSize(1440, 900);
        QTest::newRow("2560 x 1440") << QSize(2560, 1440);
    }
    void noNumberOrLabelIsCut() {
        QFETCH(QSize, size);
        OpenWindow open(size);
        for (const QLabel* label : open.window.findChildren<QLabel*>()) {
            const bool mayElide =
                !label->toolTip().isEmpty() || label->wordWrap() || !label->pixmap(Qt::ReturnByValue).isNull();
            if (!label->isVisible() || mayElide || label->text().isEmpty()) continue;
            QVERIFY2(label->width() + 1 >= label->sizeHint().width(), qPrintable(QString("\"%1\" needs %2, has %3")
                                                                                     .arg(label->text())
                                                                                     .arg(label->sizeHint().width())
                                                                                     .arg(label->width())));
        }
    }

    void hoverReadsOutAndAClickPinsIt() {
        OpenWindow open;
        const TokenIndex token = open.bench.session().selected.front();
        const QPoint at = open.widgetPointOf(0, token);
        QVERIFY(at.x() >= 0);
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        QTest::mouseMove(canvas, at);
        ReadOut* readOut = open.pane(0)->canvas()->readOut();
        QTRY_VERIFY(readOut->isVisible());
        QVERIFY2(readOut->text().contains("rank"), qPrintable(readOut->text()));
        QVERIFY(!readOut->geometry().contains(canvas->mapTo(&open.window, at)));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QVERIFY(readOut->isPinned());
        QVERIFY2(readOut->height() > 60 && readOut->width() > 100, "the pinned read-out lost its lines");
        open.window.actions()->byName("clear")->trigger();
        QVERIFY(!readOut->isVisible());
    }

    void shiftDragSelectsAndEscapeClears() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(1)->canvas()->canvas();
        const QPoint from(canvas->width() / 3, canvas->height() / 3),
            to(2 * canvas->width() / 3, 2 * canvas->height() / 3);
        QTest::mousePress(canvas, Qt::LeftButton, Qt::ShiftModifier, from);
        QTest::mouseMove(canvas, (from + to) / 2);
        QTest::mouseMove(canvas, to);
        QTest::mouseRelease(canvas, Qt::LeftButton, Qt::ShiftModifier, to);
        QVERIFY(open.bench.session().selected.size() > 16);
        QVERIFY(open.bench.session().selectionName.empty());
        open.window.actions()->byName("clear")->trigger();
        QVERIFY(open.bench.session().selected.empty());
        open.bench.undo();
        open.bench.undo();
        QCOMPARE(open.bench.session().selected.size(), std::size_t{16});
    }

    void theWheelZoomsAllPanesAndADoubleClickFits() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        const QPointF centre(canvas->width() / 2.0, canvas->height() / 2.0);
        QWheelEvent wheel(centre, canvas->mapToGlobal(centre), {}, {0, 120}, Qt::NoButton, Qt::NoModifier,
                          Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(canvas, &wheel);
        QVERIFY(open.bench.session().look.ranges.contains("key_projection"));
        const Scene& other = open.pane(2)->canvas()->canvas()->scene();
        QVERIFY(std::abs(other.xMax - canvas->scene().xMax) < 1e-9);
        QTest::mouseDClick(canvas, Qt::LeftButton, {}, centre.toPoint());
        QVERIFY(!open.bench.session().look.ranges.contains("key_projection"));
    }

    void theReadOutOfALowStripIsWhole() {
        OpenWindow open;
        ViewCanvas* strip = open.strip();
        QCOMPARE(strip->view().card().id, std::string("token_strip"));
        const auto at = positionOfToken(strip->canvas()->scene(), open.bench.session().selected.front());
        QVERIFY(at); // the strip has scrolled to the needle
        QTest::mouseMove(strip->canvas(), QPoint(static_cast<int>(at->x) + 3, static_cast<int>(at->y)));
        QTRY_VERIFY(strip->readOut()->isVisible());
        QVERIFY(open.window.rect().contains(strip->readOut()->geometry()));
        QVERIFY(strip->readOut()->height() >= strip->readOut()->sizeHint().height());
    }

    void thePanelFitsItsColumn() {
        OpenWindow open({1280, 800});
        QVERIFY2(open.window.policyPanel()->width() <= open.window.policyPanel()->parentWidget()->width(),
                 qPrintable(QString::number(open.window.policyPanel()->width())));
    }

    void everyKeyOfTheSheetBelongsToALiveCommand() {
        OpenWindow open;
        open.window.actions()->byName("keys")->trigger();
        const auto* sheet = open.window.findChild<KeySheet*>();
        QVERIFY(sheet && sheet->isVisible());
        QStringList texts;
        for (const QLabel* label : sheet->findChildren<QLabel*>()) texts += label->text();
        for (const char* key : {"Ctrl+Z", "Ctrl+F", "F5", "F12", "[", "Ctrl+G", "Ctrl+S"})
            QVERIFY2(texts.contains(key), key);
    }

    void findSelectsTheNextPlaceInAllViews() {
        OpenWindow open;
        auto* find = open.window.findChild<QLineEdit*>("find");
        find->setFocus();
        QTest::keyClicks(find, "81590");
        QTest::keyClick(find, Qt::Key_Return);
        const auto first = open.bench.session().selected;
        QVERIFY(!first.empty());
        QCOMPARE(open.bench.session().selectionName, std::string("81590"));
        QTest::keyClick(find, Qt::Key_Return);
        QVERIFY(open.bench.session().selected != first); // the answer repeats the code
        find->clear();
        QTest::keyClicks(find, "no such text");
        QTest::keyClick(find, Qt::Key_Return);
        QCOMPARE(open.window.notices().messages().size(), 1);
    }

    void idleDrawsNoFrames() {
        OpenWindow open;
        const CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        const std::vector<int> frames = open.framesWhenStill();
        QCOMPARE(open.runningTimers(), QStringList()); // what could begin a frame by itself
        QCOMPARE(open.framesWhenStill(), frames);
        const int own = canvas->framesDrawn();
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.4}); }, "Budget");
        open.finish();
        QVERIFY(canvas->framesDrawn() > own); // the count would show it
    }

    void panesComeAndGo() {
        OpenWindow open;
        open.bench.change([](Session& s) { addPane(s, {PolicySpec::parse("tova"), {}, {}}); }, "Add pane");
        QCOMPARE(open.window.canvases()->panes().size(), std::size_t{4});
        open.waitForResults();
        for (int i = 0; i < 4; ++i) open.bench.change([](Session& s) { removePane(s, 0); }, "Remove pane");
        QVERIFY(open.window.canvases()->panes().empty());
        QVERIFY(open.visibleTexts().contains("No policy is shown."));
    }

    void closingLeavesAnEmptyWindowThatSaysWhatToDo() {
        OpenWindow open;
        open.window.actions()->byName("close")->trigger();
        QVERIFY(open.visibleTexts().contains("No capture is open."));
    }

    void whileACaptureOpensTheWindowSaysSo() {
        kvscope::testing::WindowParts parts(2);
        parts.window.show();
        parts.jobs->isHeld = true;
        parts.window.openPath(QString::fromStdString(kvscope::testing::kSample));
        QCOMPARE(parts.window.findChild<QLabel*>("emptySentence")->text(), QString("Opening a capture…"));
        QVERIFY(!parts.window.findChild<QPushButton*>("emptyButton")->isVisible());
        parts.arrange(); // tells what was held
        QVERIFY(parts.until([&] { return parts.bench.capture() != nullptr; }));
    }

    void aMissingFileIsAStripAndLosesNothing() {
        OpenWindow open;
        open.window.openPath("/nowhere/at-all.h5");
        QTRY_COMPARE(open.window.notices().messages().size(), 1);
        QVERIFY(open.window.notices().messages()[0].contains("at-all.h5"));
        QVERIFY(open.bench.capture());
    }

    void theInterfaceScales() {
        OpenWindow open;
        const int before = open.window.budgetBar()->height();
        open.window.actions()->byName("larger")->trigger();
        open.arrange();
        QCOMPARE(open.window.budgetBar()->height(), before * 5 / 4);
        open.window.actions()->byName("normalSize")->trigger();
        QCOMPARE(open.window.budgetBar()->height(), before);
    }
};

KVSCOPE_WINDOW_TEST(MainWindowTest)
#include "main_window_test.moc"
