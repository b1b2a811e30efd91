// Layers that are too long for memory: what stays in its file gives the lists, scores and measures of what was read.
#include <QtTest>

#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "tests/support/random_capture.h"
#include "tests/support/rows_on_demand.h"
#include "tests/support/test_program.h"

#include <algorithm>
#include <atomic>
#include <cstring>
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

void sumColumns(const Engine& engine, const std::shared_ptr<const RowSource>& keys, const Checkpoint& checkpoint) {
    AttentionRule rule;
    rule.gqaGroupOf = {0};
    const Tensor query = engine.upload(HostTensor{{1, 1, 4}, {1, 0, 0, 0}});
    engine.attentionColumnSums({query, engine.onDemand(keys), TokenIndex{63}, {}, rule}, checkpoint);
}

bool sameBits(const HostTensor& a, const HostTensor& b) {
    const std::size_t bytes = a.data.size() * sizeof(float);
    return a.shape == b.shape && (bytes == 0 || std::memcmp(a.data.data(), b.data.data(), bytes) == 0);
}

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
        RunRequest request;
        request.capture = makeRandomCapture(3, 120, 1, 4, 2, 8);
        request.policy = PolicySpec::parse(spec.toStdString());
        request.budget = Budget::parse("0.5");
        request.cut = Cut::resolve("100", *request.capture);
        const auto expected = usual.run(request, {}), found = onDemand.run(request, {});
        QVERIFY(found->selection.sameLists(expected->selection));
        QVERIFY(sameBits(found->scores, expected->scores));
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
};

KVSCOPE_TEST(OnDemandTest)
#include "on_demand_test.moc"
