// The engines' cases, with their oracles, on the kernels: what a policy asks for goes through lists and kernels
// on the emulated device and comes back right. Also refusals and continued runs;
// launch_counts_test has the stops.
#include "core/base/error.h"
#include "tests/bench/gpu_check/kernel_cases.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/host_engine.h"
#include "tests/support/kernel_engine.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <set>

using namespace kvscope;
using namespace kvscope::check;
using gpu::HostMemory;

namespace {

class PrimitivesTest : public QObject {
    Q_OBJECT

private slots:
    void casesOfTheEngines_data() {
        QTest::addColumn<int>("index");
        QTest::addColumn<int>("arithmetic");
        int index = 0;
        std::set<std::string> seen;
        for (const EngineCase& c : kernelCases()) {
            QTest::addRow("%s, exact", c.name.c_str()) << index << static_cast<int>(Arithmetic::Exact);
            if (c.fastError > 0)
                QTest::addRow("%s, fast", c.name.c_str()) << index << static_cast<int>(Arithmetic::Fast);
            ++index;
            seen.insert(c.name.substr(0, c.name.find('/')));
        }
        QVERIFY2(seen.size() >= 8, "the cases were renamed");
    }

    void casesOfTheEngines() {
        QFETCH(int, index);
        QFETCH(int, arithmetic);
        const EngineCase& c = kernelCases()[static_cast<std::size_t>(index)];
        const auto engine =
            gpu::makeKernelEngine(std::make_shared<HostMemory>(), std::shared_ptr<const Engine>(makeHostEngine()),
                                  static_cast<Arithmetic>(arithmetic));
        const std::int64_t before = gpu::emulation::launches();
        const CaseResult result = resultOf(c, *engine);
        QVERIFY2(result.good(), qPrintable(QString("%1, allowed %2").arg(result.error).arg(result.allowed)));
        QVERIFY2(gpu::emulation::launches() > before, "no kernel ran");
    }

    void refusesNaNByName() {
        std::vector<float> keys(20, 1.0F);
        keys[7] = std::nanf("");
        CentersRequest request;
        request.count = 2;
        request.first = {0};
        QVERIFY_THROWS_EXCEPTION(Error, m_engine->greedyCenters(m_engine->upload({{1, 10, 2}, keys}), request, {}));
    }

    /// A longer run from a known one, also when a head has ended early.
    void continuesKnownCentres() {
        naive::Block keys = randomBlock(4, 2, 150, 3);
        for (std::size_t i = 0; i < 150 * 3; ++i)
            keys.numbers[i] = keys.numbers[i % 15]; // five different keys in the first head
        const auto cpu = makeCpuEngine(1);
        CentersRequest request;
        request.count = 4;
        request.first = {1, 7};
        request.compareAll = true;
        request.known = m_engine->greedyCenters(uploadRows(*m_engine, keys), request, {});
        request.count = 100;
        const auto got = m_engine->greedyCenters(uploadRows(*m_engine, keys), request, {});
        request.known.clear();
        const auto expected = cpu->greedyCenters(uploadRows(*cpu, keys), request, {});
        for (std::size_t h = 0; h < 2; ++h) {
            QVERIFY(got[h].order == expected[h].order);
            QVERIFY(got[h].radius == expected[h].radius && got[h].closest == expected[h].closest);
            QVERIFY(got[h].centre == expected[h].centre);
        }
        QCOMPARE(got[0].order.size(), std::size_t{5});
    }

    /// More query heads on one KV head than a kernel takes at once.
    void fortyHeadsOnOneKey() {
        const naive::Block queries = randomBlock(5, 40, 3, 8), keys = randomBlock(6, 1, 70, 8);
        AttentionRule rule{0.3, 0, 0, std::vector<std::int32_t>(40, 0)};
        const auto cpu = makeCpuEngine(1);
        const auto sums = [&](const Engine& e) {
            const AttentionInput input{uploadRows(e, queries), uploadRows(e, keys), 67, {}, rule};
            return e.attentionColumnSums(input, {}).data;
        };
        const std::vector<float> got = sums(*m_engine), expected = sums(*cpu);
        QVERIFY(errorOf(got, {expected.begin(), expected.end()}) <= 2 * kOneRounding);
    }

private:
    std::unique_ptr<Engine> m_engine = gpu::makeKernelEngine(
        std::make_shared<HostMemory>(), std::shared_ptr<const Engine>(makeCpuEngine()), Arithmetic::Exact);
};

} // namespace

KVSCOPE_TEST(PrimitivesTest)
#include "primitives_test.moc"
