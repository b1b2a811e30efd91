// Undo is a list of sessions: what it must keep is identity, merging of drags, and the look of the picture.
#include <QTest>

#include "app/study/session_history.h"
#include "tests/app/session_fixture.h"
#include "tests/support/test_program.h"

using namespace kvscope;
using kvscope::testing::RandomUser;

namespace {

Session withoutLook(Session session) {
    session.look = {};
    return session;
}

} // namespace

class SessionHistoryTest : public QObject {
    Q_OBJECT

private slots:
    void twoHundredRandomActionsAreUndoneAndRedone() {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            RandomUser user(seed);
            Session first;
            first.panes.push_back({PolicySpec::parse("keydiff"), {}, {}});
            SessionHistory history(first);
            std::vector<Session> seen{first};
            for (int i = 0; i < 200; ++i) {
                Session next = history.current();
                user.act(next);
                if (withoutLook(next) != withoutLook(history.current())) seen.push_back(next);
                history.change(next, "Action");
            }
            const Session last = history.current();
            for (std::size_t i = seen.size() - 1; i > 0; --i) {
                history.undo();
                QVERIFY2(withoutLook(history.current()) == withoutLook(seen[i - 1]),
                         qPrintable(QString("seed %1, step %2").arg(seed).arg(i)));
            }
            QVERIFY(!history.canUndo());
            while (history.canRedo()) history.redo();
            QVERIFY2(history.current() == last, qPrintable(QString("seed %1").arg(seed)));
        }
    }

    void aDragIsOneStep() {
        SessionHistory history;
        for (int i = 1; i <= 50; ++i) {
            Session next = history.current();
            next.budget.value = i / 100.0;
            history.change(next, "Budget", "budget");
        }
        QCOMPARE(history.current().budget.value, 0.5);
        history.undo();
        QCOMPARE(history.current().budget.value, 0.25);
        QVERIFY(!history.canUndo());
    }

    void twoDragsAreTwoSteps() {
        SessionHistory history;
        for (const double value : {0.1, 0.2, 0.3, 0.4}) {
            Session next = history.current();
            next.budget.value = value;
            history.change(next, "Budget", "budget");
            if (value == 0.2) history.endMerge();
        }
        history.undo();
        QCOMPARE(history.current().budget.value, 0.2);
        history.undo();
        QCOMPARE(history.current().budget.value, 0.25);
    }

    void aNewChangeForgetsWhatWasUndone() {
        SessionHistory history;
        for (const int layer : {1, 2}) {
            Session next = history.current();
            next.layer = LayerIndex(layer);
            history.change(next, "Layer");
        }
        history.undo();
        Session next = history.current();
        next.layer = LayerIndex(7);
        history.change(next, "Layer");
        QVERIFY(!history.canRedo());
        history.undo();
        QCOMPARE(history.current().layer.value, 1);
    }

    void undoLeavesPanAndZoomAlone() {
        SessionHistory history;
        Session next = history.current();
        next.budget.value = 0.5;
        history.change(next, "Budget");
        next.look.ranges["key_projection"] = {0, 1, 0, 1};
        next.look.headMeasure = "entropy";
        history.change(next, "Zoom");
        history.undo();
        QCOMPARE(history.current().budget.value, 0.25);
        QVERIFY(history.current().look.ranges.contains("key_projection"));
        QCOMPARE(history.current().look.headMeasure, std::string("entropy"));
        QVERIFY(!history.canUndo());
    }

    void changingNothingIsNoStep() {
        SessionHistory history;
        history.change(history.current(), "Nothing");
        QVERIFY(!history.canUndo());
    }

    void labelsNameTheStep() {
        SessionHistory history;
        Session next = history.current();
        next.seed = 3;
        history.change(next, "Seed");
        QCOMPARE(history.undoLabel(), std::string("Seed"));
        history.undo();
        QCOMPARE(history.redoLabel(), std::string("Seed"));
        QCOMPARE(history.undoLabel(), std::string());
    }

    void savedMeansTheSameSession() {
        SessionHistory history;
        QVERIFY(history.isSaved());
        Session next = history.current();
        next.seed = 3;
        history.change(next, "Seed");
        QVERIFY(!history.isSaved());
        history.undo();
        QVERIFY(history.isSaved());
    }

    // A day of opened files: what undo cannot reach any more is forgotten, and what it can reach keeps its file.
    void documentsWithoutAStepAreForgotten() {
        SessionHistory history;
        for (int i = 0; i < 1000; ++i) {
            Session next = history.current();
            next.seed = static_cast<std::uint64_t>(i);
            history.open(next, std::to_string(i) + ".kvscope", "Open");
            QVERIFY(history.documents() <= 200);
            if (i % 3 == 0) history.undo(); // the next one takes its place
        }
        for (int i = 0; history.canUndo() && i < 50; ++i) {
            QCOMPARE(history.file(), std::to_string(history.current().seed) + ".kvscope");
            history.undo();
        }
        QVERIFY(history.canRedo());
    }

    // Undo leads over what was opened, and each session keeps its own file: Save never writes one over another's.
    void undoLeadsBackToTheSessionBefore() {
        SessionHistory history;
        const auto withSeed = [&](int seed) {
            Session next = history.current();
            next.seed = static_cast<std::uint64_t>(seed);
            return next;
        };
        history.change(withSeed(1), "Seed");
        history.markSaved("one");
        history.change(withSeed(2), "Seed");
        Session other;
        other.capturePath = "/other.h5";
        other.look.theme = ThemeChoice::Dark;
        history.open(other, "two", "Open two");
        QVERIFY(history.isSaved() && history.file() == "two");
        history.change(withSeed(3), "Seed");
        const auto unsaved = history.unsaved();
        QCOMPARE(unsaved.size(), std::size_t(2));
        QVERIFY(unsaved[0].first == "two" && unsaved[0].second.seed == 3);
        QVERIFY(unsaved[1].first == "one" && unsaved[1].second.seed == 2);
        history.undo();
        history.undo();
        QVERIFY(history.file() == "one" && history.current().seed == 2 && !history.isSaved());
        QCOMPARE(history.current().look.theme, ThemeChoice::Dark); // the interface stays as it is
        QCOMPARE(history.redoLabel(), std::string("Open two"));
        history.redo();
        QVERIFY(history.file() == "two" && history.current().capturePath == "/other.h5");
    }

    void leavingALessonGivesTheSessionBeforeIt() {
        SessionHistory history;
        Session own;
        own.seed = 5;
        history.change(own, "Seed");
        history.markSaved("own");
        QVERIFY(!history.beforeLesson());
        for (const char* text : {"first", "second"}) {
            Session lesson;
            lesson.lesson = text;
            history.open(lesson, {}, "Open lesson");
        }
        QVERIFY(history.beforeLesson() && history.file().empty());
        history.leaveLesson();
        QVERIFY(history.current() == own && history.file() == "own" && history.isSaved());
        history.undo();
        QCOMPARE(history.current().lesson, std::string("second"));
    }
};

KVSCOPE_TEST(SessionHistoryTest)
#include "session_history_test.moc"
