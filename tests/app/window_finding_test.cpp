// Ways to find something: text while it is typed, with the number of its places; keys on one sheet that leads to help
// and manual; entries of menus by their first letters.
#include "app/window/actions/key_sheet.h"
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/manual_window.h"
#include "app/window/panels/status_line.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>

#include <map>
#include <set>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class WindowFindingTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QApplication::setStyle(makeChromeStyle()); // as the program does
    }
    void init() { QSettings().clear(); }

    void textIsFoundWhileItIsTyped() {
        OpenWindow open;
        const QString text = QString::fromStdString(open.bench.capture()->tokens().bytes).toLower();
        const auto count = text.count("garden");
        QVERIFY(count >= 2);
        const auto selected = [&] { return open.bench.session().selected; };
        open.bench.change([](Session& s) { select(s, {}); }, "Clear"); // the needle
        QTest::keyClick(&open.window, Qt::Key_F, Qt::ControlModifier);
        auto* find = open.window.findChild<QLineEdit*>("find");
        QVERIFY(find->hasFocus());
        const auto place = [&] { return find->findChild<QLabel*>("findPlace")->text(); };
        QTest::keyClicks(find, "gar");
        QVERIFY(!selected().empty());
        QTest::keyClicks(find, "den");
        QCOMPARE(place(), QString("1 of %1").arg(count));
        const auto first = selected();
        QCOMPARE(open.bench.session().selectionName, std::string("garden"));
        QTest::keyClick(find, Qt::Key_Return);
        QCOMPARE(place(), QString("2 of %1").arg(count));
        QVERIFY(selected().front() > first.front());
        QTest::keyClick(find, Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(place(), QString("1 of %1").arg(count));
        QCOMPARE(selected(), first);
        QTest::keyClick(find, Qt::Key_Return, Qt::ShiftModifier); // before the first comes the last
        QCOMPARE(place(), QString("%1 of %1").arg(count));
        QTest::keyClick(&open.window, Qt::Key_F3);
        QCOMPARE(selected(), first);
        QTest::keyClicks(find, "zzz");
        QCOMPARE(place(), QString("none"));
        QVERIFY(find->property("wrong").toBool());
        QCOMPARE(selected(), first);
        find->setText("garden");
        QTest::keyClick(find, Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(selected().size() > first.size());
        const QString said = open.window.notices().messages().join(' ');
        QVERIFY2(said.contains(QString("stands at %1 places").arg(count)), qPrintable(said));
    }

    void anotherCaptureHasOtherPlaces() {
        OpenWindow open;
        auto* find = open.window.findChild<QLineEdit*>("find");
        find->setFocus();
        QTest::keyClicks(find, "garden");
        find->clearFocus();
        open.bench.openCapture(kvscope::testing::sourceDir() + "/sample_data/fewshot-1k.h5");
        QVERIFY(open.until([&] { return open.bench.capture()->info().fileName == "fewshot-1k.h5"; }));
        QVERIFY(open.bench.capture()->tokens().bytes.find("garden") == std::string::npos);
        QCOMPARE(find->findChild<QLabel*>("findPlace")->text(), QString("none"));
    }

    /// A sentence that was searched for names the selection: it takes no other number's name away.
    void aLongNameLeavesTheOthersTheirRoom() {
        OpenWindow open;
        open.bench.change(
            [](Session& s) {
                select(s, {100, 101, 102},
                       "when they saw him afar off, even before he came near unto them, they conspired");
            },
            "Find");
        open.settle();
        for (std::size_t pane = 0; pane < 2; ++pane) {
            const PaneHeader* header = open.pane(pane)->header();
            const auto isShown = [&](const char* id) { return header->findChild<QLabel*>(id)->isVisible(); };
            QVERIFY2(isShown("paneError") && isShown("paneKept") && isShown("paneHits"),
                     qPrintable(QString::number(header->width())));
            QStringList names;
            for (const QLabel* label : header->findChildren<QLabel*>())
                if (label->isVisible() && label->property("role") == "quiet") names += label->text();
            QVERIFY2(names.contains("error") && names.contains("kept"), qPrintable(names.join("; ")));
        }
        QString said;
        for (const QLabel* label : open.window.statusLine()->findChildren<QLabel*>())
            if (label->isVisible()) said += label->text() + "; ";
        QVERIFY2(said.contains("kept by A"), qPrintable(said));
        QVERIFY2(said.contains("KeyDiff"), qPrintable(said));
        QVERIFY2(said.contains("when they saw"), qPrintable(said));
    }

    void aPositionIsNoName() {
        OpenWindow open;
        auto* find = open.window.findChild<QLineEdit*>("find");
        find->setFocus();
        QTest::keyClicks(find, "612");
        QCOMPARE(open.bench.session().selected, std::vector<TokenIndex>{612});
        QCOMPARE(open.bench.session().selectionName, std::string());
    }

    void whatWasTypedIsOneStepOfUndo() {
        OpenWindow open;
        auto* find = open.window.findChild<QLineEdit*>("find");
        const auto before = open.bench.session().selected;
        find->setFocus();
        QTest::keyClicks(find, "garden");
        QVERIFY(open.bench.session().selected != before);
        open.bench.undo();
        QCOMPARE(open.bench.session().selected, before);
    }

    void theKeySheetHasTwoColumnsAndLeadsToTheManual() {
        OpenWindow open;
        QTest::keyClick(&open.window, Qt::Key_F1);
        auto* sheet = open.window.findChild<KeySheet*>();
        QVERIFY(sheet && sheet->isVisible());
        open.arrange();
        std::set<int> columns;
        QStringList titles;
        for (const QLabel* label : sheet->findChildren<QLabel*>())
            if (label->property("role") == "section") {
                columns.insert(label->mapTo(sheet, QPoint()).x());
                titles += label->text();
            }
        QCOMPARE(columns.size(), std::size_t(2));
        for (const char* title : {"File", "Edit", "View", "Go", "Steps", "Help", "Mouse"})
            QVERIFY2(titles.contains(title), qPrintable(titles.join(' ')));
        for (const QScrollBar* bar : sheet->findChild<QScrollArea*>()->findChildren<QScrollBar*>())
            QVERIFY2(!bar->isVisible(), qPrintable(QString("%1 x %2").arg(sheet->width()).arg(sheet->height())));
        QTest::mouseClick(sheet->findChild<QPushButton*>("manual"), Qt::LeftButton);
        open.arrange();
        QVERIFY(open.window.findChild<ManualWindow*>() && open.window.findChild<ManualWindow*>()->isVisible());
        QVERIFY(!open.window.findChild<KeySheet*>());
    }

    void lettersGoToTheEntryThatBeginsWithThem() {
        OpenWindow open;
        QMenu* policies = nullptr;
        for (QMenu* menu : open.window.findChild<QMenuBar*>()->findChildren<QMenu*>())
            if (menu->title().remove('&') == "Add a pane") policies = menu;
        QVERIFY(policies);
        policies->popup(open.window.mapToGlobal(QPoint(200, 60)));
        const auto active = [&] { return policies->activeAction() ? policies->activeAction()->text() : QString(); };
        const auto typed = [&](Qt::Key key) {
            QWidget* popup = QApplication::activePopupWidget();
            QTest::keyClick(popup ? popup : policies, key);
        };
        typed(Qt::Key_H);
        QCOMPARE(active(), QString("H2O")); // it was the first entry with an h anywhere
        // Its variants are open now, as below the pointer; one of them, "KeyDiff's runs", begins with the same letters.
        QAction* h2o = policies->activeAction();
        QTRY_VERIFY(h2o->menu()->isVisible());
        for (const Qt::Key key : {Qt::Key_K, Qt::Key_E, Qt::Key_Y}) {
            typed(key);
            QCOMPARE(active(), QString("KeyDiff"));
        }
        typed(Qt::Key_H);
        for (const char* next : {"KeyDiff", "Key norm", "KeyDiff"}) { // the letter again: the next, round to the first
            typed(Qt::Key_K);
            QCOMPARE(active(), QString(next));
        }
        // With an entry of its own a submenu takes the letters.
        policies->setActiveAction(h2o);
        QTRY_VERIFY(h2o->menu()->isVisible());
        h2o->menu()->setActiveAction(h2o->menu()->actions().front());
        typed(Qt::Key_K);
        QCOMPARE(active(), QString("H2O"));
        QCOMPARE(h2o->menu()->activeAction()->text(), QString("KeyDiff's runs"));
        policies->hide();
    }

    void noMenuHasALetterTwice() {
        OpenWindow open;
        QList<QWidget*> menus = {open.window.findChild<QMenuBar*>()};
        for (QMenu* menu : menus[0]->findChildren<QMenu*>()) menus += menu;
        QVERIFY(menus.size() > 10);
        for (const QWidget* menu : menus) {
            std::map<QString, QString> taken;
            for (const QAction* action : menu->actions()) {
                const QString letter = QKeySequence::mnemonic(action->text()).toString();
                if (letter.isEmpty()) continue;
                const auto [other, isNew] = taken.emplace(letter, action->text());
                QVERIFY2(isNew, qPrintable(other->second + " and " + action->text()));
            }
        }
    }

    void aLetterGoesToAChoiceOfADropDown() {
        OpenWindow open;
        auto* measures = open.window.findChild<QComboBox*>("headMeasure");
        QVERIFY(measures);
        measures->showPopup();
        QTRY_VERIFY(measures->view()->isVisible());
        QTest::keyClick(measures->view(), Qt::Key_L);
        const QString now = measures->view()->currentIndex().data().toString();
        QVERIFY2(now.startsWith("L") && now != measures->currentText(), qPrintable(now));
        measures->hidePopup();
    }
};

KVSCOPE_WINDOW_TEST(WindowFindingTest)
#include "window_finding_test.moc"
