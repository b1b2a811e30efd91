// Rows that need the lengths of prompts alone (KeyDiff Tables 7, 8, Fig. 18), against counting by hand.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/studies/reproduction.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <random>

using namespace kvscope;

namespace {

using Captures = std::vector<std::shared_ptr<const CaptureReader>>;

/// Lengths are all that these rows read.
std::shared_ptr<MemoryCapture> ofLength(std::int64_t tokens) {
    const auto capture = makeRandomCapture(1, 8, 1, 1, 1, 2);
    capture->captureInfo.numTokens = tokens;
    capture->tokenTable.segments.clear();
    return capture;
}

ReproductionResult made(const char* id, const std::vector<std::int64_t>& lengths) {
    static const LayerRunner runner(std::shared_ptr<const Engine>(makeCpuEngine(1)));
    Captures captures;
    for (const std::int64_t length : lengths) captures.push_back(ofLength(length));
    return reproduce(runner, reproductionById(id), captures, {}, {});
}

std::vector<double> meansOf(const ReproducedSeries& series) {
    std::vector<double> means;
    for (const ReproducedPoint& point : series.points) means.push_back(point.summary.mean);
    return means;
}

} // namespace

class ReproductionLengthsTest : public QObject {
    Q_OBJECT

private slots:
    // Prompts of 1K, 4K and 16K: min(1, N / L) is 1, N / 4K and N / 16K.
    void sharesByHand() {
        const ReproductionResult result = made("keydiff-table8", {16384, 1024, 4096});
        QCOMPARE(result.series.size(), 2U);
        const std::vector<double> wanted = {(1 + 0.5 + 0.125) / 3, (1 + 1 + 0.25) / 3, (1 + 1 + 0.375) / 3,
                                            (1 + 1 + 0.5) / 3};
        QCOMPARE(meansOf(result.series[0]), wanted);
        QCOMPARE(result.series[0].points[3].x, 8192.0);
        QCOMPARE(result.series[0].points[0].summary.count, 3);
        // 1790 of 4120 are 43 %: of three prompts two must fit, so 8K stands for 4,096 tokens here and 2K for 1,024.
        const std::vector<double> scaled = {(1 + 0.25 + 0.0625) / 3, (1 + 0.5 + 0.125) / 3, (1 + 0.75 + 0.1875) / 3,
                                            (1 + 1 + 0.25) / 3};
        QCOMPARE(meansOf(result.series[1]), scaled);
        QCOMPARE(result.series[1].points[0].xText, std::string("2K as 1024 tokens"));
    }

    // The paper's own rule, written down again: N / L, replaced by 1 whenever N >= L.
    void sharesOfManyPrompts() {
        std::mt19937 random(7);
        std::vector<std::int64_t> lengths;
        for (int i = 0; i < 200; ++i) lengths.push_back(1 + static_cast<std::int64_t>(random() % 20000));
        const ReproductionResult result = made("keydiff-table8", lengths);
        std::vector<std::int64_t> sorted = lengths;
        std::sort(sorted.begin(), sorted.end());
        std::size_t fitting = 0; // the smallest number of prompts whose share reaches that of the paper
        while (static_cast<double>(fitting) / 200 < 1790.0 / 4120) ++fitting;
        for (std::size_t n = 0; n < 4; ++n) {
            const double paper = 2048.0 * static_cast<double>(n + 1),
                         here = static_cast<double>(sorted[fitting - 1]) * paper / 8192;
            double same = 0, scaled = 0;
            for (const std::int64_t length : lengths) {
                const auto l = static_cast<double>(length);
                same += (paper >= l ? 1 : paper / l) / 200;
                scaled += (here >= l ? 1 : here / l) / 200;
            }
            QVERIFY(std::abs(result.series[0].points[n].summary.mean - same) < 1e-12);
            QVERIFY(std::abs(result.series[1].points[n].summary.mean - scaled) < 1e-12);
        }
    }

    // One prompt has no distribution of lengths: nothing is scaled, and there is no interval.
    void onePromptIsNotScaled() {
        const ReproductionResult result = made("keydiff-table8", {3000});
        QCOMPARE(result.series.size(), 1U);
        QCOMPARE(meansOf(result.series[0]), (std::vector<double>{2048.0 / 3000, 1, 1, 1}));
        QVERIFY(result.series[0].points[0].over.empty());
        QVERIFY(result.notes[1].starts_with("not scaled: one prompt"));
        QCOMPARE(made("keydiff-fig18", {3000}).series.size(), 1U);
    }

    // A prompt ends where the answer begins.
    void answersAreNotCounted() {
        const auto capture = ofLength(1000);
        capture->tokenTable.segments = {
            {0, 700, SegmentKind::Context}, {800, 1000, SegmentKind::Answer}, {700, 800, SegmentKind::Question}};
        const LayerRunner runner(std::shared_ptr<const Engine>(makeCpuEngine(1)));
        const ReproductionResult result =
            reproduce(runner, reproductionById("keydiff-table8"), {capture, ofLength(900)}, {}, {});
        QCOMPARE(result.series[1].points[3].xText, std::string("8K as 800 tokens"));
    }

    // Every prompt lies in one bin, and a length that is an edge in the lower one.
    void binsByHand() {
        const ReproductionResult result = made("keydiff-fig18", {1, 2048, 2049, 4096, 6145, 8192, 8193, 100000});
        QCOMPARE(meansOf(result.series[0]), (std::vector<double>{2, 2, 0, 2, 2}));
        QCOMPARE(result.series[0].points[1].xText, std::string("2049 to 4096"));
        QCOMPARE(result.series[0].points[4].xText, std::string("> 8192"));
        // 43 % of eight are four: the fourth shortest has 4,096 tokens, so the edges are 1,024 to 4,096.
        QCOMPARE(meansOf(result.series[1]), (std::vector<double>{1, 1, 1, 1, 4}));
    }

    void nothingToMeasureIsAnError() { QVERIFY_THROWS_EXCEPTION(Error, made("keydiff-table8", {})); }

    void theFileSaysHowSizesWereScaled() {
        const QString csv = QString::fromStdString(
            reproductionCsv(reproductionById("keydiff-table8"), made("keydiff-table8", {16384, 1024, 4096})));
        QVERIFY2(
            csv.contains("# scaled: 8K of the paper is 4096 tokens here, which hold 2 of 3 prompts whole (67 %; 8K "
                         "of LongBench 1790 of 4120, 43 %, KeyDiff Table 7)"),
            qPrintable(csv));
        QVERIFY(csv.contains("\nscaled cache sizes,exact,kept_share,2048,2K as 1024 tokens,0.4375,"));
        QVERIFY(csv.contains(",3,captures,\n"));
        QVERIFY(csv.contains("a prompt of 16384 tokens") && csv.contains("0.31, 0.53, 0.67, 0.77"));
    }
};

KVSCOPE_TEST(ReproductionLengthsTest)
#include "reproduction_lengths_test.moc"
