// Why a token is kept or evicted, as a sentence, and the budget at which that changes, set by a click.
#include "app/window/panels/decision_block.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QPushButton>
#include <QSettings>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class WindowDecisionTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    // An evicted token: how many rank before it, how many are kept, and a click that keeps it and one that evicts it.
    void aClickSetsTheBudgetThatKeepsTheToken() {
        OpenWindow open;
        const auto result = [&] { return open.bench.viewInput().panes[0].result; };
        const KvHeadIndex head = open.bench.session().kvHead;
        TokenIndex token = -1; // evicted, neither first nor last
        for (TokenIndex t = 300; t < 900 && token < 0; ++t)
            if (const TokenDecision d = tokenDecisionOf(*result(), head, t); !d.kept && d.rank > 500) token = t;
        QVERIFY(token >= 0);
        open.bench.change([&](Session& s) { select(s, {token}); }, "Selection");
        auto* block = open.window.findChild<DecisionBlock*>();
        const auto* sentence = block->findChild<QLabel*>("standing");
        auto* flip = block->findChild<QPushButton*>("flipBudget");
        QVERIFY(block->isVisible() && sentence->isVisible() && flip->isVisible());
        const TokenDecision before = tokenDecisionOf(*result(), head, token);
        QVERIFY2(sentence->text().startsWith(QString("%1 of 995 tokens (").arg(before.rank)) &&
                     sentence->text().contains("are kept.") && sentence->text().contains("the cut-off is"),
                 qPrintable(sentence->text()));
        QVERIFY2(flip->text().contains(QString::number(before.flipBudget)), qPrintable(flip->text()));
        QTest::mouseClick(flip, Qt::LeftButton);
        open.waitForResults();
        QCOMPARE(open.bench.session().budget.text(), QString("%1t").arg(before.flipBudget).toStdString());
        QVERIFY(tokenDecisionOf(*result(), head, token).kept);
        open.bench.change(
            [&](Session& s) {
                setBudget(s, {Budget::Unit::Tokens, double(before.flipBudget - 1)});
            },
            "Budget");
        open.waitForResults();
        QVERIFY(!tokenDecisionOf(*result(), head, token).kept); // the smallest indeed
        open.bench.change([&](Session& s) { select(s, {1020}); }, "Selection");
        QVERIFY(!flip->isVisible() && sentence->text().contains("after the cut"));
    }
};

KVSCOPE_WINDOW_TEST(WindowDecisionTest)
#include "window_decision_test.moc"
