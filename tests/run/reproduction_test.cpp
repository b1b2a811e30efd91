// The table of reproductions, and points that are gathered from a sweep: against the runs they are made of.
#include "core/base/error.h"
#include "core/capture/memory_capture.h"
#include "core/run/reproduction.h"

#include <QtTest>

#include <set>

using namespace kvscope;

namespace {

std::vector<std::shared_ptr<const CaptureReader>> captures(int count, TokenIndex tokens = 80) {
    std::vector<std::shared_ptr<const CaptureReader>> all;
    for (int i = 0; i < count; ++i)
        all.push_back(makeRandomCapture(20 + static_cast<std::uint64_t>(i), tokens, 2, 4, 2, 8));
    return all;
}

LayerRunner makeRunner() {
    return LayerRunner(std::shared_ptr<const Engine>(makeCpuEngine(2)));
}

/// No policy of the table wants more tokens than this, so no row may refuse.
constexpr TokenIndex kEnoughForEveryRow = 400;

/// The mean output error of one run.
double errorOf(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, int layer,
               const std::string& policy) {
    RunRequest request;
    request.capture = capture;
    request.layer = LayerIndex(layer);
    request.policy = PolicySpec::parse(policy);
    request.budget = *request.policy.budget;
    request.cut = Cut::resolve("default", *capture);
    return meanOfNumbers(runner.run(request, {})->fidelity->meanOutputError);
}

bool near(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b));
}

} // namespace

class ReproductionTest : public QObject {
    Q_OBJECT

private slots:
    void everyRowIsWholeAndKnowsItsMeasures() {
        std::set<std::string> ids;
        for (const Reproduction& row : allReproductions()) {
            QVERIFY2(ids.insert(row.id).second && !row.item.empty() && !row.paperData.empty(), row.id.c_str());
            QVERIFY2(row.elsewhere.empty() != row.measures.empty(), row.id.c_str());
            for (const std::string& measure : row.measures)
                QVERIFY(measure == "policy_ms" || measure.starts_with("spectral_") || !measureById(measure).label.empty());
        }
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
        QCOMPARE(result.series.size(), 1U);
        QCOMPARE(result.series[0].points.size(), 3U);
        const std::vector<std::string> metrics = {"cosine", "dot", "euclidean"};
        for (std::size_t m = 0; m < 3; ++m) {
            std::vector<double> means;
            for (const auto& capture : all)
                means.push_back((errorOf(runner, capture, 0, "keydiff,metric=" + metrics[m] + "@0.25") +
                                 errorOf(runner, capture, 1, "keydiff,metric=" + metrics[m] + "@0.25")) /
                                2);
            const ReproducedPoint& point = result.series[0].points[m];
            QCOMPARE(point.xText, metrics[m]);
            QCOMPARE(point.x, static_cast<double>(m));
            QCOMPARE(point.summary.count, 3);
            const Summary expected = summaryOf(means);
            QVERIFY(near(point.summary.mean, expected.mean) && near(point.summary.deviation, expected.deviation));
        }
    }

    // BalanceKV Fig. 3 is a table of block sizes by rates: a series for each block, a point for each rate.
    void aVariedParameterMakesASeriesForEachValue() {
        const LayerRunner runner = makeRunner();
        const auto capture = captures(1, 200);
        Reproduction row = reproductionById("balancekv-fig3");
        const std::string spec = "balancekv:notebook,sink=4,recent=4"; // as many as so short a prompt leaves
        row.policies = {spec};
        row.cut = "default";
        row.seeds = 1;
        const ReproductionResult result = reproduce(runner, row, capture, {1}, {});
        QCOMPARE(result.series.size(), 3U);
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 3U);
            QCOMPARE(series.policyId, std::string("balancekv"));
            const std::string block = series.label.substr(series.label.find('=') + 1);
            QCOMPARE(series.label, "balancekv block=" + block);
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
            for (const ReproducedPoint& point : series.points)
                QCOMPARE(point.summary.count, series.measure == "spectral_drawn" || series.measure == "spectral_top" ? 6 : 0);
            QVERIFY2(series.points[0].summary.mean > series.points[2].summary.mean, series.label.c_str());
        }
        const auto& top = result.series[result.series[0].measure == "spectral_top" ? 0 : 1];
        QVERIFY(top.points[0].summary.mean <= 1 + 1e-9); // a subset of rows never exceeds the whole
    }

    void oneCaptureGivesAnIntervalOverHeads() {
        const LayerRunner runner = makeRunner();
        const ReproductionResult result = reproduce(runner, reproductionById("keydiff-fig15"), captures(1), {}, {});
        QCOMPARE(result.series.size(), 3U);
        for (const ReproducedSeries& series : result.series) {
            QCOMPARE(series.points.size(), 2U); // layers
            QCOMPARE(series.points[1].x, 1.0);
            QCOMPARE(series.points[0].summary.count, series.measure == "query_norm" ? 4 : 2);
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
    }
};

QTEST_APPLESS_MAIN(ReproductionTest)
#include "reproduction_test.moc"
