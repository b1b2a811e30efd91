// Presenter mode: readable from the last row, led by a clicker, and everything as before when it ends.
#include "app/window/actions/tour.h"
#include "app/window/actions/window_actions.h"
#include "app/window/presenter.h"
#include "tests/app/classroom.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QMenuBar>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>

using namespace kvscope;
using kvscope::testing::Classroom;

namespace {

constexpr int kBlocks = 7;   // the number of the lesson about blocks
constexpr int kTogether = 5; // lessons that one window is led through

struct Lecture : Classroom {
    using Classroom::Classroom;

    const Presenter* presenter() const { return window.presenter(); }
    /// As from the menu: a narrow window folds the list.
    void openLesson(int number) {
        window.actions()->byName("teach")->trigger();
        window.openPath(QString::fromStdString(window.lessons().at(static_cast<std::size_t>(number - 1)).path));
        QTRY_VERIFY(lessonOf(bench.session()) && lessonOf(bench.session())->number == number);
        QTRY_VERIFY_WITH_TIMEOUT(settled(), 60'000);
        arrange();
    }
    void press(Qt::Key key) { QTest::keyClick(&window, key); }
    void start() {
        press(Qt::Key_P);
        QVERIFY(presenter() && presenter()->isVisible());
        arrange();
    }
    int part() const { return presenter()->lesson()->part(); }
    std::vector<ViewCanvas*> pictures() const {
        std::vector<ViewCanvas*> shown;
        for (ViewCanvas* canvas : presenter()->findChildren<ViewCanvas*>())
            if (canvas->isVisible()) shown.push_back(canvas);
        return shown;
    }
    /// Letters smaller than 2.5 % of the height.
    QStringList smallTexts() const {
        const double least = 0.025 * window.height() - 0.5; // whole pixels
        QStringList small;
        for (const QWidget* widget : presenter()->findChildren<QWidget*>())
            if (widget->isVisible() && !widget->inherits("CanvasWidget") && widget->font().pixelSize() < least &&
                (widget->inherits("QLabel") || widget->inherits("QAbstractButton")))
                small += widget->objectName() + ": " + QString::number(widget->font().pixelSize());
        for (ViewCanvas* canvas : pictures())
            for (const Drawable& item : canvas->canvas()->scene().items)
                if (const auto* text = std::get_if<TextItem>(&item);
                    text && text->style.size * appearance().scale < least)
                    small += QString::fromStdString(text->text) + ": " + QString::number(text->style.size);
        return small;
    }
    QStringList shownTexts() const {
        QStringList texts;
        for (const QLabel* label : presenter()->findChildren<QLabel*>())
            if (label->isVisible()) texts += label->text();
        return texts;
    }
    QByteArray places() const {
        QByteArray all;
        for (const PanelDock* dock : window.docks()->all())
            if (!dock->visibleRegion().isEmpty()) { // behind a tab it has no place of its own
                const QRect at = dock->geometry();
                all += dock->id().toUtf8() +
                       QString(" %1 %2 %3 %4\n").arg(at.x()).arg(at.y()).arg(at.width()).arg(at.height()).toUtf8();
            }
        return all;
    }
};

} // namespace

class PresenterTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    void oneKeyTurnsItOnAndOff() {
        Lecture open({1280, 720});
        open.openLesson(kBlocks);
        open.arrange();
        const QByteArray before = open.places();
        const double scale = appearance().scale;
        const Session session = open.bench.session();
        new Tour(open.window, Tour::firstRun());
        open.start();
        QVERIFY(!open.window.findChild<Tour*>());
        // The presenter is what one sees and clicks on, wherever.
        for (int x = 4; x < open.window.width(); x += 97)
            for (int y = 4; y < open.window.height(); y += 61) {
                const QWidget* at = open.window.childAt(x, y);
                QVERIFY2(at && (at == open.presenter() || open.presenter()->isAncestorOf(at)),
                         qPrintable(QString("%1, %2").arg(x).arg(y)));
            }
        QVERIFY(!open.window.menuWidget()->isEnabled());
        for (const ViewDock* dock : open.window.canvases()->docks()) QVERIFY(!dock->canvas()->isVisible());
        for (int i = 0; i < 12; ++i) { // no key goes to what is covered
            QTest::keyClick(open.window.focusWidget(), Qt::Key_Tab);
            const QWidget* focus = open.window.focusWidget();
            QVERIFY(focus == open.presenter() || open.presenter()->isAncestorOf(focus));
        }
        open.press(Qt::Key_P);
        QVERIFY(!open.presenter());
        open.arrange();
        QCOMPARE(appearance().scale, scale);
        QTRY_COMPARE(open.places(), before);
        QVERIFY(open.window.menuWidget()->isEnabled());
        QVERIFY(open.bench.session() == session);
        QTest::keyClick(&open.window, Qt::Key_PageDown); // the panel is in charge again
        QTRY_COMPARE(open.find<QLabel>("lessonPlace")->text(), QString("LOOK AT: STOP 1 OF 5"));
    }

    void aClickerLeadsThroughTheLesson() {
        Lecture open({1280, 720});
        open.openLesson(kBlocks);
        open.start();
        QCOMPARE(open.part(), 0);
        QVERIFY(open.shownTexts().join(' ').contains("A long prompt does not fit"));
        QVERIFY(!open.shownTexts().join(' ').contains("PREDICT"));
        open.press(Qt::Key_PageDown);
        QCOMPARE(open.cursor(), std::optional<TokenIndex>(256));
        QVERIFY(open.shownTexts().join(' ').contains("Only seven leave"));
        QVERIFY(!open.shownTexts().join(' ').contains("384 tokens"));
        QTRY_COMPARE(open.pictures().size(), std::size_t{1});
        QTRY_VERIFY_WITH_TIMEOUT(open.shownTexts().join(' ').contains("7 leave"), 60'000); // the caption of the step
        for (int stop = 2; stop <= 5; ++stop) open.press(Qt::Key_PageDown);
        open.press(Qt::Key_PageDown);
        QVERIFY(open.shownTexts().join(' ').contains("Which share is it when every token"));
        QTRY_VERIFY_WITH_TIMEOUT(open.settled(), 60'000);
        QVERIFY(!open.shownTexts().join(' ').contains("459 of 746"));
        QVERIFY(!open.shownTexts().join(' ').contains("came in with this block")); // nor does the caption tell it
        open.press(Qt::Key_PageDown);                                              // the answer, though nobody chose
        QTRY_VERIFY_WITH_TIMEOUT(open.shownTexts().join(' ').contains("Computed: 61.5 %"), 60'000);
        QTRY_VERIFY(open.shownTexts().join(' ').contains("came in with this block"));
        QTRY_VERIFY_WITH_TIMEOUT(open.shownTexts().join(' ').contains("459 of 746"), 60'000);
        open.press(Qt::Key_PageUp);
        QVERIFY(!open.shownTexts().join(' ').contains("61.5"));
        open.press(Qt::Key_PageDown);
        open.press(Qt::Key_PageDown); // the next lesson
        QTRY_VERIFY(lessonOf(open.bench.session())->number == kBlocks + 1);
        QCOMPARE(open.part(), 0);
        QVERIFY(open.presenter()->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(open.settled(), 60'000); // else Esc cancels what is being computed
        open.press(Qt::Key_Escape);
        QVERIFY(!open.presenter());
        QTRY_VERIFY(!open.dock("leverage")->visibleRegion().isEmpty());
    }

    // The question is asked without the pictures that answer it; before and after it they are there.
    void picturesAreHiddenWhileTheQuestionIsAsked() {
        Lecture open({1280, 720});
        open.openLesson(14);
        open.start();
        const auto isHidden = [&] {
            const Scene& scene = open.pictures().back()->canvas()->scene();
            return scene_checks::hasTextFrom(scene, "Predict first") && scene.items.size() < 4;
        };
        const auto isDrawn = [&] {
            return open.pictures().size() == 2 && open.pictures().back()->canvas()->scene().items.size() > 10;
        };
        QTRY_VERIFY_WITH_TIMEOUT(isDrawn(), 60'000);
        for (int stop = 1; stop <= 2; ++stop) open.press(Qt::Key_PageDown);
        QTRY_VERIFY_WITH_TIMEOUT(open.settled(), 60'000);
        open.press(Qt::Key_PageDown);
        QTRY_VERIFY(open.pictures().size() == 2 && isHidden());
        open.press(Qt::Key_PageDown);
        QTRY_VERIFY_WITH_TIMEOUT(isDrawn() && !isHidden(), 60'000);
        open.press(Qt::Key_PageUp);
        QTRY_VERIFY(isHidden());
        open.press(Qt::Key_P); // back in the window, where the reader plays with them
        QTRY_VERIFY(!open.dock("error_difference")->visibleRegion().isEmpty());
        auto* canvas = open.dock("error_difference")->findChild<CanvasWidget*>();
        QTRY_VERIFY(canvas->scene().items.size() > 10);
    }

    void itBeginsWithTheViewsOfTheStop() {
        Lecture open({1280, 720});
        open.openLesson(5);           // whose first stops are about the profile alone
        open.press(Qt::Key_PageDown); // to the second stop: the lesson begins at the first
        open.start();
        QCOMPARE(open.part(), 2);
        QTRY_COMPARE(open.pictures().size(), std::size_t{1});
    }

    void spacePlaysTheSteps() {
        Lecture open({1440, 900});
        open.openLesson(kBlocks);
        open.bench.change([](Session& s) { s.look.reducedMotion = true; }, "Reduced motion");
        open.start();
        QTRY_COMPARE_WITH_TIMEOUT(open.steps().steps(), 7, 60'000);
        open.press(Qt::Key_Right);
        QCOMPARE(open.steps().step(), 1);
        open.press(Qt::Key_Space);
        QVERIFY(open.steps().isPlaying());
        open.press(Qt::Key_Space);
    }

    void everyPartOfEveryLessonIsReadFromTheBack_data() {
        QTest::addColumn<int>("from");
        QTest::addColumn<QSize>("size");
        for (int from = 1; from <= kvscope::testing::kLessons; from += kTogether)
            for (const QSize size : {QSize(1280, 720), QSize(1440, 900)})
                QTest::addRow("from %d at %dx%d", from, size.width(), size.height()) << from << size;
    }
    // A clicker leads through the course, a few lessons a window. Nothing is painted: letters, heights and scenes are
    // asked for.
    void everyPartOfEveryLessonIsReadFromTheBack() {
        QFETCH(int, from);
        QFETCH(QSize, size);
        Lecture open(size);
        open.openLesson(from);
        open.window.setUpdatesEnabled(false);
        open.start();
        const int last = std::min(from + kTogether - 1, kvscope::testing::kLessons);
        for (int lesson = from; lesson <= last; ++lesson) {
            QVERIFY(open.until([&] { return lessonOf(open.bench.session())->number == lesson && open.settled(); }));
            for (int part = 0; part < open.presenter()->lesson()->parts(); ++part) {
                if (part > 0) open.press(Qt::Key_PageDown);
                QCOMPARE(open.part(), part);
                const QByteArray where = qPrintable(QString("lesson %1, part %2 ").arg(lesson).arg(part));
                QVERIFY2(open.until([&] { return open.settled() && !open.shownTexts().contains("Computing…"); }),
                         where);
                open.finish();
                QVERIFY2(open.smallTexts().isEmpty(), where + qPrintable(open.smallTexts().join('|')));
                const auto* area = open.presenter()->findChild<QScrollArea*>("panelScroll");
                const bool isAnswer = part == open.presenter()->lesson()->parts() - 1; // long: it may scroll
                QVERIFY2(isAnswer || area->verticalScrollBar()->maximum() == 0, where);
                QVERIFY2(area->widget()->width() <= area->viewport()->width(), where); // no choice is cut
                QVERIFY2(!open.pictures().empty(), where);
                QStringList findings, said;
                for (const ViewCanvas* canvas : open.pictures()) findings += canvas->finding();
                for (const auto* label : open.presenter()->findChildren<QLabel*>("presenterFinding"))
                    if (label->isVisible()) said += label->text();
                QCOMPARE(said.size(), findings.size());
                for (qsizetype i = 0; i < said.size(); ++i) // whole, or whole clauses of it
                    QVERIFY2(!said[i].isEmpty() && (findings[i] + ";").startsWith(said[i] + ";"),
                             where + qPrintable(said[i]));
                for (ViewCanvas* canvas : open.pictures()) {
                    const QByteArray picture = where + ": " + canvas->view().card().id.c_str();
                    QVERIFY2(canvas->height() >= 0.2 * size.height(), picture);
                    QVERIFY2(open.until([&] { return !canvas->canvas()->scene().items.empty(); }), picture);
                }
            }
            if (lesson < last) open.press(Qt::Key_PageDown);
        }
    }

    void withoutALessonTheViewInUseFillsTheWindow() {
        Lecture open({1280, 720});
        open.start();
        QCOMPARE(open.pictures().size(), std::size_t{1});
        QCOMPARE(open.pictures().front()->view().card().id, std::string("key_projection"));
        QVERIFY(open.pictures().front()->width() > 1200);
        open.press(Qt::Key_PageDown); // nothing to lead to
        open.press(Qt::Key_P);
        QVERIFY(!open.presenter());
    }
};

KVSCOPE_WINDOW_TEST(PresenterTest)
#include "presenter_test.moc"
