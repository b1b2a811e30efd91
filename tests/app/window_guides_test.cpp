// What leads people through the window: the tour of the first run, going to a place by number, and what is said while a
// file opens or a report is written. Real events throughout.
#include "app/window/actions/tour.h"
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/go_to_dialog.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/widgets/value_slider.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTimer>

#include <atomic>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::kSample;
using kvscope::testing::OpenWindow;

namespace {

void type(QDialog* dialog, const char* field, const QString& text) {
    auto* edit = dialog->findChild<QLineEdit*>(field);
    edit->setFocus();
    edit->selectAll();
    QTest::keyClicks(edit, text);
}

GoToDialog* goTo(OpenWindow& open) {
    QTest::keyClick(&open.window, Qt::Key_G, Qt::ControlModifier);
    return open.window.findChild<GoToDialog*>();
}

void press(QDialog* dialog, QDialogButtonBox::StandardButton button) {
    QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(button), Qt::LeftButton);
}

} // namespace

class WindowGuidesTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() { QSettings().clear(); }

    void ctrlGGoesToLayerHeadQueryAndKey() {
        OpenWindow open;
        GoToDialog* dialog = goTo(open);
        QVERIFY(dialog && dialog->isVisible() && !dialog->isModal());
        type(dialog, "goToLayer", "1");
        type(dialog, "goToQueryHead", "2");
        type(dialog, "goToKey", "620");
        type(dialog, "goToQuery", "1,000");
        press(dialog, QDialogButtonBox::Ok);
        const Session& session = open.bench.session();
        QCOMPARE(session.layer.value, 1);
        QCOMPARE(session.queryHead.value, 2);
        QCOMPARE(session.kvHead.value, 0); // the one that query head 2 reads
        QCOMPARE(session.selected, std::vector<TokenIndex>{620});
        const Viewport::Range range = session.look.ranges.at("attention_map");
        QVERIFY(range.xMin < 620 && range.xMax > 620 && range.yMin < 1000 && range.yMax > 1000 && range.yMax <= 1028);
        QVERIFY(range.xMax - range.xMin < 80);
        open.activate();
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier); // one step
        QCOMPARE(open.bench.session().layer.value, 3);
        QCOMPARE(open.bench.session().selected.size(), std::size_t{16});
    }

    void emptyFieldsStayWhereTheyAre() {
        OpenWindow open;
        const Session before = open.bench.session();
        GoToDialog* dialog = goTo(open);
        type(dialog, "goToKvHead", "0");
        press(dialog, QDialogButtonBox::Ok);
        QCOMPARE(open.bench.session().kvHead.value, 0);
        QCOMPARE(open.bench.session().layer.value, before.layer.value);
        QCOMPARE(open.bench.session().selected, before.selected);
        QVERIFY(open.bench.session().look.ranges.empty());
    }

    void aQueryWithoutAKeyIsAskedFor() {
        OpenWindow open;
        const Session before = open.bench.session();
        GoToDialog* dialog = goTo(open);
        type(dialog, "goToQuery", "1000");
        press(dialog, QDialogButtonBox::Ok);
        QVERIFY(dialog->isVisible() && dialog->findChild<QLineEdit*>("goToKey")->property("wrong").toBool());
        QVERIFY(dialog->findChild<QLabel*>("goToWhy")->text().contains("key"));
        QVERIFY(open.bench.session() == before);
        type(dialog, "goToKey", "620");
        press(dialog, QDialogButtonBox::Ok);
        QVERIFY(open.bench.session().look.ranges.contains("attention_map"));
    }

    void headsThatDoNotBelongTogetherMoveNothing() {
        OpenWindow open;
        const Session before = open.bench.session();
        GoToDialog* dialog = goTo(open);
        type(dialog, "goToKvHead", "1");
        type(dialog, "goToQueryHead", "2");
        QTest::keyClick(dialog->findChild<QLineEdit*>("goToQueryHead"), Qt::Key_Return);
        QVERIFY(dialog->isVisible() && dialog->findChild<QLineEdit*>("goToKvHead")->property("wrong").toBool());
        QCOMPARE(dialog->findChild<QLabel*>("goToWhy")->text(), QString("Query head 2 reads KV head 0."));
        QVERIFY(open.bench.session() == before);
        type(dialog, "goToKvHead", "0");
        QTest::keyClick(dialog->findChild<QLineEdit*>("goToKvHead"), Qt::Key_Return);
        QCOMPARE(open.bench.session().kvHead.value, 0);
        QCOMPARE(open.bench.session().queryHead.value, 2);
    }

    void aPlaceThatIsNotThereMovesNothing() {
        OpenWindow open;
        const Session before = open.bench.session();
        GoToDialog* dialog = goTo(open);
        for (const auto& [field, text] : {std::pair{"goToKey", "1028"},
                                          {"goToKey", "1,2"},
                                          {"goToQueryHead", "8"},
                                          {"goToLayer", "six"},
                                          {"goToKvHead", "-1"}}) {
            type(dialog, "goToLayer", "2");
            type(dialog, field, text);
            press(dialog, QDialogButtonBox::Ok);
            QVERIFY(dialog->isVisible() && dialog->findChild<QLineEdit*>(field)->property("wrong").toBool());
            QVERIFY(dialog->findChild<QLabel*>("goToWhy")->text().contains("1,028 tokens"));
            QVERIFY(open.bench.session() == before);
            type(dialog, field, "0");
        }
        open.activate();
        QTest::keyClick(&open.window, Qt::Key_G, Qt::ControlModifier); // again: the same one
        QCOMPARE(open.window.findChildren<GoToDialog*>().size(), 1);
    }

    void aLessonStartsWithoutTheTour() {
        OpenWindow open;
        open.window.offerTour();
        open.window.openPath(
            QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons/keydiff.kvscope"));
        QTRY_VERIFY(!open.bench.session().lesson.empty());
        open.settle();
        QVERIFY(!open.window.findChild<Tour*>());
        open.window.offerTour(); // the next start is still a first one
        open.bench.openCapture(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");
        QTRY_VERIFY(open.window.findChild<Tour*>());
    }

    void theTourIsOfferedOnceAndHasFiveSteps() {
        OpenWindow open;
        QVERIFY(!open.window.findChild<Tour*>());
        open.window.offerTour();
        open.bench.openCapture(kSample);
        Tour* tour = nullptr;
        QTRY_VERIFY((tour = open.window.findChild<Tour*>()));
        QStringList titles;
        for (int step = 0; step < 5; ++step) {
            QCOMPARE(tour->step(), step);
            titles << tour->accessibleName();
            auto* ring = open.window.findChild<QWidget*>("tourRing");
            QVERIFY2(ring->isVisible(), qPrintable(tour->accessibleName())); // every part that it speaks of is there
            QVERIFY(open.window.rect().contains(tour->geometry()));
            const auto* name = open.window.findChild<QWidget*>("activePolicy");
            if (step == 0)
                QVERIFY(!tour->geometry().intersects(QRect(name->mapTo(&open.window, QPoint()), name->size())));
            if (step == 0) // whoever drags the slider watches the panes
                for (const PaneFrame* pane : open.window.canvases()->panes())
                    QVERIFY(!tour->geometry().intersects(QRect(pane->mapTo(&open.window, QPoint()), pane->size())));
            QTest::mouseClick(tour->findChild<QPushButton*>("tourNext"), Qt::LeftButton);
        }
        QCOMPARE(titles.removeDuplicates(), 0);
        QTRY_VERIFY(!open.window.findChild<Tour*>() && !open.window.findChild<QWidget*>("tourRing"));
        open.window.offerTour();
        QSignalSpy opened(&open.bench, &Workbench::captureChanged);
        open.bench.openCapture(kSample);
        open.settle();
        QCOMPARE(opened.count(), 1);
        QVERIFY(!open.window.findChild<Tour*>()); // once
        open.window.actions()->byName("tour")->trigger();
        QVERIFY(open.window.findChild<Tour*>());
    }

    void theWindowWorksUnderTheTour() {
        OpenWindow open;
        open.window.startTour();
        auto* tour = open.window.findChild<Tour*>();
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return); // the keyboard is enough
        QCOMPARE(tour->step(), 1);
        QTest::mouseClick(tour->findChild<QPushButton*>("tourBack"), Qt::LeftButton);
        const Budget before = open.bench.session().budget;
        ValueSlider* slider = open.window.budgetBar()->slider();
        QTest::mouseClick(slider, Qt::LeftButton, {},
                          QPoint(slider->width() / 4, slider->height() / 2)); // through the ring
        QVERIFY(!(open.bench.session().budget == before));
        QTest::mouseClick(tour->findChild<QPushButton*>("tourNext"), Qt::LeftButton);
        QTest::mouseClick(tour->findChild<QPushButton*>("tourBack"), Qt::LeftButton);
        QCOMPARE(tour->step(), 0);
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme"); // the chrome is built anew
        QTRY_VERIFY(open.window.findChild<QWidget*>("tourRing")->isVisible());
        open.window.resize(1280, 800); // the note follows the parts
        QTRY_VERIFY(open.window.rect().contains(tour->geometry()));
        QTest::mouseClick(tour->findChild<QPushButton*>("tourSkip"), Qt::LeftButton);
        QTRY_VERIFY(!open.window.findChild<Tour*>());
    }

    void aSlowOpeningIsSaidAndCanBeCancelled() {
        OpenWindow open;
        const auto before = open.bench.capture();
        std::atomic<bool> go = false;
        for (int worker = 0; worker < 2; ++worker) // a slow disk: nothing comes to the opening for a while
            open.workers.run([&go] { go.wait(false); });
        open.window.openPath(QString::fromStdString(kSample));
        open.clock.advance(std::chrono::milliseconds(499));
        QVERIFY(open.window.notices().messages().isEmpty()); // not at once
        open.clock.advance(std::chrono::milliseconds(1));
        QCOMPARE(open.window.notices().messages().size(), 1);
        QVERIFY(open.window.notices().messages()[0].contains("Opening") &&
                open.window.notices().messages()[0].contains("needle-1k.h5"));
        QTRY_VERIFY(open.noticeButton("Cancel"));
        QTest::mouseClick(open.noticeButton("Cancel"), Qt::LeftButton);
        QVERIFY(open.window.notices().messages().isEmpty());
        go = true;
        go.notify_all();
        open.settle();
        QVERIFY(open.bench.capture() == before);               // what was open stays
        open.window.openPath(QString::fromStdString(kSample)); // and a fast one says nothing
        open.settle();
        QVERIFY(open.bench.capture() != before);
        QVERIFY(open.window.notices().messages().isEmpty());
    }

    void aReportIsWrittenBesideTheWork() {
        OpenWindow open;
        QTemporaryDir folder;
        const QString path = folder.filePath("page.html");
        answerFileDialog(path);
        open.window.actions()->byName("report")->trigger();
        QTRY_VERIFY(open.window.notices().messages().join(' ').contains("Writing "));
        open.bench.change(
            [](Session& s) {
                setBudget(s, {Budget::Unit::Fraction, 0.1});
            },
            "Budget"); // the window goes on
        QTRY_VERIFY_WITH_TIMEOUT(open.window.notices().messages().join(' ').contains("Written: "), 60000);
        QFile page(path);
        QVERIFY(page.open(QIODevice::ReadOnly));
        const QByteArray text = page.readAll();
        QVERIFY(text.contains("<svg") && text.endsWith("</html>\n"));
        QVERIFY(text.contains("@0.25") && !text.contains("@0.1 ")); // as it was when it was asked for
    }
};

KVSCOPE_WINDOW_TEST(WindowGuidesTest)
#include "window_guides_test.moc"
