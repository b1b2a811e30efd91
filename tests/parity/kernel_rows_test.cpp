// What the LibTorch engine hands to kernels: rows that were stored in 16 bits lie on the device in 16 bits, and
// every list stays that of the CPU engine. The kernels run on the emulated device.
#include "core/engine/engine.h"
#include "core/engine/score_arithmetic.h"
#include "gpu/engine_factory.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

namespace {

enum class Digits { Float, BFloat16, Half };

/// Multiples of a power of two that have at most 8 (bfloat16) or 11 (half) bits, the latter with some subnormal halves;
/// or any floats.
HostTensor rowsWith(Digits digits, std::int64_t heads, std::int64_t n, std::int64_t d, float phase = 0) {
    HostTensor rows{Shape{heads, n, d},
                    {},
                    digits == Digits::BFloat16 ? StoredType::Bfloat16
                    : digits == Digits::Half   ? StoredType::Float16
                                               : StoredType::Float32};
    for (std::int64_t i = 0; i < heads * n * d; ++i) {
        const float x = std::sin(static_cast<float>(i) * 0.731F + phase);
        const float eight = std::round(x * 200) / 64,
                    eleven = std::round(x * 2000) * (i % 97 == 0 ? 0x1p-24F : 0x1p-9F);
        rows.data.push_back(digits == Digits::BFloat16 ? eight : digits == Digits::Half ? eleven : 3 * x);
    }
    return rows;
}

} // namespace

class KernelRowsTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (qEnvironmentVariableIsEmpty("KVSCOPE_ENGINE_MODULE"))
            QSKIP("the engine with emulated kernels is not part of this build");
        m_engine = makeEngine({"torch", 1});
        m_fast = makeEngine({"torch", 1, Arithmetic::Fast});
        QVERIFY(m_engine->state().device.find("emulated kernels") != std::string::npos);
    }

    void sixteenBitsTakeHalfTheMemory_data() { digits(); }
    void sixteenBitsTakeHalfTheMemory() {
        QFETCH(int, digits);
        const HostTensor host = rowsWith(static_cast<Digits>(digits), 2, 50, 16);
        const Tensor rows = m_engine->upload(host);
        m_engine->rowNorms(rows, {});
        const std::size_t perNumber = static_cast<Digits>(digits) == Digits::Float ? 4 : 2;
        QCOMPARE(m_engine->state().residentBytes, perNumber * host.data.size());
        QVERIFY(m_engine->download(m_engine->rows(rows, 3, 9)).data ==
                m_cpu->download(m_cpu->rows(m_cpu->upload(host), 3, 9)).data);
    }

    void listsAndScoresAreTheCpuEngines_data() { digits(); }
    void listsAndScoresAreTheCpuEngines() {
        QFETCH(int, digits);
        const auto kind = static_cast<Digits>(digits);
        const auto all = [&](const Engine& e) {
            const Tensor keys = e.upload(rowsWith(kind, 2, 130, 24)), queries = e.upload(rowsWith(kind, 4, 130, 24, 1));
            const Tensor part = e.rows(keys, 5, 125);
            const HostTensor anchor = e.anchor(part, AnchorKind::NormalisedMean, {});
            std::vector<float> numbers = e.similarity(part, anchor, SimilarityMetric::Cosine, {}).data;
            const auto add = [&](const HostTensor& more) {
                numbers.insert(numbers.end(), more.data.begin(), more.data.end());
            };
            add(e.rowNorms(e.gatherRows(keys, {{1, 7, 60}, {2, 3, 4}}), {}));
            add(e.attentionColumnSums({queries, keys, 0, {}, {0.2, 0, 0, {0, 0, 1, 1}}}, {}));
            add(e.pairwiseSums(part, SimilarityMetric::Dot, {})); // has no kernel: floats again
            for (const TopKHead& head : topK(e.rowNorms(keys, {}), std::vector<std::int64_t>{20, 30}, 4, 8))
                numbers.insert(numbers.end(), head.kept.begin(), head.kept.end());
            return numbers;
        };
        const std::vector<float> got = all(*m_engine), expected = all(*m_cpu);
        QCOMPARE(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
            QVERIFY2(std::abs(got[i] - expected[i]) <= 1e-6F * std::abs(expected[i]), qPrintable(QString::number(i)));
    }

    /// Tensor cores take two operands of one type; a capture may hold queries in more digits than keys.
    void queriesAndKeysOfDifferentTypes() {
        for (const auto& [q, k] : {std::pair{Digits::Float, Digits::BFloat16},
                                   {Digits::Half, Digits::BFloat16},
                                   {Digits::BFloat16, Digits::BFloat16}}) {
            const auto sums = [&, q = q, k = k](const Engine& e) {
                const Tensor keys = e.upload(rowsWith(k, 1, 70, 16)), queries = e.upload(rowsWith(q, 2, 9, 16, 1));
                return e.attentionColumnSums({queries, keys, 61, {}, {0.2, 0, 0, {0, 0}}}, {}).data;
            };
            const std::vector<float> got = sums(*m_fast), expected = sums(*m_cpu);
            for (std::size_t i = 0; i < got.size(); ++i)
                QVERIFY(std::abs(got[i] - expected[i]) <= 1e-4F * std::abs(expected[i]) + 1e-6F);
        }
    }

    /// Every case has a stored type of its rows in its name; nothing but these may run on the CPU engine.
    void onlyWhatHasNoKernelRunsOnTheCpu() {
        const auto strict = makeEngine({"torch", 1, Arithmetic::Exact, 0, true});
        int compared = 0;
        for (const check::EngineCase& c : check::allCases()) {
            if (!c.naive) continue;
            const bool hasNoKernel = c.name.starts_with("streamClusters/") || c.name.starts_with("anchor/median") ||
                                     c.name.find("/sinks") != std::string::npos ||
                                     c.name.find("/fifty-heads") != std::string::npos;
            const CallCounts before = strict->state().delegated;
            c.prepare (*strict)();
            QVERIFY2(hasNoKernel || strict->state().delegated == before, c.name.c_str());
            ++compared;
        }
        QVERIFY(compared > 500 && strict->state().fallbacks.empty());
    }

private:
    static void digits() {
        QTest::addColumn<int>("digits");
        QTest::newRow("float") << static_cast<int>(Digits::Float);
        QTest::newRow("bfloat16") << static_cast<int>(Digits::BFloat16);
        QTest::newRow("half") << static_cast<int>(Digits::Half);
    }

    std::unique_ptr<Engine> m_engine, m_fast, m_cpu = makeCpuEngine(1);
};

KVSCOPE_CORE_TEST(KernelRowsTest)
#include "kernel_rows_test.moc"
