// Back and forth through the selections that were made.
#include <QTest>

#include "app/study/selection_history.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class SelectionHistoryTest : public QObject {
    Q_OBJECT

    static Session with(std::vector<TokenIndex> tokens, const std::string& name = {}) {
        Session session;
        session.selected = std::move(tokens);
        session.selectionName = name;
        return session;
    }

private slots:
    void goesBackAndForth() {
        SelectionHistory history;
        history.note(with({1, 2}, "needle"));
        history.note(with({5}));
        history.note(with({5})); // the same again is one place
        history.note(with({9}));
        Session session = with({9});
        QVERIFY(history.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({5}));
        QVERIFY(history.step(session, -1));
        QCOMPARE(session.selectionName, std::string("needle"));
        QVERIFY(!history.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({1, 2}));
        QVERIFY(history.step(session, 1) && history.step(session, 1) && !history.step(session, 1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({9}));
    }

    void aNewSelectionForgetsWhatLayAhead() {
        SelectionHistory history;
        for (const TokenIndex token : {1, 2, 3}) history.note(with({token}));
        Session session = with({3});
        history.step(session, -1);
        history.note(with({7}));
        QVERIFY(!history.step(session, 1));
        QVERIFY(history.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({2}));
    }

    void afterClearingTheFirstStepBackReturnsToTheLastSelection() {
        SelectionHistory history;
        history.note(with({4}));
        history.note(with({}));
        Session session = with({});
        QVERIFY(history.step(session, -1));
        QCOMPARE(session.selected, std::vector<TokenIndex>({4}));
    }

    void anEmptyHistoryGoesNowhere() {
        SelectionHistory history;
        Session session = with({});
        QVERIFY(!history.step(session, -1) && !history.step(session, 1));
    }

    void theOldestAreForgottenFirst() {
        SelectionHistory history;
        for (TokenIndex token = 0; token < 150; ++token) history.note(with({token}));
        Session session = with({149});
        int steps = 0;
        while (history.step(session, -1)) ++steps;
        QCOMPARE(steps, 99);
        QCOMPARE(session.selected, std::vector<TokenIndex>({50}));
    }
};

KVSCOPE_TEST(SelectionHistoryTest)
#include "selection_history_test.moc"
