// Exact keeps everything, asks for no budget, and says no to blocks.
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class ExactTest : public QObject {
    Q_OBJECT

private slots:
    void keepsEverythingAtAnyBudget() {
        const TestLayer layer = TestLayer::random(1, {4, 2, 97, 8});
        for (const char* spec : {"exact", "exact@1t", "exact@0.01", "exact@5000t"}) {
            const PolicyOutcome outcome = m_bench.run(spec, layer);
            QCOMPARE(outcome.requested, std::int64_t{97});
            QCOMPARE(outcome.selection.heads.size(), std::size_t{2});
            for (const HeadSelection& head : outcome.selection.heads) {
                QCOMPARE(listText(head.kept), std::string("0-96"));
                QCOMPARE(head.margin, std::numeric_limits<float>::infinity());
                QVERIFY(head.protectedTokens.empty() && head.numeratorWeights.empty());
            }
            QVERIFY(outcome.scores.total.empty() && !outcome.simulated);
        }
    }

    void needsNoQueries() {
        TestLayer layer = TestLayer::random(1, {4, 2, 5, 8});
        layer.queries = {};
        QCOMPARE(listText(m_bench.run("exact", layer).selection.heads[1].kept), std::string("0-4"));
        QVERIFY(policyById("exact").card().needs.empty());
        QVERIFY(!policyById("exact").card().usesBudget);
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(ExactTest)
#include "exact_test.moc"
