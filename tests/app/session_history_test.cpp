// Undo is a list of sessions: what it must keep is identity, merging of drags, and the look of the picture.
#include <QTest> // first: moc of Qt 6.4 stumbles over gcc 12's <compare> otherwise

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
};

KVSCOPE_TEST(SessionHistoryTest)
#include "session_history_test.moc"
