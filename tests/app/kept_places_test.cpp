// What the user has arranged stays: separators by hand, docks of a session, the focus; and what is shown is painted.
#include <QtTest>

#include "app/study/session_file.h"
#include "app/window/actions/window_actions.h"
#include "app/window/docks/dock_layout.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/drag_separator.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QScreen>
#include <QSettings>
#include <QTemporaryDir>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::kSample;
using kvscope::testing::OpenWindow;

namespace {

const QString kLesson = QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons/keydiff.kvscope");

PanelDock* dock(const OpenWindow& open, const char* id) { return open.window.docks()->dock(id); }

void setLayout(OpenWindow& open, WindowLayout layout) {
    open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
    open.arrange();
}

} // namespace

class KeptPlacesTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QApplication::setStyle(makeChromeStyle()); // as the program does
        QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    }
    void init() { QSettings().clear(); }

    // Another size has an arrangement of its own, in which other views may be in front.
    void aLessonsViewsAreSeenAtEveryScale() {
        OpenWindow open;
        open.window.openPath(QString(kLesson).replace("keydiff", "blocks"));
        const auto isSeen = [&] {
            return !dock(open, "block_timeline")->visibleRegion().isEmpty() &&
                   dock(open, "merge_tree")->visibleRegion().isEmpty();
        };
        QTRY_VERIFY(isSeen());
        for (const double scale : {1.25, 1.0}) {
            open.bench.change([&](Session& s) { s.look.scale = scale; }, "Scale");
            QTRY_COMPARE(appearance().scale, scale);
            open.arrange();
            QTRY_VERIFY(isSeen());
        }
    }

    // Each layout has other panes, which need another width: no layout may squeeze the docks of the one before.
    void layoutsLeaveASeparatorWhereItIs() {
        OpenWindow open;
        setLayout(open, WindowLayout::ExploreHead);
        const PanelDock* map = dock(open, "attention_map");
        kvscope::testing::dragSeparator(open, *map, {40, 80, 120});
        const auto widths = [&] {
            return QList<int>{dock(open, "capture")->width(), map->width(), dock(open, "parameters")->width()};
        };
        const QList<int> left = widths();
        for (const WindowLayout other : {WindowLayout::ComparePolicies, WindowLayout::WholeModel, WindowLayout::Teach,
                                         WindowLayout::ComparePolicies}) {
            setLayout(open, other);
            setLayout(open, WindowLayout::ExploreHead);
            QTRY_COMPARE(widths(), left);
        }
    }

    void aSessionHasItsDocks() {
        const QTemporaryDir folder;
        const QString path = folder.filePath("own.kvscope");
        {
            OpenWindow open;
            dock(open, "fidelity")->close();
            open.window.docks()->open(dock(open, "walk"));
            open.arrange();
            answerFileDialog(path);
            open.window.actions()->byName("saveAs")->trigger();
            QTRY_VERIFY(open.bench.history().isSaved());
            QVERIFY(open.bench.session().look.docks == DockPlaces()); // of the file, not of the window
        }
        QCOMPARE(readSession(path.toStdString()).look.docks.arrangement, std::string("compare-normal"));
        QSettings().clear();
        OpenWindow again;
        QVERIFY(dock(again, "walk")->isHidden() && dock(again, "fidelity")->isVisible());
        again.window.openPath(path);
        QTRY_VERIFY(dock(again, "walk")->isVisible());
        QVERIFY(dock(again, "fidelity")->isHidden());
        // What is arranged after the file was opened stays when a lesson is opened and left.
        dock(again, "walk")->close();
        again.window.openPath(kLesson);
        QTRY_VERIFY(!again.bench.session().lesson.empty());
        again.arrange();
        again.bench.leaveLesson();
        QTRY_VERIFY(again.bench.session().lesson.empty() &&
                    again.bench.session().layout == WindowLayout::ComparePolicies);
        again.arrange();
        QVERIFY(dock(again, "walk")->isHidden());
        again.window.resize(2300, 1000); // has places of its own
        again.arrange();
        QTRY_VERIFY(dock(again, "fidelity")->isVisible());
    }

    // Qt gives the focus of what is hidden to the next tab stop: a key then opened the menu of the engines.
    void theFocusIsNotLeftToTheNextButton() {
        OpenWindow open;
        setLayout(open, WindowLayout::ExploreHead);
        auto* canvas = dock(open, "attention_map")->findChild<CanvasWidget*>();
        QTest::mouseClick(canvas, Qt::LeftButton);
        QVERIFY(canvas->parentWidget()->isAncestorOf(open.window.focusWidget()));
        setLayout(open, WindowLayout::ComparePolicies); // has no map
        const QWidget* middle = open.window.canvases();
        const auto isAtPictures = [&] { // or nowhere, where keys reach the window
            const QWidget* focused = open.window.focusWidget();
            const PanelDock* place = open.window.docks()->dockOf(focused);
            return focused == &open.window || middle->isAncestorOf(focused) || (place && DockLayout::isView(place));
        };
        const auto where = [&] {
            const QWidget* focused = open.window.focusWidget();
            return focused ? focused->metaObject()->className() : "nowhere";
        };
        for (const WindowLayout layout : {WindowLayout::WholeModel, WindowLayout::ComparePolicies}) {
            QTRY_VERIFY2(isAtPictures(), where());
            setLayout(open, layout);
        }
        QTRY_VERIFY2(isAtPictures(), where());
    }

    // The window is not painted while its parts are exchanged; then it has to be, though nothing else asks for it.
    void aSessionOfAnotherThemeIsPainted() {
        const QTemporaryDir folder;
        const QString path = folder.filePath("dark.kvscope");
        Session session;
        session.capturePath = kSample;
        session.look.theme = ThemeChoice::Dark;
        writeSession(path.toStdString(), session);
        OpenWindow open;
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Light; }, "Theme");
        open.arrange();
        open.window.openPath(path);
        const auto shown = [&] { // on the screen: a picture of the window would be painted for itself
            return open.window.screen()->grabWindow(open.window.winId()).toImage().pixelColor(3, 3).lightness();
        };
        QTRY_VERIFY2(shown() < 60, qPrintable(QString::number(shown())));
    }
};

KVSCOPE_WINDOW_TEST(KeptPlacesTest)
#include "kept_places_test.moc"
