// Operation counts against hand counts from the formulas, and against each other where one policy does
// more of the same.
#include <QtTest>

#include "core/engine/engine.h"
#include "core/studies/policy_work.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

using namespace kvscope;

namespace {

constexpr double n = 90, d = 8, kvHeads = 2, queryHeads = 4; // before the cut

} // namespace

class PolicyWorkTest : public QObject {
    Q_OBJECT

    LayerRunner m_runner{std::shared_ptr<const Engine>(makeCpuEngine(2))};
    std::shared_ptr<const CaptureReader> m_capture = makeRandomCapture(3, 120, 1, 4, 2, 8);

    Work workOf(const std::string& spec) const { return policyWork(m_runner, runRequest(m_capture, spec, "90"), {}); }

private slots:
    void handCounts() {
        // norms 2nd + n; what is done with a score table is not counted
        QCOMPARE(workOf("key_norm@0.2").operations, kvHeads * (2 * n * d + n));
        QCOMPARE(workOf("exact").operations, 0.0);
        // TOVA: the last query sees all tokens; 2d + 3 a logit
        QCOMPARE(workOf("tova@0.2").operations, queryHeads * n * (2 * d + 3));
        // H2O: n (n + 1) / 2 pairs a query head
        QCOMPARE(workOf("h2o@0.2").operations, queryHeads * n * (n + 1) / 2 * (2 * d + 3));
        // SnapKV, window 10: queries 80 to 89 see 81 to 90 tokens
        const double pairs = (81 + 90) * 10 / 2.0;
        QCOMPARE(workOf("snapkv,window=10,pool_width=1@0.2").operations, queryHeads * pairs * (2 * d + 3));
    }

    // Policies.md 0.7: the pairwise anchor costs n times the mean one.
    void pairwiseCostsTheSquare() {
        const double mean = workOf("keydiff@0.2").operations,
                     pairwise = workOf("keydiff,anchor=pairwise@0.2").operations;
        QCOMPARE(pairwise, 2 * kvHeads * n * n * d);
        QVERIFY(mean < 20 * kvHeads * n * d);
    }

    void balancingIsHalfOfTheSquare() {
        const double walks = workOf("balancekv,sink=0,recent=0,block=128,rounds=1@0.5").operations;
        const double kernel = kvHeads * (n * n / 2 * (2 * (d + d) + 3) + n * n);
        QVERIFY2(walks >= kernel && walks < 1.1 * kernel, qPrintable(QString("%1, kernel %2").arg(walks).arg(kernel)));
    }

    // What was looked at before makes no difference, and bytes are those of the tensors.
    void countsDoNotDependOnTheCache() {
        const Work once = workOf("compactor@0.2"), again = workOf("compactor@0.2");
        QCOMPARE(once.operations, again.operations);
        QVERIFY(once.bytes > 4 * (kvHeads + queryHeads) * n * d);
        QCOMPARE(workOf("key_norm@0.2").bytes, 4 * (kvHeads * n * d + kvHeads * n));
    }

    void blocksCostEveryBlock() {
        QVERIFY(workOf("key_norm,prompt_block=10@20t").operations > 2 * workOf("key_norm@20t").operations);
    }
};

KVSCOPE_CORE_TEST(PolicyWorkTest)
#include "policy_work_test.moc"
