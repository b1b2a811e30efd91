// Back and forth through the selections that were made.
#include <QTest>

#include "app/study/selection_trail.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class SelectionTrailTest : public QObject {
    Q_OBJECT

    static Session with(std::vector<TokenIndex> tokens, const std::string& name = {}) {
        Session session;
        session.selected = std::move(tokens);
        session.selectionName = name;
        return session;
    }

private slots:
    void goesBackAndForth() {
        SelectionTrail trail;
        trail.note(with({1, 2}, "needle"));
        trail.note(with({5}));
        trail.note(with({5})); // the same again is one place
        trail.note(with({9}));
        Session session = with({9});
        QVERIFY(trail.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({5}));
        QVERIFY(trail.step(session, -1));
        QCOMPARE(session.selectionName, std::string("needle"));
        QVERIFY(!trail.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({1, 2}));
        QVERIFY(trail.step(session, 1) && trail.step(session, 1) && !trail.step(session, 1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({9}));
    }

    void aNewSelectionForgetsWhatLayAhead() {
        SelectionTrail trail;
        for (const TokenIndex token : {1, 2, 3})
            trail.note(with({token}));
        Session session = with({3});
        trail.step(session, -1);
        trail.note(with({7}));
        QVERIFY(!trail.step(session, 1));
        QVERIFY(trail.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({2}));
    }

    void afterClearingTheFirstStepBackReturnsToTheLastSelection() {
        SelectionTrail trail;
        trail.note(with({4}));
        trail.note(with({}));
        Session session = with({});
        QVERIFY(trail.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({4}));
    }

    void anEmptyTrailGoesNowhere() {
        SelectionTrail trail;
        Session session = with({});
        QVERIFY(!trail.step(session, -1) && !trail.step(session, 1));
    }

    void theOldestAreForgottenFirst() {
        SelectionTrail trail;
        for (TokenIndex token = 0; token < 150; ++token)
            trail.note(with({token}));
        Session session = with({149});
        int steps = 0;
        while (trail.step(session, -1))
            ++steps;
        QCOMPARE(steps, 99);
        QCOMPARE(session.selected, std::vector<TokenIndex>({50}));
    }
};

KVSCOPE_TEST(SelectionTrailTest)
#include "selection_trail_test.moc"
