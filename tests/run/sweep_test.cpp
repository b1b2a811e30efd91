// The sweep: which rows come, in which order, what they hold, and what is refused before anything runs.
#include "core/base/error.h"
#include "core/metrics/fidelity.h"
#include "core/run/run_grid.h"
#include "core/run/stored_rows.h"
#include "core/studies/sweep.h"
#include "tests/run/counting_engine.h"
#include "tests/support/error_message.h"
#include "tests/support/forwarding_capture.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

using namespace kvscope;

namespace {

SweepRequest smallSweep() {
    SweepRequest request;
    request.captures = {makeRandomCapture(1, 100, 2, 4, 2, 8), makeRandomCapture(2, 80, 2, 4, 2, 8)};
    for (const char* spec : {"exact", "keydiff", "uniform@10t"}) request.policies.push_back(PolicySpec::parse(spec));
    request.budgets = {Budget::parse("0.1"), Budget::parse("0.5")};
    request.varied = {{"window_share", {"0", "0.2", "0.5"}}};
    request.seeds = {3, 4};
    return request;
}

struct Fixture {
    std::shared_ptr<CountingEngine> engine = std::make_shared<CountingEngine>();
    LayerRunner runner{engine};

    std::vector<SweepRow> rows(const SweepRequest& request, const Checkpoint& checkpoint = {}) const {
        std::vector<SweepRow> rows;
        runSweep(runner, request, checkpoint, [&](const SweepRow& row) { rows.push_back(row); });
        return rows;
    }
};

/// A random capture that counts what is read, and whose layers can be slow or broken.
class WatchedCapture final : public kvscope::testing::ForwardingCapture {
public:
    explicit WatchedCapture(std::uint64_t seed, std::vector<float> frequencies = {})
        : ForwardingCapture(rotated(seed, std::move(frequencies))) {}

    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        {
            const std::lock_guard lock(m_mutex);
            ++m_reads[{layer.value, role}];
        }
        m_changed.notify_all();
        if (layer.value == m_broken) throw Error({.sentence = "the disk is gone"});
        while (layer.value == m_endless) {
            checkpoint.stopPoint();
            std::this_thread::yield();
        }
        return ForwardingCapture::read(layer, role, checkpoint);
    }

    void breakLayer(LayerIndex layer) { m_broken = layer.value; }
    void readsUntilStopped(LayerIndex layer) { m_endless = layer.value; }
    int reads(LayerIndex layer, TensorRole role) const {
        const std::lock_guard lock(m_mutex);
        const auto at = m_reads.find({layer.value, role});
        return at == m_reads.end() ? 0 : at->second;
    }
    /// False: nobody has begun to read the layer within the time.
    bool waitForRead(LayerIndex layer) const {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, std::chrono::seconds(10), [&] {
            return m_reads.count({layer.value, TensorRole::Keys}) > 0;
        });
    }

private:
    static std::shared_ptr<const CaptureReader> rotated(std::uint64_t seed, std::vector<float> frequencies) {
        auto capture = makeRandomCapture(seed, 100, 2, 4, 2, 8);
        for (LayerInfo& layer : capture->captureInfo.layers) layer.hasRope = !frequencies.empty();
        capture->frequencies = std::move(frequencies);
        return capture;
    }

    std::int64_t m_broken = -1, m_endless = -1;
    mutable std::mutex m_mutex;
    mutable std::condition_variable m_changed;
    mutable std::map<std::pair<std::int64_t, TensorRole>, int> m_reads;
};

/// The second policy alone needs keys before RoPE.
SweepRequest watchedSweep(const std::shared_ptr<const CaptureReader>& capture) {
    SweepRequest request;
    request.captures = {capture};
    request.policies = {PolicySpec::parse("keydiff"), PolicySpec::parse("compactor")};
    request.budgets = {Budget::parse("0.5")};
    return request;
}

std::string lineOf(const RunResult& result) {
    const RunRequest& request = result.request;
    return request.capture->info().fileName + " " + std::to_string(request.layer.value) + " " + request.policy.text() +
           " " + request.budget.text() + " " + std::to_string(request.seed);
}

QStringList texts(const std::vector<std::string>& strings) {
    QStringList list;
    for (const std::string& text : strings) list << QString::fromStdString(text);
    return list;
}

} // namespace

class SweepTest : public QObject {
    Q_OBJECT

private slots:
    void everyRowInOrder() {
        const SweepRequest request = smallSweep();
        std::vector<std::string> expected;
        for (const auto& capture : request.captures)
            for (const char* layer : {" 0 ", " 1 "}) {
                const std::string start = capture->info().fileName + layer;
                expected.push_back(start + "exact 1 3"); // needs no budget and draws nothing
                for (const char* share : {"", ",window_share=0.2", ",window_share=0.5"})
                    for (const char* budget : {"0.1", "0.5"})
                        expected.push_back(start + "keydiff" + share + " " + budget + " 3");
                for (const char* seed : {"3", "4"}) expected.push_back(start + "uniform@10t 10t " + seed);
            }
        std::vector<std::string> got;
        for (const SweepRow& row : Fixture().rows(request)) got.push_back(lineOf(*row.result));
        QVERIFY(got == expected);
    }

    void rowsHoldWhatASingleRunSays() {
        const SweepRequest request = smallSweep();
        for (const SweepRow& row : Fixture().rows(request)) {
            const auto alone = Fixture().runner.run(row.result->request, {});
            QVERIFY(alone->selection.sameLists(row.result->selection));
            QCOMPARE(row.outputError, meanOfNumbers(alone->fidelity->meanOutputError));
            QCOMPARE(row.retainedMass, meanOfNumbers(alone->fidelity->meanRetainedMass));
            QCOMPARE(row.keptTokens, static_cast<double>(alone->requested));
            QCOMPARE(row.storedBytes, storedBytes(*alone));
            QCOMPARE(row.storedTokens, meanStoredTokens(*alone));
            QCOMPARE(row.retention * static_cast<double>(alone->visible), row.keptTokens);
        }
    }

    void aBudgetComputesFeaturesOnce() {
        Fixture fixture;
        SweepRequest request = smallSweep();
        request.captures.resize(1);
        request.layers = {1};
        const std::vector<SweepRow> rows = fixture.rows(request);
        QCOMPARE(fixture.engine->count("similarity"), 1); // six rows of keydiff
        for (const SweepRow& row : rows)
            if (row.result->request.policy.policy == "keydiff")
                QCOMPARE(row.result->times.featuresMs, rows[1].result->times.featuresMs); // what it once cost
        QVERIFY(rows[1].result->times.featuresMs > 0);
    }

    void everythingHasAColumn() {
        const SweepRequest request = smallSweep();
        const QStringList header = texts(sweepColumns(request));
        for (const SweepRow& row : Fixture().rows(request)) {
            const QStringList fields = texts(sweepFields(request, row));
            QCOMPARE(header.size(), QSet<QString>(header.begin(), header.end()).size());
            QCOMPARE(fields.size(), header.size());
            const auto field = [&](const char* name) { return fields[header.indexOf(name)]; };
            QCOMPARE(field("layer").toInt(), row.result->request.layer.value);
            QCOMPARE(field("seed").toULongLong(), row.result->request.seed);
            QCOMPARE(field("output_error").toDouble(), row.outputError);
            QCOMPARE(field("stored_bytes").toULongLong(), row.storedBytes);
            QCOMPARE(field("kept_tokens").toDouble(), row.keptTokens);
            QCOMPARE(field("stored_tokens").toDouble(), row.storedTokens);
            QCOMPARE(field("simulated"), "false");
            QCOMPARE(field("cut_token").toInt(), row.result->visible);
            const bool isKeydiff = field("policy") == "keydiff";
            const PolicySpec& spec = row.result->request.policy;
            QCOMPARE(field("window_share").toStdString(), isKeydiff ? spec.values.text("window_share") : "");
        }
    }

    void refusedBeforeAnythingRuns_data() {
        QTest::addColumn<QString>("message");
        for (const char* message : {"no policy of the sweep has the parameter 'lambda'", "not a value of window_share",
                                    "100 tokens", "needs a budget", "sweep is empty", "has no values", "cut '90'"})
            QTest::newRow(message) << message;
    }

    void refusedBeforeAnythingRuns() {
        QFETCH(QString, message);
        SweepRequest request = smallSweep();
        if (message.contains("lambda"))
            request.varied.push_back({"lambda", {"1"}});
        else if (message.contains("not a value"))
            request.varied[0].values.push_back("2");
        else if (message.contains("100 tokens"))
            request.budgets.push_back(Budget::parse("70t")),
                message = "60 tokens lie before"; // only the second capture
        else if (message.contains("needs a budget"))
            request.budgets.clear();
        else if (message.contains("empty"))
            request.seeds.clear();
        else if (message.contains("no values"))
            request.varied[0].values.clear();
        else
            request.cut = "90"; // the second capture has 80 tokens
        Fixture fixture;
        int rows = 0;
        const QString said =
            errorText([&] { runSweep(fixture.runner, request, {}, [&](const SweepRow&) { ++rows; }); });
        QVERIFY2(said.contains(message), qPrintable(said));
        QCOMPARE(rows, 0);
    }

    void progressGrowsAndCancelStops() {
        const SweepRequest request = smallSweep();
        std::stop_source stop;
        double last = 0;
        bool grows = true;
        const Checkpoint checkpoint(stop.get_token(), [&](double done, double total) {
            grows = grows && done / total >= last - 1e-12;
            last = done / total;
        });
        Fixture fixture;
        runSweep(LayerRunner(makeCpuEngine(1)), request, checkpoint, [](const SweepRow&) {});
        QVERIFY(grows);
        QCOMPARE(last, 1.0);
        int rows = 0;
        QVERIFY_THROWS_EXCEPTION(Cancelled,
                                 runSweep(fixture.runner, request, Checkpoint(stop.get_token()), [&](const SweepRow&) {
                                     if (++rows == 3) stop.request_stop();
                                 }));
        QCOMPARE(rows, 3);
    }

    // Layer 0 is held back until layer 1 is being read: without reading ahead it would wait in vain.
    void theNextLayerIsReadWhileOneIsComputed() {
        auto watched = std::make_shared<WatchedCapture>(1);
        SweepRequest request = watchedSweep(watched);
        int rows = 0, ahead = 0;
        runSweep(LayerRunner(makeCpuEngine(1)), request, {}, [&](const SweepRow& row) {
            if (row.result->request.layer != LayerIndex(0)) return;
            ++rows;
            ahead += watched->waitForRead(LayerIndex(1)) ? 1 : 0;
        });
        QVERIFY(rows > 0);
        QCOMPARE(ahead, rows);
        for (const int layer : {0, 1})
            for (const TensorRole role :
                 {TensorRole::Keys, TensorRole::Values, TensorRole::Queries, TensorRole::KeysPreRope})
                QCOMPARE(watched->reads(LayerIndex(layer), role), 1); // handed over, not read again
    }

    // Nobody reads keys whose number alone counts, or keys a second time for those before RoPE.
    void keysAreReadAtMostOnce_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("measured");
        QTest::addColumn<int>("keys");
        QTest::addColumn<int>("keysPreRope");
        QTest::newRow("compactor") << "compactor" << false << 1 << 0;
        QTest::newRow("a formula of both") << "score:leverage + knorm" << false << 1 << 0;
        QTest::newRow("leverage") << "leverage" << false << 0 << 1;
        QTest::newRow("leverage in blocks") << "leverage,prompt_block=32" << false << 0 << 1;
        QTest::newRow("leverage, measured") << "leverage" << true << 1 << 0;
        QTest::newRow("a formula of leverage") << "score:leverage" << false << 0 << 1;
        QTest::newRow("uniform") << "uniform" << false << 0 << 0;
        QTest::newRow("uniform in blocks") << "uniform,prompt_block=32" << false << 0 << 0;
        QTest::newRow("uniform, measured") << "uniform" << true << 1 << 0;
    }

    void keysAreReadAtMostOnce() {
        QFETCH(QString, policy);
        QFETCH(bool, measured);
        QFETCH(int, keys);
        QFETCH(int, keysPreRope);
        const auto watched = std::make_shared<WatchedCapture>(1, std::vector<float>{1, 0.5, 0.25, 0.125});
        RunRequest request = runRequest(watched, policy.toStdString(), "75", "0.5");
        request.measure = measured;
        std::vector<GridPoint> points(2, GridPoint{request});
        points[1].run.layer = LayerIndex(1);
        std::vector<Selection> kept;
        runGrid(LayerRunner(makeCpuEngine(1)), points, {},
                {[&](std::size_t, const auto& result, const Checkpoint&) { kept.push_back(result->selection); }});
        for (const int layer : {0, 1}) {
            QCOMPARE(watched->reads(LayerIndex(layer), TensorRole::Keys), keys);
            QCOMPARE(watched->reads(LayerIndex(layer), TensorRole::KeysPreRope), keysPreRope);
            points[layer].run.measure = false;
            const LayerRunner alone(makeCpuEngine(1));
            if (keys > 0 && !measured) // those before RoPE as the file's reader makes them
                alone.tensor(watched, LayerIndex(layer), TensorRole::KeysPreRope, {});
            QVERIFY(alone.run(points[layer].run, {})->selection.sameLists(kept[layer]));
        }
    }

    // A layer that is left gives its memory to the next ones; it is read again for whoever asks later.
    void aSweepForgetsTheLayersThatItHasLeft() {
        const auto watched = std::make_shared<WatchedCapture>(1);
        const LayerRunner runner(makeCpuEngine(1));
        runSweep(runner, watchedSweep(watched), {}, [](const SweepRow&) {});
        for (const int layer : {0, 1}) runner.tensor(watched, LayerIndex(layer), TensorRole::Keys, {});
        QCOMPARE(watched->reads(LayerIndex(0), TensorRole::Keys), 2);
        QCOMPARE(watched->reads(LayerIndex(1), TensorRole::Keys), 1);
    }

    void aLayerThatCannotBeReadFailsInItsTurn() {
        auto watched = std::make_shared<WatchedCapture>(1);
        watched->breakLayer(LayerIndex(1));
        int rows = 0;
        const QString said = errorText([&] {
            runSweep(LayerRunner(makeCpuEngine(1)), watchedSweep(watched), {}, [&](const SweepRow&) { ++rows; });
        });
        QVERIFY2(said.contains("the disk is gone"), qPrintable(said));
        QCOMPARE(rows, 2); // both policies on layer 0
    }

    // A policy knows no file; which of several captures it could not run on is said all the same.
    void errorsNameTheCapture() {
        SweepRequest request;
        const auto whole = makeRandomCapture(1, 100, 1, 4, 2, 8), blind = makeRandomCapture(2, 80, 1, 4, 2, 8);
        blind->captureInfo.path = "folder/without_queries.h5";
        for (LayerInfo& layer : blind->captureInfo.layers) layer.queryCount = 0;
        request.captures = {whole, blind};
        request.policies = {PolicySpec::parse("snapkv@0.5")};
        const Fixture fixture;
        const std::string several = errorMessage([&] { fixture.rows(request); });
        QVERIFY2(several.ends_with("folder/without_queries.h5"), several.c_str());
        request.captures = {blind}; // the only one there is needs no name
        const std::string one = errorMessage([&] { fixture.rows(request); });
        QVERIFY2(!one.empty() && one.find("folder") == std::string::npos, one.c_str());
    }

    void cancellingStopsTheReading() {
        auto watched = std::make_shared<WatchedCapture>(1);
        watched->readsUntilStopped(LayerIndex(1));
        std::stop_source stop;
        QVERIFY_THROWS_EXCEPTION(Cancelled, runSweep(LayerRunner(makeCpuEngine(1)), watchedSweep(watched),
                                                     Checkpoint(stop.get_token()), [&](const SweepRow&) {
                                                         QVERIFY(watched->waitForRead(LayerIndex(1)));
                                                         stop.request_stop();
                                                     }));
    }
};

KVSCOPE_TEST(SweepTest)
#include "sweep_test.moc"
