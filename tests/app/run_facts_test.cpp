// What is said beside a step sequence: where it stands, and checks that fail on a run that was tampered with.
#include "app/lessons/run_facts.h"
#include "core/policies/balance/balance_tree.h"
#include "tests/app/open_lesson.h"
#include "tests/support/test_program.h"
#include "views/clustering/clustering_data.h"
#include "views/merge_tree/merge_tree_data.h"
#include "views/walk/walk_data.h"

#include <QTest>

using namespace kvscope;
using kvscope::testing::OpenLesson;

namespace {

struct Played : OpenLesson {
    const View& view;

    Played(const char* lesson, const char* viewId) : OpenLesson(lesson), view(viewById(viewId)) {
        bench->showView(view);
        executor.runAll();
    }
    ViewInput at(std::optional<TokenIndex> cursor) const {
        ViewInput input = bench->viewInput(view);
        input.cursor = cursor;
        return input;
    }
    template <class Data> std::shared_ptr<Data> copyOf() const {
        return std::make_shared<Data>(*std::dynamic_pointer_cast<const Data>(bench->viewInput(view).data.value));
    }
    RunFacts of(std::shared_ptr<const ViewData> data, std::optional<TokenIndex> cursor) const {
        ViewInput input = at(cursor);
        input.data.value = std::move(data);
        return runFacts(input);
    }
};

std::string now(const RunFacts& facts, std::size_t row) { return facts.now.at(row).second; }

std::vector<bool> holds(const RunFacts& facts) {
    std::vector<bool> all;
    for (const RunFacts::Check& check : facts.checks) all.push_back(check.holds);
    return all;
}

} // namespace

class RunFactsTest : public QObject {
    Q_OBJECT

private slots:
    void theTreeIsABinaryCounter() {
        const Played played("quotient", "merge_tree");
        for (const TokenIndex cursor : {0, 1, 63, 64, 65, 128, 704, 995}) {
            const RunFacts facts = runFacts(played.at(cursor));
            QVERIFY2(holds(facts) == std::vector<bool>(4, true), qPrintable(QString::number(cursor)));
        }
        const RunFacts facts = runFacts(played.at(704));
        QCOMPARE(now(facts, 0), std::string("704"));
        QCOMPARE(now(facts, 1), std::string("11 = 1011 in binary"));
        QVERIFY(now(facts, 2).starts_with("0, ") && std::ranges::count(now(facts, 2), ',') == 4);
        // One row too many in the first output, and a set where the counter has a 0.
        const auto wrong = played.copyOf<MergeTreeData>();
        auto stream = std::make_shared<BalanceStream>(*wrong->stream);
        BalanceNode& node = stream->trees[static_cast<std::size_t>(wrong->tree)].nodes[0][0];
        node.output = node.input;
        wrong->stream = stream;
        QVERIFY(!played.of(wrong, 704).checks[2].holds);
        QVERIFY(played.of(wrong, 704).checks[0].holds);
    }

    void theWalkAddsUp() {
        const Played played("walk", "walk");
        const RunFacts facts = runFacts(played.at(64));
        QCOMPARE(now(facts, 0), std::string("64 of 64"));
        QVERIFY(holds(facts) == std::vector<bool>(2, true));
        QVERIFY(runFacts(played.at(0)).now.empty());
        const auto wrong = played.copyOf<WalkData>();
        BalanceWalkLog log = *wrong->walks.front().log;
        log.quadratic[20] *= 1.01;
        log.probabilities[3] = 1.2;
        wrong->walks.front().log = &log;
        QVERIFY(holds(played.of(wrong, 64)) == std::vector<bool>(2, false));
        QVERIFY(holds(played.of(wrong, 3)) == std::vector<bool>(2, true)); // only steps that have happened count
    }

    void theClustersHoldEveryToken() {
        const Played played("subgen", "clustering");
        const RunFacts facts = runFacts(played.at(512));
        QCOMPARE(now(facts, 0), std::string("512"));
        QCOMPARE(now(facts, 1), std::string("58"));
        QVERIFY(holds(facts) == std::vector<bool>(2, true));
        const auto wrong = played.copyOf<ClusteringData>();
        wrong->stream->distances[100] = static_cast<float>(2 * wrong->stream->delta);
        QVERIFY(!played.of(wrong, 512).checks[0].holds);
        QVERIFY(played.of(wrong, 100).checks[0].holds);
    }
};

KVSCOPE_CORE_TEST(RunFactsTest)
#include "run_facts_test.moc"
