// Key norms, anchors and similarities of the kernels against the CPU engine: the same bits, for every element type, for
// sizes that leave tails in every loop, and in whatever order threads run.
#include "core/engine/engine.h"
#include "gpu/kernels/key_similarity.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/half_float.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

struct Sizes {
    std::int64_t heads, rows, width, gap;
};
const std::vector<Sizes> kSizes = {{1, 1, 1, 0},      {2, 63, 16, 0},   {3, 65, 15, 7},   {2, 130, 128, 0},
                                   {1, 1024, 24, 0},  {2, 1025, 9, 5},  {1, 2100, 33, 0}, {1, 70, 300, 0},
                                   {1, 90, 576, 0},   {1, 20, 1500, 3}, {2, 200, 64, 8},  {2, 70, 128, 3},
                                   {1, 1100, 128, 0}, {1, 5, 4000, 0},  {1, 18500, 3, 0}};
const std::vector<ElementType> kTypes = {ElementType::Float32, ElementType::BFloat16, ElementType::Float16};

class KeySimilarityTest : public QObject {
    Q_OBJECT

private slots:
    void halvesWidenExactly() {
        for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
            const auto half = static_cast<std::uint16_t>(bits);
            const float expected = kvscope::testing::halfOf(half), got = widened(Float16{half});
            QVERIFY2(expected == got ? std::signbit(expected) == std::signbit(got) : expected != expected && got != got,
                     qPrintable(QString::number(bits, 16)));
        }
        QCOMPARE(widened(BFloat16{0x3f80}), 1.0F);
        QCOMPARE(widened(BFloat16{0xc040}), -3.0F);
    }

    void normsHaveTheCpuEnginesBits() {
        eachCase([&](const TestRows& rows, const Tensor& keys, const Sizes& size) {
            const std::vector<float> expected = m_engine->rowNorms(keys, {}).data;
            std::vector<float> got(static_cast<std::size_t>(size.heads * size.rows), -1.0F);
            rowNorms(rows.device(), got.data(), nullptr);
            QVERIFY(sameBits(got, expected));
        });
    }

    void anchorsHaveTheCpuEnginesBits() {
        eachCase([&](const TestRows& rows, const Tensor& keys, const Sizes&) {
            for (const bool normalised : {false, true})
                QVERIFY(sameBits(anchorOf(rows, normalised), m_engine->anchor(keys, kindOf(normalised), {}).data));
        });
    }

    void similaritiesHaveTheCpuEnginesBits() {
        eachCase([&](const TestRows& rows, const Tensor& keys, const Sizes& size) {
            const HostTensor anchor = m_engine->anchor(keys, AnchorKind::NormalisedMean, {});
            const std::vector<float> anchors = anchor.data;
            for (const auto& [metric, theirs] : {std::pair{Metric::Cosine, SimilarityMetric::Cosine},
                                                 {Metric::Dot, SimilarityMetric::Dot},
                                                 {Metric::Euclidean, SimilarityMetric::Euclidean}}) {
                const auto expected = m_engine->similarity(keys, anchor, theirs, {}).data;
                std::vector<float> got(static_cast<std::size_t>(size.heads * size.rows), -7.0F);
                similarity(rows.device(), anchors.data(), metric, got.data(), nullptr);
                QVERIFY(sameBits(got, expected));
            }
        });
    }

    /// Zero rows have no direction, NaN stays visible, tiny rows keep theirs, an empty layer starts nothing.
    void specialRows() {
        TestRows rows(3, ElementType::Float32, 1, 5, 3);
        for (int c = 0; c < 3; ++c) {
            rows.set(0, 1, c, 0);
            rows.set(0, 2, c, 1e-30F);
        }
        std::vector<float> got(5);
        const std::vector<float> anchor = {1, 1, 1};
        similarity(rows.device(), anchor.data(), Metric::Cosine, got.data(), nullptr);
        QCOMPARE(got[1], 0.0F);
        QCOMPARE(got[2], 1.0F);
        rows.set(0, 3, 1, std::numeric_limits<float>::quiet_NaN());
        similarity(rows.device(), anchor.data(), Metric::Cosine, got.data(), nullptr);
        QVERIFY(std::isnan(got[3]) && !std::isnan(got[4]));
        const std::int64_t before = emulation::launches();
        rowNorms(packedRows(nullptr, ElementType::Float32, 4, 0, 8), nullptr, nullptr);
        QCOMPARE(emulation::launches(), before);
    }

private:
    static AnchorKind kindOf(bool normalised) { return normalised ? AnchorKind::NormalisedMean : AnchorKind::Mean; }

    static std::vector<float> anchorOf(const TestRows& rows, bool normalised) {
        const DeviceRows device = rows.device();
        std::vector<double> scratch(anchorScratchBytes(device) / sizeof(double));
        std::vector<float> anchor(static_cast<std::size_t>(device.heads * device.width), -1.0F);
        meanAnchor(device, normalised, scratch.data(), anchor.data(), nullptr);
        return anchor;
    }

    template <class Work> void eachCase(const Work& work) {
        unsigned seed = 11;
        for (const Sizes& size : kSizes)
            for (const ElementType type : kTypes) {
                const TestRows rows(++seed, type, size.heads, size.rows, size.width, size.gap, 1, 0.2);
                const Tensor keys = m_engine->upload({{size.heads, size.rows, size.width}, rows.wide()});
                inEveryOrder([&] { work(rows, keys, size); });
                if (QTest::currentTestFailed()) {
                    qInfo("heads %d rows %d width %d type %d seed %u", int(size.heads), int(size.rows), int(size.width),
                          int(type), seed);
                    return;
                }
            }
    }

    std::unique_ptr<Engine> m_engine = makeCpuEngine(2);
};

} // namespace

KVSCOPE_TEST(KeySimilarityTest)
#include "key_similarity_test.moc"
