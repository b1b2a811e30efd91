// Layers that are too long for memory: what stays in its file gives the lists, scores and measures of what was read.
#include <QtTest>

#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "tests/support/random_capture.h"
#include "tests/support/rows_on_demand.h"
#include "tests/support/test_program.h"

#include <cstring>

using namespace kvscope;

namespace {

/// Keeps the engine that it forwards to.
struct HeldEngine {
    std::unique_ptr<Engine> engine = makeCpuEngine(2);
    kvscope::testing::OnDemandEngine onDemand{*engine};
};

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
};

KVSCOPE_TEST(OnDemandTest)
#include "on_demand_test.moc"
