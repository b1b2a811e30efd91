// Sets of single query heads (L4) all the way through a run. The oracle is a capture in which keys and values are
// repeated, as the authors' code repeats them: there every query head is the only reader of its KV head, so ordinary
// SnapKV gives each its own set, and every measure of a query head has one meaning only.
#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/run/record_results.h"
#include "core/run/token_decision.h"
#include "core/studies/sweep.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;

namespace {

constexpr int kQueryHeads = 6, kGroup = 3;

std::shared_ptr<MemoryCapture> groupedCapture() {
    const auto capture = makeRandomCapture(12, 100, 2, kQueryHeads, kQueryHeads / kGroup, 8);
    for (auto& [place, tensor] : capture->tensors) // sharper attention, so that query heads differ
        if (place.second == TensorRole::Queries)
            for (float& x : tensor.data) x *= 2;
    return capture;
}

std::shared_ptr<MemoryCapture> repeatedCapture() {
    const auto capture = groupedCapture();
    capture->captureInfo.numKvHeads = kQueryHeads;
    for (LayerInfo& layer : capture->captureInfo.layers)
        for (int q = 0; q < kQueryHeads; ++q) layer.gqaGroupOf[static_cast<std::size_t>(q)] = q;
    for (auto& [place, tensor] : capture->tensors) {
        if (place.second == TensorRole::Queries) continue;
        HostTensor repeated{{kQueryHeads, tensor.shape[1], tensor.shape[2]}, {}};
        const std::int64_t size = tensor.shape[1] * tensor.shape[2];
        for (int q = 0; q < kQueryHeads; ++q)
            repeated.data.insert(repeated.data.end(), tensor.data.begin() + q / kGroup * size,
                                 tensor.data.begin() + (q / kGroup + 1) * size);
        tensor = std::move(repeated);
    }
    return capture;
}

RunRequest requestOf(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec,
                     const std::string& budget, const std::string& cut = "segment:context") {
    RunRequest request = runRequest(capture, spec, cut, budget);
    request.layer = LayerIndex(1);
    return request;
}

const std::string kOwn = "snapkv,window=5,pool_width=3,copies=query_head", kShared = "snapkv,window=5,pool_width=3";

bool sameNumbers(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

} // namespace

class QueryHeadSetsTest : public QObject {
    Q_OBJECT

private:
    std::shared_ptr<const CaptureReader> m_grouped = groupedCapture(), m_repeated = repeatedCapture();
    LayerRunner m_runner{makeCpuEngine()};

    std::shared_ptr<const RunResult> own(const std::string& budget = "0.2",
                                         const std::string& cut = "segment:context") const {
        return m_runner.run(requestOf(m_grouped, kOwn, budget, cut), {});
    }
    std::shared_ptr<const RunResult> alone(const std::string& budget = "0.2",
                                           const std::string& cut = "segment:context") const {
        return m_runner.run(requestOf(m_repeated, kShared, budget, cut), {});
    }
    RunRequest replay(const RecordedSelection& list) const {
        RunRequest request = requestOf(m_grouped, "exact", "1");
        request.recorded = std::make_shared<const RecordedSelection>(list);
        return request;
    }

private slots:
    void everyQueryHeadIsMeasuredOnItsOwnSet() {
        for (const char* cut : {"segment:context", "none"}) {
            const auto a = own("0.2", cut), b = alone("0.2", cut);
            QVERIFY(a->fidelity->meanOutputError == b->fidelity->meanOutputError);
            QVERIFY(a->fidelity->meanRetainedMass == b->fidelity->meanRetainedMass);
            for (int q = 0; q < kQueryHeads; ++q)
                QCOMPARE(a->selection.heads[static_cast<std::size_t>(q / kGroup)].attendedBy(q),
                         b->selection.heads[static_cast<std::size_t>(q)].kept);
            QCOMPARE(storedBytes(*a), storedBytes(*b)); // as many bytes as a model without groups
        }
        QVERIFY(own()->fidelity->meanOutputError !=
                m_runner.run(requestOf(m_grouped, kShared, "0.2"), {})->fidelity->meanOutputError);
    }

    void everyMeasureOfAQueryHeadUsesItsSet() {
        const auto a = own(), b = alone();
        std::vector<std::string> ids;
        for (const MeasureCard& card : allMeasures())
            if (card.need != MeasureNeed::OutputProjection &&
                (card.shape == MeasureShape::PerQuery || card.shape == MeasureShape::PerQueryHead))
                ids.push_back(card.id);
        QVERIFY(std::count(ids.begin(), ids.end(), "largest_loss") &&
                std::count(ids.begin(), ids.end(), "score_correlation") &&
                std::count(ids.begin(), ids.end(), "numerator_error"));
        const auto of = m_runner.measure(*a, ids, {}), wanted = m_runner.measure(*b, ids, {});
        for (std::size_t i = 0; i < ids.size(); ++i)
            for (std::size_t q = 0; q < std::size_t{kQueryHeads}; ++q)
                QVERIFY2(sameNumbers(of[i].perHead[q], wanted[i].perHead[q]),
                         (ids[i] + " of query head " + std::to_string(q)).c_str());
    }

    // Groups of one query head, in another order than the KV heads: whoever chooses, the scores are the same.
    void scoresOfQueryHeadsAreTheirsInGroupsOfOne() {
        const auto capture = makeRandomCapture(4, 120, 1, 4, 4, 8);
        capture->captureInfo.layers[0].gqaGroupOf = {2, 0, 3, 1};
        const auto correlations = [&](const std::string& copies) {
            const RunRequest request = runRequest(capture, "snapkv,window=8,copies=" + copies, "80", "0.25");
            const LayerRunner runner(makeCpuEngine(1));
            const std::vector<std::string> ids = {"score_correlation"};
            return runner.measure(*runner.run(request, {}), ids, {}).front().perHead;
        };
        const auto ofGroups = correlations("kv_head");
        QCOMPARE(ofGroups.size(), std::size_t{4});
        QCOMPARE(correlations("query_head"), ofGroups);
    }

    // A KV head has no single set then: its measures are those of the union, as a list of the unions gives them.
    void measuresOfAKvHeadUseTheUnion() {
        const auto a = own();
        RecordedSelection unions = recordSelection(std::vector{a}, {});
        for (RecordedHead& head : unions.heads) {
            std::set<TokenIndex> all;
            for (const QueryHeadSet& set : head.queryHeads) all.insert(set.kept.begin(), set.kept.end());
            QCOMPARE(head.kept, std::vector<TokenIndex>(all.begin(), all.end()));
            head.queryHeads.clear();
        }
        const auto b = m_runner.run(replay(unions), {});
        const std::vector<std::string> ids = {"log_det", "log_det_count", "log_det_ridge", "cosine_sum"};
        const auto of = m_runner.measure(*a, ids, {}), wanted = m_runner.measure(*b, ids, {});
        for (std::size_t i = 0; i < ids.size(); ++i) QCOMPARE(of[i].perHead, wanted[i].perHead);
        QVERIFY(a->fidelity->meanOutputError != b->fidelity->meanOutputError);
        for (std::size_t q = 0; q < std::size_t{kQueryHeads}; ++q)
            QVERIFY(a->fidelity->meanRetainedMass[q] < b->fidelity->meanRetainedMass[q]); // the union is larger
    }

    void budgetsCountWhatAQueryHeadKeeps() {
        const auto a = own("20t");
        QCOMPARE(a->requested, 20);
        for (const HeadSelection& head : a->selection.heads) {
            QCOMPARE(head.attendedTokens(), 20.0);
            QVERIFY(head.kept.size() > 20);
        }
        SweepRequest sweep;
        sweep.captures = {m_grouped};
        sweep.layers = {1};
        sweep.policies = {PolicySpec::parse(kOwn + "@20t")};
        sweep.cut = "segment:context";
        int rows = 0;
        runSweep(m_runner, sweep, {}, [&](const SweepRow& row) {
            ++rows;
            QCOMPARE(row.keptTokens, 20.0);
            QCOMPARE(row.retention, 20.0 / 75);
            QCOMPARE(row.storedBytes, storedBytes(*a));
            QCOMPARE(row.outputError, meanOfNumbers(a->fidelity->meanOutputError));
        });
        QCOMPARE(rows, 1);
        QCOMPARE(recordSelection(std::vector{a}, {}).budgetKept, 20.0);
        QCOMPARE(storedBytes(*a), std::uint64_t{kQueryHeads * 20 * 2 * 8 * 4});
        QVERIFY(a->notes.back().find("each of the 6 query heads keeps 20 tokens") != std::string::npos);
    }

    // Rank, score and margin of each query head are those of the KV head that it has to itself; the group keeps a token
    // from the smallest budget on at which any of them does.
    void decisionOfEveryToken() {
        const auto a = own("20t"), b = alone("20t");
        for (int kv = 0; kv < kQueryHeads / kGroup; ++kv)
            for (TokenIndex token = 0; token < a->visible; ++token) {
                const TokenDecision group = tokenDecisionOf(*a, KvHeadIndex(kv), token);
                double margin = -std::numeric_limits<double>::infinity();
                std::int64_t flip = a->visible;
                bool kept = false;
                QCOMPARE(group.queryHeads.size(), std::size_t{kGroup});
                for (const QueryHeadDecision& decision : group.queryHeads) {
                    const TokenDecision wanted = tokenDecisionOf(*b, KvHeadIndex(decision.queryHead), token);
                    QCOMPARE(decision.kept, wanted.kept);
                    QCOMPARE(decision.rank, wanted.rank);
                    QCOMPARE(decision.score, wanted.score);
                    QCOMPARE(decision.margin, wanted.margin);
                    margin = std::max(margin, wanted.margin);
                    flip = std::min(flip, wanted.flipBudget);
                    kept = kept || wanted.kept;
                }
                QCOMPARE(group.kept, kept);
                QCOMPARE(group.margin, margin);
                QCOMPARE(group.flipBudget, flip);
                QCOMPARE(group.isProtected, token >= a->visible - 5);
            }
        QVERIFY(tokenDecisionOf(*m_runner.run(requestOf(m_grouped, kShared, "20t"), {}), KvHeadIndex(0), 3)
                    .queryHeads.empty());
    }

    void readBackFromEveryForm_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"list.json", "list.csv", "list.h5"}) QTest::newRow(name) << name;
    }

    void readBackFromEveryForm() {
        QFETCH(QString, name);
        const auto a = own();
        QTemporaryDir folder;
        const std::string path = folder.filePath(name).toStdString();
        const RecordedSelection written = recordSelection(std::vector{a}, {{}, true, {}});
        writeSelection(path, written, m_grouped->tokens());
        const RecordedSelection list = readSelection(path);
        for (std::size_t head = 0; head < list.heads.size(); ++head)
            for (std::size_t q = 0; q < kGroup; ++q) {
                const RecordedQueryHead &of = list.heads[head].queryHeads[q],
                                        &wanted = written.heads[head].queryHeads[q];
                QVERIFY(static_cast<const QueryHeadSet&>(of) == wanted);
                QVERIFY(of.ranks == wanted.ranks && of.ranks.size() == of.kept.size());
            }
        const auto again = m_runner.run(replay(list), {});
        QVERIFY(again->selection.sameLists(a->selection));
        QVERIFY(again->fidelity->meanOutputError == a->fidelity->meanOutputError);
        QCOMPARE(storedBytes(*again), storedBytes(*a));
        for (int kv = 0; kv < kQueryHeads / kGroup; ++kv)
            for (TokenIndex token = 0; token < a->visible; ++token)
                compareDecisions(tokenDecisionOf(*again, KvHeadIndex(kv), token),
                                 tokenDecisionOf(*a, KvHeadIndex(kv), token), name.endsWith("csv"));
        const bool told = std::any_of(again->notes.begin(), again->notes.end(), [](const std::string& note) {
            return note.starts_with("the list holds scores of kept tokens alone");
        });
        QCOMPARE(told, name.endsWith("csv"));
        if (const std::vector<std::string> ids = {"score_correlation"}; !name.endsWith("csv"))
            QVERIFY(m_runner.measure(*again, ids, {})[0].perHead == m_runner.measure(*a, ids, {})[0].perHead);
    }

    /// A list does not say which tokens were protected; CSV has ranks and scores of what a query head keeps, nothing
    /// else.
    static void compareDecisions(const TokenDecision& of, const TokenDecision& wanted, bool keptOnly) {
        QCOMPARE(of.kept, wanted.kept);
        QCOMPARE(of.scored, wanted.kept || !keptOnly);
        QVERIFY(!of.scored || (of.rank == wanted.rank && of.score == wanted.score));
        QVERIFY(keptOnly ? std::isnan(of.margin) : wanted.isProtected || of.margin == wanted.margin);
        for (std::size_t q = 0; q < kGroup; ++q) {
            const QueryHeadDecision &own = of.queryHeads[q], &of_run = wanted.queryHeads[q];
            QCOMPARE(own.kept, of_run.kept);
            if (own.kept || !keptOnly)
                QVERIFY(own.rank == of_run.rank && own.score == of_run.score);
            else
                QVERIFY(std::isnan(own.score));
            QVERIFY(keptOnly ? std::isnan(own.margin) : wanted.isProtected || own.margin == of_run.margin);
        }
    }

    // A list by hand in which one KV head has sets with scores and the other one set: measures of its query heads read
    // the scores of their group.
    void sharedScoresServeQueryHeadsWithoutTheirOwn() {
        RecordedSelection list = recordSelection(std::vector{own()}, {{}, true, {}});
        RecordedSelection shared =
            recordSelection(std::vector{m_runner.run(requestOf(m_grouped, kShared, "0.2"), {})}, {{}, true, {}});
        list.heads[1] = shared.heads[1];
        const std::vector<std::string> ids = {"score_correlation"};
        const auto mixed = m_runner.measure(*m_runner.run(replay(list), {}), ids, {})[0].perHead;
        const auto of_own = m_runner.measure(*own(), ids, {})[0].perHead;
        const auto of_shared = m_runner.measure(*m_runner.run(replay(shared), {}), ids, {})[0].perHead;
        for (std::size_t q = 0; q < kQueryHeads; ++q) QCOMPARE(mixed[q], q < kGroup ? of_own[q] : of_shared[q]);
    }

    void selectionsWithOtherSetsDiffer() {
        const auto a = own();
        Selection changed = a->selection;
        QVERIFY(changed.sameLists(a->selection));
        std::swap(changed.heads[0].queryHeads[0].kept, changed.heads[0].queryHeads[1].kept);
        QVERIFY(!changed.sameLists(a->selection));
    }

    void listsThatContradictThemselvesAreRefused() {
        const RecordedSelection good = recordSelection(std::vector{own()}, {});
        const auto refused = [&](const char* part, auto change) {
            RecordedSelection list = good;
            change(list.heads[1]);
            QTemporaryDir folder;
            const std::string message = errorMessage([&] {
                writeSelection(folder.filePath("list.json").toStdString(), list, m_grouped->tokens());
                m_runner.run(replay(list), {});
            });
            QVERIFY2(message.find(part) != std::string::npos, (std::string(part) + ": " + message).c_str());
        };
        refused("not the union of those of the query heads", [](RecordedHead& head) { head.kept.pop_back(); });
        refused("beside weights", [](RecordedHead& head) { head.numeratorWeights.assign(head.kept.size(), 2); });
        refused("negative or has two sets", [](RecordedHead& head) { head.queryHeads[0].queryHead = 4; });
        refused("KV head 1, query head 3",
                [](RecordedHead& head) { std::swap(head.queryHeads[0].kept[0], head.queryHeads[0].kept[1]); });
        refused("sets for query heads 0, 4, 5, and query heads 3, 4, 5 read",
                [](RecordedHead& head) { head.queryHeads[0].queryHead = 0; });
    }

    void positionsAreNotReassigned() {
        const auto turning = groupedCapture();
        turning->frequencies = {1, 0.5F, 0.25F, 0.125F};
        for (LayerInfo& layer : turning->captureInfo.layers) layer.hasRope = true;
        RecordedSelection list = recordSelection(std::vector{own()}, {});
        list.parameters = {{"positions", "rerotated"}};
        RunRequest request = replay(list);
        request.capture = turning;
        const std::string message = errorMessage([&] { m_runner.run(request, {}); });
        QVERIFY2(message.find("a KV head has no single order of kept tokens") != std::string::npos, message.c_str());
    }

    void blocksAreRefused() {
        const std::string message =
            errorMessage([&] { m_runner.run(requestOf(m_grouped, kOwn + ",prompt_block=20", "20t"), {}); });
        QVERIFY2(message.find("Set prompt_block=0 and decode_tokens=0, or copies=kv_head") != std::string::npos,
                 message.c_str());
    }
};

KVSCOPE_TEST(QueryHeadSetsTest)
#include "query_head_sets_test.moc"
