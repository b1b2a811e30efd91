// What a user does with mouse, keyboard and files, sent as real events to the whole window.
#include "app/window/actions/key_sheet.h"
#include "app/window/actions/window_actions.h"
#include "app/window/canvas/range_dialog.h"
#include "app/window/panels/metrics_table.h"
#include "app/window/style/system_theme.h"
#include "app/window/widgets/choice_box.h"
#include "app/workbench/second_workbench.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/drop_url.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTimer>

#include <array>
#include <cstdio>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::dropUrl;
using kvscope::testing::kSample;
using kvscope::testing::OpenWindow;

namespace {

QPoint centreOf(const Box& box) {
    return {static_cast<int>((box.x + box.width / 2) * appearance().scale),
            static_cast<int>((box.y + box.height / 2) * appearance().scale)};
}

} // namespace

class WindowEventsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString copyOfSample(const QString& name) {
        const QString path = m_folder.filePath(name);
        QFile::remove(path);
        if (!QFile::copy(QString::fromStdString(kSample), path)) qFatal("the sample cannot be copied");
        QFile(path).setPermissions(QFile::ReadOwner | QFile::WriteOwner);
        return path;
    }

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() { QSettings().clear(); }

    void aDroppedFileOpens() {
        OpenWindow open;
        const QString path = copyOfSample("dropped.h5");
        dropUrl(open.window, QUrl::fromLocalFile(path));
        QTRY_VERIFY(open.bench.capture()->info().fileName == "dropped.h5");
        open.waitForResults();
        QVERIFY(open.window.windowTitle().contains("dropped.h5"));
    }

    void aFileDroppedWithCtrlIsComparedWith() {
        OpenWindow open;
        const QString path = copyOfSample("second.h5");
        dropUrl(open.window, QUrl::fromLocalFile(path), Qt::ControlModifier);
        QTRY_VERIFY(open.bench.second().isOpen());
        QCOMPARE(open.bench.second().capture()->info().fileName, std::string("second.h5"));
        QCOMPARE(open.bench.capture()->info().fileName, std::string("needle-1k.h5"));
    }

    void everyReplacementOfAFileIsOffered() {
        OpenWindow open;
        const QString path = copyOfSample("replaced.h5");
        open.window.openPath(path);
        QTRY_VERIFY(open.bench.capture()->info().fileName == "replaced.h5");
        open.waitForResults();
        for (int time = 0; time < 3; ++time) { // nobody reloads: the program reads the first of them all the while
            copyOfSample("newer.h5");
            QCOMPARE(::rename(qPrintable(m_folder.filePath("newer.h5")), qPrintable(path)), 0);
            QTRY_COMPARE_WITH_TIMEOUT(open.window.notices().messages().filter("has changed on disk").size(), 1, 5000);
            open.settle(); // what the system still has to tell
            open.window.notices().dismiss("changed");
        }
    }

    void aDroppedAddressIsRefusedInAStrip() {
        OpenWindow open;
        dropUrl(open.window, QUrl("https://example.org/capture.h5"));
        QCOMPARE(open.window.notices().messages().size(), 1);
        QVERIFY(open.window.notices().messages()[0].contains("example.org"));
    }

    void aChangedFileIsOfferedAndReloads() {
        OpenWindow open;
        const QString path = copyOfSample("changing.h5");
        open.window.openPath(path);
        QTRY_VERIFY(open.bench.capture()->info().fileName == "changing.h5");
        open.waitForResults();
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Tokens, 123}); }, "Budget");
        const auto before = open.bench.capture();
        // Another program writes the file anew, as atomic writers do.
        copyOfSample("newer.h5");
        QFile::remove(path);
        QVERIFY(QFile::rename(m_folder.filePath("newer.h5"), path));
        QTRY_COMPARE_WITH_TIMEOUT(open.window.notices().messages().size(), 1, 5000);
        QVERIFY(open.window.notices().messages()[0].contains("has changed on disk"));
        QVERIFY(open.bench.capture() == before); // never silently
        QTRY_VERIFY(open.noticeButton("Reload"));
        QTest::mouseClick(open.noticeButton("Reload"), Qt::LeftButton);
        QTRY_VERIFY(open.bench.capture() != before);
        open.waitForResults();
        QCOMPARE(open.bench.session().budget.text(), std::string("123t")); // what one had set stays
        QVERIFY(open.window.notices().messages().isEmpty());
    }

    void anErrorGoesWithTheNextTry() {
        OpenWindow open;
        const QString path = copyOfSample("gone.h5");
        open.window.openPath(path);
        QTRY_VERIFY(open.bench.capture()->info().fileName == "gone.h5");
        open.waitForResults();
        QFile::remove(path);
        open.bench.reload();
        QTRY_COMPARE(open.window.notices().messages().filter("no such file").size(), 1);
        copyOfSample("gone.h5");
        open.bench.reload();
        open.settle();
        QCOMPARE(open.window.notices().messages().filter("no such file").size(), 0);
    }

    void theCutIsDraggedByMouse() {
        OpenWindow open;
        ViewCanvas* view = open.strip();
        CanvasWidget* canvas = view->canvas();
        const TokenIndex before = open.bench.cut()->token, wanted = before - 3;
        // The strip scrolls to what is selected elsewhere.
        open.bench.change([&](Session& s) { s.selected = {before - 1}; }, "Selection");
        QTRY_VERIFY(boxOfPick(canvas->scene(), {PickId::Kind::Handle, before}));
        const auto handle = boxOfPick(canvas->scene(), {PickId::Kind::Handle, before});
        const auto target = boxOfPick(canvas->scene(), {PickId::Kind::Token, wanted});
        QVERIFY(target);
        const QPoint from = centreOf(*handle), to = centreOf(*target);
        QTest::mousePress(canvas, Qt::LeftButton, {}, from);
        for (int step = 1; step <= 6; ++step) QTest::mouseMove(canvas, from + (to - from) * step / 6);
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, to);
        QCOMPARE(open.bench.cut()->token, wanted);
        open.waitForResults();
        QVERIFY(open.bench.viewInput().panes[0].result->visible == wanted);
        open.bench.undo(); // one drag is one step
        QCOMPARE(open.bench.cut()->token, before);
    }

    void f12WritesTheWholeWindow() {
        OpenWindow open;
        const QString path = m_folder.filePath("screen.png");
        answerFileDialog(path);
        QTest::keyClick(&open.window, Qt::Key_F12);
        QTRY_VERIFY(QFileInfo::exists(path));
        const QImage picture(path);
        QCOMPARE(picture.size(), open.window.size() * open.window.devicePixelRatioF());
        // The canvases too, not black holes: the colour of kept tokens is in it.
        const Colour kept = chrome().kept;
        bool found = false;
        for (int y = 0; y < picture.height() && !found; ++y)
            for (int x = 0; x < picture.width() && !found; ++x)
                found = picture.pixelColor(x, y) == QColor(kept.r, kept.g, kept.b);
        QVERIFY(found);
    }

    void theExportDialogWritesAFigure() {
        OpenWindow open;
        const QString path = m_folder.filePath("figure.svg");
        QTimer::singleShot(0, qApp, [&] {
            auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            answerFileDialog(path);
            QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save), Qt::LeftButton);
        });
        QTest::keyClick(&open.window, Qt::Key_E, Qt::ControlModifier);
        QTRY_VERIFY(QFileInfo::exists(path));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll();
        QVERIFY(text.contains("<text") && text.contains("kvscope plot"));
        QVERIFY(open.window.notices().messages().filter("figure.svg").size() == 1);
    }

    void f1AndTheQuestionMarkShowTheKeys() {
        OpenWindow open;
        for (const Qt::Key key : {Qt::Key_F1, Qt::Key_Question}) {
            open.activate();
            QTest::keyClick(&open.window, key);
            QTRY_VERIFY(open.window.findChild<KeySheet*>());
            auto* sheet = open.window.findChild<KeySheet*>();
            QCOMPARE(open.window.findChildren<KeySheet*>().size(), 1);
            sheet->close();
            QTRY_VERIFY(!open.window.findChild<KeySheet*>());
        }
    }

    void singleKeysAreTextWhileAFieldHasTheFocus() {
        OpenWindow open;
        auto* find = open.window.findChild<QLineEdit*>("find");
        find->setFocus();
        const auto head = open.bench.session().kvHead;
        QTest::keyClicks(find, "f]n?");
        QCOMPARE(find->text(), QString("f]n?"));
        QVERIFY(open.bench.session().kvHead == head);
        QVERIFY(!open.window.findChild<KeySheet*>());
    }

    void fFramesTheSelection() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        canvas->setFocus();
        const Viewport::Range before = ShownPlot::of(canvas->scene()).range;
        QTest::keyClick(canvas, Qt::Key_F);
        const Viewport::Range after = ShownPlot::of(canvas->scene()).range;
        QVERIFY(after.xMax - after.xMin < before.xMax - before.xMin);
        for (const TokenIndex token : open.bench.session().selected) {
            const auto at = positionOfToken(canvas->scene(), token);
            QVERIFY(at && canvas->scene().plot.contains(*at));
        }
        QTest::keyClick(canvas, Qt::Key_Home);
        QCOMPARE(ShownPlot::of(canvas->scene()).range.xMax, before.xMax);
    }

    void theSelectionHasAHistory() {
        OpenWindow open;
        const auto needle = open.bench.session().selected;
        const double budget = open.bench.session().budget.value;
        open.bench.change(
            [](Session& s) {
                s.selected = {1, 2, 3};
                s.selectionName.clear();
            },
            "Selection");
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        open.bench.change([](Session& s) { s.selected = {9}; }, "Selection");
        QTest::keyClick(&open.window, Qt::Key_BracketLeft, Qt::ControlModifier);
        QCOMPARE(open.bench.session().selected, (std::vector<TokenIndex>{1, 2, 3}));
        QTest::keyClick(&open.window, Qt::Key_BracketLeft, Qt::ControlModifier);
        QCOMPARE(open.bench.session().selected, needle);
        QCOMPARE(open.bench.session().selectionName, std::string("needle"));
        QCOMPARE(open.bench.session().budget.value, 0.5); // unlike undo, it leaves parameters alone
        QVERIFY(budget != 0.5);
        QTest::keyClick(&open.window, Qt::Key_BracketRight, Qt::ControlModifier);
        QCOMPARE(open.bench.session().selected, (std::vector<TokenIndex>{1, 2, 3}));
    }

    void theRangeDialogSetsWhatIsShown() {
        OpenWindow open;
        open.pane(0)->canvas()->showRange();
        auto* dialog = open.window.findChild<RangeDialog*>();
        QVERIFY(dialog && dialog->isVisible());
        QPushButton* apply = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply);
        const auto type = [&](const char* field, const char* number) {
            auto* edit = dialog->findChild<QLineEdit*>(field);
            edit->selectAll();
            QTest::keyClicks(edit, number);
        };
        const auto range = [&] {
            const Viewport::Range& r = open.bench.session().look.ranges.at("key_projection");
            return std::array{r.xMin, r.xMax, r.yMin, r.yMax};
        };
        type("xFrom", "-1.5");
        type("xTo", "2");
        type("yFrom", "-3");
        type("yTo", "4.25");
        QTest::mouseClick(apply, Qt::LeftButton);
        QCOMPARE(range(), (std::array{-1.5, 2.0, -3.0, 4.25}));
        type("xTo", "-2"); // ends before it begins
        QTest::mouseClick(apply, Qt::LeftButton);
        QCOMPARE(range(), (std::array{-1.5, 2.0, -3.0, 4.25}));
    }

    void theSystemsThemeIsFollowed() {
        OpenWindow open;
        QVERIFY(appearance().theme == ThemeId::Light);
        const auto say = [](unsigned scheme) {
            systemTheme().settingChanged("org.freedesktop.appearance", "color-scheme", QDBusVariant(scheme));
        };
        say(1);
        QVERIFY(appearance().theme == ThemeId::Dark);
        say(2);
        QVERIFY(appearance().theme == ThemeId::Light);
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Light; }, "Theme");
        say(1);
        QVERIFY(appearance().theme == ThemeId::Light); // chosen by hand: the system does not matter
        say(0);
        // Without the portal the desktop's palette decides, and reading it leaves ours in place.
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
        QEvent change(QEvent::ThemeChange);
        QCoreApplication::sendEvent(&open.window, &change);
        open.arrange();
        QCOMPARE(QApplication::palette().color(QPalette::Window), qColor(chrome().panel));
        QVERIFY(!systemTheme().isDark());
    }

    void theSystemsMotionIsFollowed_data() {
        QTest::addColumn<QString>("group");
        QTest::addColumn<QString>("key");
        QTest::addColumn<QVariant>("still");
        QTest::addColumn<QVariant>("moving");
        QTest::newRow("portal") << "org.freedesktop.appearance"
                                << "reduced-motion" << QVariant(1U) << QVariant(0U);
        QTest::newRow("GNOME") << "org.gnome.desktop.interface"
                               << "enable-animations" << QVariant(false) << QVariant(true);
        QTest::newRow("KDE") << "org.kde.kdeglobals.KDE"
                             << "AnimationDurationFactor" << QVariant("0") << QVariant("0.5");
    }
    void theSystemsMotionIsFollowed() {
        QFETCH(QString, group);
        QFETCH(QString, key);
        QFETCH(QVariant, still);
        QFETCH(QVariant, moving);
        OpenWindow open;
        QAction* action = nullptr;
        for (QAction* candidate : open.window.findChildren<QAction*>())
            if (candidate->text().remove('&').startsWith("Reduced motion")) action = candidate;
        QVERIFY(action && !action->isChecked() && open.window.isAnimated());
        systemTheme().settingChanged(group, key, QDBusVariant(still));
        QVERIFY(!open.window.isAnimated());
        QVERIFY(action->isChecked() && !action->isEnabled());
        QVERIFY(!open.bench.session().look.reducedMotion); // it is not the session that says it
        systemTheme().settingChanged(group, key,
                                     QDBusVariant(QVariant::fromValue(QDBusVariant(moving)))); // as Read wraps it
        QVERIFY(open.window.isAnimated() && !action->isChecked() && action->isEnabled());
        action->trigger(); // by hand, and for the next start
        QVERIFY(!open.window.isAnimated());
        OpenWindow next;
        QVERIFY(next.bench.session().look.reducedMotion && !next.window.isAnimated());
    }

    void longChoicesEndInAnEllipsis() {
        ChoiceBox box;
        box.addItem("After the cache is full, one token at a time");
        box.resize(110, 24);
        QVERIFY2(box.shownText().endsWith(QChar(0x2026)), qPrintable(box.shownText()));
        box.resize(600, 24);
        QCOMPARE(box.shownText(), box.currentText());
    }

    void theMetricsTableHasARowPerPane() {
        OpenWindow open;
        auto* table = open.window.findChild<MetricsTable*>()->findChild<QTableView*>();
        QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(table->model()->rowCount(), 3);
        for (int row = 0; row < 3; ++row) {
            const auto cell = [&](int column) { return table->model()->index(row, column).data().toString(); };
            const QString header = open.headerText(static_cast<std::size_t>(row));
            QVERIFY2(header.contains("error " + cell(1) + " mass " + cell(2)), qPrintable(header));
            QCOMPARE(cell(3), open.kept(static_cast<std::size_t>(row)));
        }
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {},
                          table->visualRect(table->model()->index(2, 1)).center());
        QCOMPARE(open.bench.session().activePane, 2);
        open.bench.change([](Session& s) { addPane(s, {PolicySpec::parse("tova"), {}, {}}); }, "Add pane");
        QCOMPARE(table->model()->rowCount(), 4);
        open.waitForResults();
    }

    void ctrlCCopiesPictureAndSentence() {
        OpenWindow open;
        open.pane(0)->canvas()->canvas()->setFocus();
        QTest::keyClick(open.pane(0)->canvas()->canvas(), Qt::Key_C, Qt::ControlModifier);
        const QMimeData* copied = QGuiApplication::clipboard()->mimeData();
        QVERIFY(copied->hasImage());
        QVERIFY(copied->text().contains("needle"));
        QTest::keyClick(open.pane(0)->canvas()->canvas(), Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(QGuiApplication::clipboard()->text().count('\n') > 900);
    }
};

KVSCOPE_WINDOW_TEST(WindowEventsTest)
#include "window_events_test.moc"
