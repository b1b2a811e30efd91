// The executor under sweeps, curves and maps: which points run, in which order, and what becomes of failures.
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"
#include "core/run/stage_cache.h"
#include "tests/run/counting_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <stop_token>

using namespace kvscope;

namespace {

RunRequest requestOf(const std::string& spec) {
    static const auto capture = makeRandomCapture(1, 60, 2, 4, 2, 8);
    return runRequest(capture, spec);
}

GridPoint refused(const char* why, int group) {
    return gridPoint([&]() -> RunRequest { throw Error({.sentence = why}); }, group);
}

/// What a sink saw: "0:keydiff", or "1! why".
struct Seen {
    QStringList texts;

    GridSink sink(bool takesErrors) {
        GridSink sink;
        sink.finished = [this](std::size_t point, const auto& result, const Checkpoint&) {
            texts << QString("%1:%2").arg(point).arg(result->request.policy.policy.c_str());
        };
        if (takesErrors)
            sink.failed = [this](std::size_t point, const Error& error) {
                texts << QString("%1! %2").arg(point).arg(error.what());
            };
        return sink;
    }
};

} // namespace

class RunGridTest : public QObject {
    Q_OBJECT

    const LayerRunner m_runner{std::shared_ptr<const Engine>(makeCpuEngine(1))};

private slots:
    void pointsComeInOrder() {
        const std::vector<GridPoint> points = {{requestOf("snapkv@0.5")}, {requestOf("keydiff@0.5")}};
        Seen seen;
        runGrid(m_runner, points, {}, seen.sink(false));
        QCOMPARE(seen.texts, QStringList({"0:snapkv", "1:keydiff"}));
    }

    void budgetsOfOnePolicyShareThePass_data() {
        QTest::addColumn<QString>("policy");
        QTest::newRow("one choice a KV head") << "keydiff";
        QTest::newRow("a choice for each query head") << "h2o:paper";
    }

    // The second policy meets exact attention that is known. A budget that does not fit is its own point's error.
    void budgetsOfOnePolicyShareThePass() {
        QFETCH(QString, policy);
        std::vector<GridPoint> points;
        for (const char* budget : {"@0.5", "@999t", "@0.1", "@0.9", "@0.25"})
            points.push_back({requestOf(policy.toStdString() + budget)});
        points.push_back({requestOf("key_norm@0.5")});
        const CountedRuns counted;
        std::vector<double> errors;
        runGrid(counted.runner, points, {},
                {[&](std::size_t point, const auto& result, const Checkpoint&) {
                     QVERIFY(result->request.later.empty());
                     const auto alone = CountedRuns().run(points[point].run);
                     for (std::size_t h = 0; h < 4; ++h) {
                         const double error = alone->fidelity->meanOutputError[h];
                         QVERIFY(std::abs(result->fidelity->meanOutputError[h] - error) <= 1e-6 * error);
                         QVERIFY(std::abs(result->fidelity->meanRetainedMass[h] -
                                          alone->fidelity->meanRetainedMass[h]) <= 1e-6);
                     }
                     errors.push_back(result->fidelity->meanOutputError[0]);
                     QCOMPARE(counted.engine->count("kept attention"), point < 5 ? 0 : 1);
                 },
                 [](std::size_t point, const Error&) { QCOMPARE(point, std::size_t{1}); }});
        QCOMPARE(errors.size(), std::size_t{5});
    }

    void aFailureStaysWithItsPoint() {
        const std::vector<GridPoint> points = {{requestOf("keydiff@0.5")},
                                               refused("no such value", -1),
                                               {requestOf("keydiff@999t")},
                                               {requestOf("exact")}};
        Seen seen;
        runGrid(m_runner, points, {}, seen.sink(true));
        QCOMPARE(seen.texts.size(), 4);
        QCOMPARE(seen.texts[1], QString("1! no such value"));
        QVERIFY2(seen.texts[2].startsWith("2! "), qPrintable(seen.texts[2])); // the runner refuses the budget
        QCOMPARE(seen.texts[3], QString("3:exact"));
    }

    // Points 1 and 2 have the group of the failure, 3 has another one, and 0 came before.
    void theRestOfAGroupIsLeftOut() {
        std::vector<GridPoint> points = {{requestOf("keydiff@0.5")}, refused("a", 7),  {requestOf("snapkv@0.5")},
                                         {requestOf("tova@0.5")},    refused("b", -1), {requestOf("exact")}};
        points[0].group = points[2].group = 7;
        points[3].group = 8;
        Seen seen;
        runGrid(m_runner, points, {}, seen.sink(true));
        QCOMPARE(seen.texts, QStringList({"0:keydiff", "1! a", "3:tova", "4! b", "5:exact"}));
    }

    void withoutATakerTheFirstErrorEndsTheGrid() {
        const std::vector<GridPoint> points = {
            {requestOf("exact")}, refused("no such value", -1), {requestOf("exact")}};
        Seen seen;
        QVERIFY_THROWS_EXCEPTION(Error, runGrid(m_runner, points, {}, seen.sink(false)));
        QCOMPARE(seen.texts, QStringList("0:exact"));
    }

    void whatTheSinkThrowsIsThePointsError() {
        const std::vector<GridPoint> points = {{requestOf("exact")}, {requestOf("keydiff@0.5")}};
        QStringList errors;
        runGrid(m_runner, points, {},
                {[](std::size_t point, const auto&, const Checkpoint&) {
                     if (point == 0) throw Error({.sentence = "no number here"});
                 },
                 [&](std::size_t point, const Error& error) { errors << QString::number(point) + error.what(); }});
        QCOMPARE(errors, QStringList("0no number here"));
    }

    void progressGrowsToTheEnd() {
        const std::vector<GridPoint> points(4, GridPoint{requestOf("keydiff@0.5")});
        std::vector<double> shares;
        const Checkpoint checkpoint({}, [&](double done, double total) { shares.push_back(done / total); });
        Seen seen;
        runGrid(m_runner, points, checkpoint, seen.sink(false));
        QVERIFY(std::is_sorted(shares.begin(), shares.end()));
        QVERIFY(std::find(shares.begin(), shares.end(), 0.75) != shares.end()); // the last point begins
        QCOMPARE(shares.back(), 1.0);
    }

    // The results come from the cache, which asks nobody whether to go on.
    void aStopIsNoticedBetweenCachedPoints() {
        const std::vector<GridPoint> points(5, GridPoint{requestOf("keydiff@0.5")});
        Seen seen;
        runGrid(m_runner, points, {}, seen.sink(false));
        std::stop_source stop;
        int finished = 0;
        const auto stopAtTwo = [&](std::size_t, const auto&, const Checkpoint&) {
            if (++finished == 2) stop.request_stop();
        };
        QVERIFY_THROWS_EXCEPTION(Cancelled, runGrid(m_runner, points, Checkpoint(stop.get_token()), {stopAtTwo}));
        QCOMPARE(finished, 2);
    }

    // Both layers have the same shapes, so each takes half of the cache.
    void layersThatAreLeftStayUnlessForgotten() {
        std::vector<GridPoint> points(2, GridPoint{requestOf("snapkv@0.5")});
        points[1].run.layer = LayerIndex(1);
        Seen seen;
        const auto bytesAfter = [&](auto... left) {
            const LayerRunner runner{std::shared_ptr<const Engine>(makeCpuEngine(1))};
            runGrid(runner, points, {}, seen.sink(true), left...);
            return runner.cache().bytes();
        };
        QVERIFY(bytesAfter() > 0);
        QCOMPARE(bytesAfter(LayersLeft::Forget), bytesAfter() / 2);
        points.insert(points.begin() + 1, refused("no such value", -1)); // of no capture
        QCOMPARE(bytesAfter(LayersLeft::Forget), bytesAfter() / 2);
    }

    void keptShareIsTheMeanOfTheHeads() {
        const auto result = m_runner.run(requestOf("compactor@0.3"), {});
        double sum = 0;
        for (const HeadSelection& head : result->selection.heads) sum += static_cast<double>(head.kept.size());
        QCOMPARE(meanAttendedTokens(*result), sum / 2);
        QCOMPARE(keptShareOf(*result), sum / 2 / static_cast<double>(result->visible));
        QCOMPARE(meanAttendedTokens(*result, KvHeadIndex(1)),
                 static_cast<double>(result->selection.heads[1].kept.size()));
    }
};

KVSCOPE_TEST(RunGridTest)
#include "run_grid_test.moc"
