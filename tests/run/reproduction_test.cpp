// The table of reproductions, and points that are gathered from a sweep: against the runs they are made of.
#include "core/base/error.h"
#include "core/studies/reproduction.h"
#include "core/studies/reproduction_series.h"
#include "tests/run/reproduction_fixture.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <set>

using namespace kvscope;
using namespace kvscope::reproduction_fixture;

class ReproductionTest : public QObject {
    Q_OBJECT

private slots:
    void everyRowIsWholeAndKnowsItsMeasures() {
        std::set<std::string> ids;
        for (const Reproduction& row : allReproductions()) {
            QVERIFY2(ids.insert(row.id).second && !row.item.empty() && !row.paperData.empty(), row.id.c_str());
            QVERIFY2(row.elsewhere.empty() != row.measures.empty(), row.id.c_str());
            for (const std::string& measure : row.measures)
                QVERIFY2(!reproductionMeasureLabel(measure).empty(), row.id.c_str());
            const bool compares = std::count(row.measures.begin(), row.measures.end(), "overlap") > 0;
            QCOMPARE(compares, !row.reference.empty());
            const auto& values = row.varied.values;
            QVERIFY2(!compares || std::count(values.begin(), values.end(), row.reference) == 1, row.id.c_str());
        }
        QVERIFY_THROWS_EXCEPTION(Error, reproductionMeasureLabel("overlop"));
        QVERIFY_THROWS_EXCEPTION(Error, reproductionById("keydiff-fig99"));
    }

    void everyRowThatRunsHereRuns() {
        const LayerRunner runner = makeRunner();
        const auto capture = captures(1, kEnoughForEveryRow);
        int elsewhere = 0;
        for (const Reproduction& row : allReproductions()) {
            if (!row.elsewhere.empty()) {
                ++elsewhere;
                QVERIFY_THROWS_EXCEPTION(Error, reproduce(runner, row, capture, {}, {}));
                continue;
            }
            Reproduction small = row;
            small.cut = "default";
            small.seeds = std::min(small.seeds, 2);
            const ReproductionResult result = reproduce(runner, small, capture, {0}, {});
            QVERIFY2(!result.series.empty(), row.id.c_str());
            for (const ReproducedSeries& series : result.series) {
                QVERIFY2(!series.points.empty(), (row.id + " " + series.label).c_str());
                for (const ReproducedPoint& point : series.points)
                    QVERIFY2(point.summary.count > 0 && std::isfinite(point.summary.mean),
                             (row.id + " " + series.label).c_str());
            }
        }
        QVERIFY2(2 * elsewhere < static_cast<int>(allReproductions().size()), "most rows are made here");
    }

    // Several captures: a sample is a capture's mean over its layers.
    void intervalOverCaptures() {
        const LayerRunner runner = makeRunner();
        const auto all = captures(3);
        const ReproductionResult result = reproduce(runner, reproductionById("keydiff-table15"), all, {}, {});
        QCOMPARE(result.series.size(), 2U);
        const std::vector<std::string> metrics = {"cosine", "dot", "euclidean"};
        for (std::size_t m = 0; m < 3; ++m) {
            std::vector<double> means, overlaps;
            for (const auto& capture : all) {
                const std::string spec = "keydiff,metric=" + metrics[m] + "@0.25";
                means.push_back((errorOf(runner, capture, 0, spec) + errorOf(runner, capture, 1, spec)) / 2);
                overlaps.push_back((overlapOf(runner, capture, 0, spec, "keydiff@0.25") +
                                    overlapOf(runner, capture, 1, spec, "keydiff@0.25")) /
                                   2);
            }
            QVERIFY(isPoint(seriesOf(result, "output_error").points[m], static_cast<double>(m), metrics[m],
                            summaryOf(means)));
            QVERIFY(isPoint(seriesOf(result, "overlap").points[m], static_cast<double>(m), metrics[m],
                            summaryOf(overlaps)));
        }
        QCOMPARE(seriesOf(result, "overlap").points[0].summary.mean, 1.0); // with itself
        QVERIFY(seriesOf(result, "overlap").points[2].summary.mean < 0.9);
    }

    // Theorems 3.1 and 3.4 where they bite: keys so small that every e^logit is near 1. Balancing then errs in inverse
    // proportion to its memory, sampling with the inverse root of it.
    void balancingNeedsLessMemoryThanSamplingWhereKeysAreSmall() {
        const LayerRunner runner = makeRunner();
        const auto small = makeRandomCapture(31, 1400, 1, 2, 1, 4);
        for (auto& [place, tensor] : small->tensors)
            if (place.second == TensorRole::Keys)
                for (float& x : tensor.data) x *= 0.01F;
        Reproduction row = reproductionById("balancekv-memory");
        row.policies = {row.policies[0], row.policies[3]};
        const ReproductionResult result = reproduce(runner, row, {small}, {}, {});
        QCOMPARE(result.series.size(), 2U);
        const PowerLaw &balancing = *result.series[0].law, &sampling = *result.series[1].law;
        QCOMPARE(result.series[0].policyId, std::string("balancekv_stream"));
        const std::string found =
            "powers " + std::to_string(balancing.exponent) + " and " + std::to_string(sampling.exponent);
        QVERIFY2(balancing.exponent < -0.8 && balancing.exponent > -1.4, found.c_str());
        QVERIFY2(sampling.exponent < -0.4 && sampling.exponent > -0.7, found.c_str());
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.law->points, 7);
            std::vector<double> x, y;
            for (const ReproducedPoint& point : series.points) {
                x.push_back(point.x);
                y.push_back(point.summary.mean);
            }
            QCOMPARE(series.law->exponent, fitPowerLaw(x, y).exponent);
        }
        const auto told = std::count_if(result.notes.begin(), result.notes.end(),
                                        [](const std::string& note) { return note.starts_with("fit: "); });
        QCOMPARE(told, 2);
    }

    // Memory counts what is stored, keys and values, as exact tokens: an eviction of k tokens stores k.
    void memoryIsWhatIsStored() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-memory");
        row.policies = {"uniform"};
        row.budgets = {"0.1", "0.2"};
        row.varied = {};
        const ReproductionResult result = reproduce(runner, row, captures(1), {0}, {});
        QCOMPARE(result.series[0].points[0].x, 6.0); // of the 60 tokens before the cut
        QCOMPARE(result.series[0].points[1].x, 12.0);
        QVERIFY(std::isnan(result.series[0].law->halfInterval)); // two points leave no residual
    }

    // B.1: 256 sinks stay, and of the other 44 tokens before the cut a half, a quarter ... by BalanceKV or by a
    // weighted draw.
    void sharesBesideExactTokens() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-fig1");
        row.cut = "default";
        row.seeds = 1;
        const auto all = captures(1, kEnoughForEveryRow);
        const ReproductionResult result = reproduce(runner, row, all, {1}, {});
        QCOMPARE(result.series.size(), 2U);
        const std::vector<std::pair<std::string, int>> shares = {
            {"0.0625", 2}, {"0.125", 5}, {"0.25", 11}, {"0.5", 22}};
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 4U);
            const std::string policy = series.policyId == "balancekv" ? "balancekv,sink=256,recent=0@"
                                                                      : "uniform,reweight=true,protect_first=256@";
            for (std::size_t i = 0; i < 4; ++i) {
                const auto& [text, tokens] = shares[i];
                QCOMPARE(series.points[i].xText, text);
                QVERIFY(near(series.points[i].x, tokens / 44.0));
                QVERIFY(near(series.points[i].summary.mean,
                             errorOf(runner, all[0], 1, policy + std::to_string(256 + tokens) + "t")));
            }
        }
    }

    // Of 12 other tokens a sixteenth and an eighth both are one: two points, each with every capture once.
    void sharesThatRoundToTheSameTokensStayTwoPoints() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-fig1");
        row.cut = "268";
        row.seeds = 1;
        row.over = {};
        row.budgets = {"0.0625", "0.125", "0.5"};
        std::vector<std::shared_ptr<const CaptureReader>> all = captures(1, 357), longer = captures(1, 500);
        const ReproductionResult alone = reproduce(runner, row, all, {0}, {});
        for (const ReproducedSeries& series : alone.series) {
            QCOMPARE(series.points.size(), 3U);
            for (std::size_t i = 0; i < 2; ++i) QVERIFY(near(series.points[i].x, 1.0 / 12));
            QVERIFY(near(series.points[0].summary.mean, series.points[1].summary.mean));
            QVERIFY(near(series.points[2].x, 6.0 / 12));
        }
        QVERIFY(std::ranges::any_of(alone.notes, [](const std::string& note) {
            return note.find("0.0625 and 0.125 are the same 257 tokens") != std::string::npos;
        }));
        row.cut = "last:89"; // 12 others in the one, 155 in the other
        all.push_back(longer.front());
        const ReproductionResult both = reproduce(runner, row, all, {0}, {});
        QCOMPARE(both.series[0].points.size(), 3U);
        QVERIFY(near(both.series[0].points[0].x, (1.0 / 12 + 9.0 / 155) / 2));
        QVERIFY(near(both.series[0].points[1].x, (1.0 / 12 + 19.0 / 155) / 2));
    }

    // Captures of different lengths meet in the same point; one that is too short is named.
    void sharesOfCapturesOfDifferentLengths() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-fig1");
        row.cut = "default";
        row.seeds = 1;
        row.over = {};
        std::vector<std::shared_ptr<const CaptureReader>> all = captures(1, kEnoughForEveryRow);
        all.push_back(captures(1, 500).front());
        const ReproductionResult result = reproduce(runner, row, all, {0}, {});
        QCOMPARE(result.series[0].points.size(), 4U);
        QCOMPARE(result.series[0].points[3].summary.count, 2);
        QVERIFY(near(result.series[0].points[3].x, (22.0 / 44 + 59.0 / 119) / 2));
        const auto tooShort = makeRandomCapture(1, 300, 1, 2, 1, 8);
        tooShort->captureInfo.path = "folder/short.h5";
        all.push_back(tooShort);
        const std::string message = errorMessage([&] { reproduce(runner, row, all, {0}, {}); });
        QVERIFY2(message.find("only 225 lie before the cut") != std::string::npos &&
                     message.find("folder/short.h5") != std::string::npos,
                 message.c_str());
    }

    // BalanceKV Fig. 3 is a table of block sizes by rates: a series for each block, a point for each rate.
    void aVariedParameterMakesASeriesForEachValue() {
        const LayerRunner runner = makeRunner();
        const auto capture = captures(1, 200);
        Reproduction row = reproductionById("balancekv-fig3");
        const std::string spec = "balancekv:notebook,sink=4,recent=4"; // as many as so short a prompt leaves
        row.policies = {spec};
        row.exactFirst = 0;
        row.cut = "default";
        row.seeds = 1;
        const ReproductionResult result = reproduce(runner, row, capture, {1}, {});
        QCOMPARE(result.series.size(), 3U);
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 3U);
            QCOMPARE(series.policyId, std::string("balancekv"));
            const std::string block = series.label.substr(series.label.find('=') + 1);
            QCOMPARE(series.label, "balancekv:notebook block=" + block);
            const double expected = errorOf(runner, capture[0], 1, spec + ",block=" + block + "@0.25");
            QVERIFY(near(series.points[1].summary.mean, expected));
        }
        QVERIFY(result.series[0].points[1].summary.mean != result.series[2].points[1].summary.mean);
    }

    // Theorem 1: rows drawn by leverage approximate K^T K, the better the more are drawn, and unlike the best rows
    // alone, which lose whatever they leave out.
    void drawnLeverageApproximatesTheSpectrum() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("compactor-thm1");
        row.budgets = {"0.1", "0.5", "0.9"};
        const ReproductionResult result = reproduce(runner, row, captures(1, 200), {0}, {});
        QCOMPARE(result.series.size(), 2U);
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 3U);
            for (std::size_t i = 0; i < 3; ++i) { // over the two heads, seeds averaged
                QCOMPARE(series.points[i].summary.count, 2);
                QCOMPARE(series.points[i].over, std::string("heads"));
                // Drawn rows repeat: x is how many are drawn of the 150 before the cut, not how many differ.
                QVERIFY(near(series.points[i].x, std::vector<double>{0.1, 0.5, 0.9}[i]));
            }
            QVERIFY2(series.points[0].summary.mean > series.points[2].summary.mean, series.label.c_str());
        }
        const auto& top = result.series[result.series[0].measure == "spectral_top" ? 0 : 1];
        QVERIFY(top.points[0].summary.mean <= 1 + 1e-9); // a subset of rows never exceeds the whole
    }

    void oneLayerGivesASpreadOverHeads() {
        const LayerRunner runner = makeRunner();
        const ReproductionResult result = reproduce(runner, reproductionById("keydiff-fig14"), captures(1), {}, {});
        QCOMPARE(result.series.size(), 2U);
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 2U); // layers
            QCOMPARE(series.points[1].x, 1.0);
            QCOMPARE(series.points[0].summary.count, 4);
            QCOMPARE(series.points[0].over, std::string("heads"));
        }
    }

    void csvSaysWhatItIsMadeOf() {
        const LayerRunner runner = makeRunner();
        const Reproduction& row = reproductionById("keydiff-table13");
        const ReproductionResult result = reproduce(runner, row, captures(1), {0}, {});
        const QStringList lines = QString::fromStdString(reproductionCsv(row, result)).split('\n');
        QVERIFY(lines.front().startsWith("# KeyDiff Table 13"));
        QVERIFY(!lines.filter("# data of the paper:").isEmpty() && !lines.filter("# cut: default").isEmpty());
        QCOMPARE(lines.filter("keydiff,keydiff,output_error,").size(), 4);
        QVERIFY(lines.contains("# x: Sliding window; mean: Relative output error"));
        QVERIFY(lines.contains("# engine: cpu; arithmetic: exact index contract"));
        const LayerRunner fast(std::shared_ptr<const Engine>(makeCpuEngine(2, {}, Arithmetic::Fast)));
        const QString quick = QString::fromStdString(reproductionCsv(row, reproduce(fast, row, captures(1), {0}, {})));
        QVERIFY2(quick.contains("; arithmetic: fast float, outside the index contract\n"), qPrintable(quick));
        for (const QString& line : lines.filter("keydiff,keydiff,output_error,")) // one layer of one capture: no spread
            QVERIFY2(line.endsWith(",,,1,,"), qPrintable(line));
    }
};

KVSCOPE_TEST(ReproductionTest)
#include "reproduction_test.moc"
