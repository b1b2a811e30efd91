// Layers that are too long for memory: what stays in its file gives the lists, scores and measures of what was read.
#include <QtTest>

#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "tests/support/random_capture.h"
#include "tests/support/rows_on_demand.h"
#include "tests/support/run_request.h"
#include "tests/support/same_bits.h"
#include "tests/support/test_program.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>

using namespace kvscope;

namespace {

/// Keeps the engine that it forwards to.
struct HeldEngine {
    std::unique_ptr<Engine> engine = makeCpuEngine(2);
    kvscope::testing::OnDemandEngine onDemand{*engine};
};

/// A row of zeros after the other, each of which waits until the test lets it go.
class HeldRows final : public RowSource {
public:
    Shape shape() const override { return {1, 64, 4}; }
    StoredType stored() const override { return StoredType::Float32; }
    void read(std::int64_t, std::int64_t, std::int64_t count, float* out) const override {
        reads = true;
        reads.notify_all();
        mayGo.wait(false);
        std::fill_n(out, count * shape()[2], 0.0F);
    }

    mutable std::atomic<bool> reads{false};
    std::atomic<bool> mayGo{false};
};

/// Many rows. The first reading cancels the work that asked for it.
class CancellingRows final : public RowSource {
public:
    explicit CancellingRows(std::stop_source& stop) : m_stop(stop) {}

    Shape shape() const override { return {1, 100'000, 4}; }
    StoredType stored() const override { return StoredType::Float32; }
    void read(std::int64_t, std::int64_t, std::int64_t count, float* out) const override {
        m_stop.request_stop();
        rows += count;
        std::fill_n(out, count * shape()[2], 1.0F);
    }

    mutable std::atomic<std::int64_t> rows{0};

private:
    std::stop_source& m_stop;
};

void sumColumns(const Engine& engine, const std::shared_ptr<const RowSource>& keys, const Checkpoint& checkpoint) {
    AttentionRule rule;
    rule.gqaGroupOf = {0};
    const Tensor query = engine.upload(HostTensor{{1, 1, 4}, {1, 0, 0, 0}});
    const auto last = static_cast<TokenIndex>(keys->shape()[1] - 1);
    engine.attentionColumnSums({query, engine.onDemand(keys), last, {}, rule}, checkpoint);
}

void attendToAll(const Engine& engine, const std::shared_ptr<const RowSource>& rows, const Checkpoint& checkpoint) {
    const Tensor query = engine.upload(HostTensor{{1, 1, 4}, {1, 0, 0, 0}}), keys = engine.onDemand(rows);
    WeightedAttentionInput input;
    input.queries = query;
    input.keys = input.values = keys;
    input.firstQuery = input.cut = static_cast<TokenIndex>(keys.size(1) - 1);
    input.rule.gqaGroupOf = {0};
    engine.weightedAttention(input, checkpoint);
}

bool areSame(const HostTensor& a, const HostTensor& b) { return a.shape == b.shape && sameBits(a.data, b.data); }

} // namespace

class OnDemandTest : public QObject {
    Q_OBJECT

private slots:
    void everyPolicyDecidesTheSame_data() {
        QTest::addColumn<QString>("spec");
        for (const Policy* policy : allPolicies())
            if (const std::string& id = policy->card().id; id != "imported")
                QTest::newRow(id.c_str()) << QString::fromStdString(id);
        for (const char* spec : {"keydiff,anchor=median", "snapkv,window=8,prompt_block=16", "keydiff,prompt_block=16"})
            QTest::newRow(spec) << QString(spec);
    }

    void everyPolicyDecidesTheSame() {
        QFETCH(QString, spec);
        const auto held = std::make_shared<HeldEngine>();
        const LayerRunner usual(makeCpuEngine(2)), onDemand(std::shared_ptr<const Engine>(held, &held->onDemand));
        const RunRequest request = runRequest(makeRandomCapture(3, 120, 1, 4, 2, 8), spec.toStdString(), "100", "0.5");
        const auto expected = usual.run(request, {}), found = onDemand.run(request, {});
        QVERIFY(found->selection.sameLists(expected->selection));
        QVERIFY(areSame(found->scores, expected->scores));
        QCOMPARE(found->fidelity->meanOutputError, expected->fidelity->meanOutputError);
    }

    /// Else the memory of two of them adds up. One that waits for its turn can be cancelled.
    void longLayersTakeTurns() {
        const std::unique_ptr<Engine> engine = makeCpuEngine(2);
        const auto first = std::make_shared<HeldRows>(), second = std::make_shared<HeldRows>();
        second->mayGo = true;
        std::thread other([&] { sumColumns(*engine, first, {}); });
        first->reads.wait(false);
        std::stop_source stop;
        stop.request_stop();
        bool wasCancelled = false;
        try {
            sumColumns(*engine, second, Checkpoint(stop.get_token()));
        } catch (const Cancelled&) {
            wasCancelled = true;
        }
        const bool hasRead = second->reads;
        first->mayGo = true;
        first->mayGo.notify_all();
        other.join();
        QVERIFY(wasCancelled && !hasRead);
        sumColumns(*engine, second, {});
        QVERIFY(second->reads);
    }

    /// Another budget waits for the end of what the last one began.
    void readingAHeadCanBeCancelled_data() {
        using Work = std::function<void(const Engine&, const std::shared_ptr<const RowSource>&, const Checkpoint&)>;
        QTest::addColumn<Work>("work");
        QTest::newRow("attention sums") << Work(sumColumns);
        QTest::newRow("weighted attention") << Work(attendToAll);
        QTest::newRow("axes") << Work([](const Engine& engine, const auto& rows, const Checkpoint& checkpoint) {
            engine.principalAxes(engine.onDemand(rows), 0, 2, checkpoint);
        });
        QTest::newRow("median") << Work([](const Engine& engine, const auto& rows, const Checkpoint& checkpoint) {
            engine.anchor(engine.onDemand(rows), AnchorKind::Median, checkpoint);
        });
    }

    void readingAHeadCanBeCancelled() {
        using Work = std::function<void(const Engine&, const std::shared_ptr<const RowSource>&, const Checkpoint&)>;
        QFETCH(Work, work);
        const std::unique_ptr<Engine> engine = makeCpuEngine(1);
        std::stop_source stop;
        const auto rows = std::make_shared<CancellingRows>(stop);
        QVERIFY_THROWS_EXCEPTION(Cancelled, work(*engine, rows, Checkpoint(stop.get_token())));
        QVERIFY2(rows->rows > 0 && rows->rows < 20'000, qPrintable(QString::number(rows->rows)));
    }
};

KVSCOPE_TEST(OnDemandTest)
#include "on_demand_test.moc"
