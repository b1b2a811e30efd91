// All engine cases on every build of the kernels this processor can run and on one, two and three threads: right by
// the oracles, and the same bits everywhere (the index contract).
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/rows_on_demand.h"
#include "tests/support/same_bits.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <set>
#include <string>

using namespace kvscope;
using namespace kvscope::check;
using kvscope::testing::availableSets;

namespace {

/// Made once: their tolerances take oracles too.
const std::vector<EngineCase>& casesWithOracle() {
    static const std::vector<EngineCase> cases = [] {
        std::vector<EngineCase> all = allCases();
        std::erase_if(all, [](const EngineCase& c) { return !c.naive; });
        return all;
    }();
    return cases;
}

} // namespace

class CasesTest : public QObject {
    Q_OBJECT

private slots:
    void everyCaseIsRightAndTheSameEverywhere_data() {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const EngineCase& c : casesWithOracle()) QTest::newRow(c.name.c_str()) << index++;
    }

    void everyCaseIsRightAndTheSameEverywhere() {
        QFETCH(int, index);
        const EngineCase& c = casesWithOracle()[static_cast<std::size_t>(index)];
        const auto reference = makeCpuEngine(1, "v2");
        const std::vector<float> expected = c.prepare(*reference)().numbers;
        QVERIFY2(errorOf(expected, c.naive()) <= c.allowedError, "v2 on one thread differs from the oracle");
        const bool isNarrow = c.name.ends_with("-bf16") || c.name.ends_with("-f16"); // the CPU engine widens these
        for (const std::string& set : isNarrow ? std::vector{availableSets().back()} : availableSets())
            for (int threads : isNarrow ? std::vector{3} : std::vector{1, 2, 3}) {
                const auto engine = makeCpuEngine(threads, set);
                QVERIFY2(sameBits(c.prepare(*engine)().numbers, expected),
                         qPrintable(QString("%1 on %2 threads differs").arg(set.c_str()).arg(threads)));
            }
        if (isNarrow) return;
        const auto engine = makeCpuEngine(2);
        QVERIFY2(sameBits(c.prepare(testing::OnDemandEngine(*engine))().numbers, expected), "rows on demand differ");
    }

    /// What a policy of linear work needs of keys that stay in their file: a block of rows at a time.
    void blocksOfRowsAreReadOnDemand() {
        const naive::Block numbers = randomBlock(63, 2, 5000, 8);
        const auto engine = makeCpuEngine(2);
        const auto rows = std::make_shared<testing::MemoryRows>(
            HostTensor{Shape{2, 5000, 8}, {numbers.numbers.begin(), numbers.numbers.end()}});
        const Tensor whole = uploadRows(*engine, numbers), keys = engine->rows(engine->onDemand(rows), 0, 4900);
        const auto same = [&](const auto& compute) {
            QVERIFY(sameBits(compute(keys), compute(engine->rows(whole, 0, 4900))));
            QVERIFY2(rows->mostRows <= 1024, qPrintable(QString::number(rows->mostRows)));
        };
        same([&](const Tensor& k) { return engine->rowNorms(k, {}).data; });
        same([&](const Tensor& k) { return engine->anchor(k, AnchorKind::NormalisedMean, {}).data; });
        same([&](const Tensor& k) {
            const HostTensor anchor{Shape{2, 8}, std::vector<float>(16, 1)};
            return engine->similarity(k, anchor, SimilarityMetric::Euclidean, {}).data;
        });
        same([&](const Tensor& k) {
            const std::vector<double> radii(2, 3);
            const auto clusters = engine->streamClusters(k, radii, 4000, {});
            return std::vector<float>(clusters[1].cluster.begin(), clusters[1].cluster.end());
        });
        same([&](const Tensor& k) {
            return engine->download(engine->gatherRows(k, {{4899, 3, 4, 2000}, {0, 0, 1, 4000}})).data;
        });
    }

    /// Also those that are only timed: 16-bit rows have code of their own on a device.
    void everyCaseHasItsRowsInEveryType() {
        std::set<std::string> names;
        for (const EngineCase& c : allCases()) QVERIFY2(names.insert(c.name).second, c.name.c_str());
        for (const std::string& name : names)
            if (!name.ends_with("-bf16") && !name.ends_with("-f16"))
                QVERIFY2(names.contains(name + "-bf16") && names.contains(name + "-f16"), name.c_str());
        const naive::Block block = randomBlock(1, 2, 9, 5);
        const auto cpu = makeCpuEngine(1);
        for (const auto& [stored, suffix] : kRowTypes) {
            const HostTensor rows = cpu->download(uploadRows(*cpu, storedAs(stored, block)));
            QVERIFY(rows.stored == stored);
            QVERIFY((rows.data == block.numbers) == (stored == StoredType::Float32));
            QCOMPARE(storedAs(stored, {2, 9, 5, rows.data}).numbers, rows.data);
        }
    }

    /// Several blocks, panels and parts, so that the order of partial sums is put to the test.
    void largeInputsGiveTheSameBitsEverywhere() {
        const naive::Block keys = randomBlock(61, 3, 9001, 40, 1, 0.2), queries = randomBlock(62, 6, 70, 40);
        AttentionRule rule{0.2, 0, 0, {0, 1, 2, 2, 1, 0}};
        std::vector<std::vector<float>> first;
        for (const std::string& set : availableSets())
            for (int threads : {1, 2, 3}) {
                const auto e = makeCpuEngine(threads, set);
                const Tensor k = uploadRows(*e, keys), q = uploadRows(*e, queries);
                const HostTensor anchor = e->anchor(k, AnchorKind::NormalisedMean, {});
                const std::vector<std::vector<float>> now = {
                    anchor.data, e->similarity(k, anchor, SimilarityMetric::Cosine, {}).data,
                    e->attentionColumnSums({q, k, 8931, {}, rule}, {}).data,
                    e->weightedAttention({q, k, k, 8931, 8931, rule, {}}, {}).output.data,
                    e->principalAxes(k, 2, 4, {}).axes.data};
                if (first.empty()) first = now;
                for (std::size_t i = 0; i < now.size(); ++i)
                    QVERIFY2(sameBits(now[i], first[i]),
                             qPrintable(QString("result %1, %2, %3 threads").arg(i).arg(set.c_str()).arg(threads)));
            }
    }

    void theErrorMeasureSeesWhatItShould() {
        QCOMPARE(errorOf({1, 2}, {1, 2}), 0.0);
        QVERIFY(errorOf({1, 2}, {1, 2.001}) > 1e-4);
        QVERIFY(errorOf({1}, {1, 2}) > 1e9);
        QVERIFY(errorOf({std::nanf(""), 2}, {1, 2}) > 1e9);
        QCOMPARE(errorOf({-std::numeric_limits<float>::infinity()}, {-std::numeric_limits<double>::infinity()}), 0.0);
    }
};

KVSCOPE_TEST(CasesTest)
#include "cases_test.moc"
