// What a reproduction averages over, what its spread is over, and what it must say or refuse: against single runs.
#include "tests/run/reproduction_fixture.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::reproduction_fixture;

class ReproductionSpreadTest : public QObject {
    Q_OBJECT

private slots:
    // Exact leverage draws nothing, a sketch is drawn anew, and compared under its own seed: in both cases a layer is
    // one sample, the mean of its seeds.
    void seedsAreAveragedBeforeLayers() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("compactor-table4");
        row.budgets = {"0.25"};
        row.policies = {"compactor,sketch_size=2"};
        const auto capture = captures(1);
        const ReproductionResult result = reproduce(runner, row, capture, {}, {});
        for (const ReproducedSeries& series : result.series) {
            const ReproducedPoint& point = series.points[0];
            QCOMPARE(point.summary.count, 2);
            QCOMPARE(point.over, std::string("layers"));
            if (series.measure != "overlap") continue;
            const std::size_t begin = series.label.find("sketch=") + 7;
            const std::string kind = series.label.substr(begin, series.label.find(' ', begin) - begin);
            std::vector<double> layers;
            for (const int layer : {0, 1}) {
                layers.push_back(0);
                for (std::uint64_t seed = 0; seed < 3; ++seed)
                    layers.back() +=
                        overlapOf(runner, capture[0], layer, "compactor,sketch_size=2,sketch=" + kind + "@0.25",
                                  "compactor,sketch_size=2,sketch=none@0.25", seed) /
                        3;
            }
            QVERIFY2(isPoint(point, point.x, "0.25", summaryOf(layers)), series.label.c_str());
            QVERIFY2((point.summary.mean < 1) == (kind != "none"), series.label.c_str());
        }
    }

    // As BalanceKV B.1 reports them: the mean of ten seeds and how much these differ, layers averaged within each seed.
    void theSpreadOfAFigureOverSeedsIsThatOfItsSeeds() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-fig1");
        row.cut = "default";
        row.seeds = 3;
        row.budgets = {"0.25"};
        const auto capture = captures(1, kEnoughForEveryRow);
        const ReproductionResult result = reproduce(runner, row, capture, {}, {});
        std::vector<double> seeds;
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
            seeds.push_back(0);
            for (const int layer : {0, 1})
                seeds.back() +=
                    meanOfNumbers(run(runner, capture[0], layer, "uniform,reweight=true,protect_first=256@267t", seed)
                                      ->fidelity->meanOutputError) /
                    2;
        }
        const auto uniform = std::find_if(result.series.begin(), result.series.end(),
                                          [](const ReproducedSeries& series) { return series.policyId == "uniform"; });
        QCOMPARE(uniform->points[0].over, std::string("seeds"));
        QVERIFY(isPoint(uniform->points[0], 11.0 / 44, "0.25", summaryOf(seeds)));
        QVERIFY(std::count(
                    result.notes.begin(), result.notes.end(),
                    "bars: standard deviations over seeds; each seed averaged over heads, layers and captures") == 1);
    }

    // BalanceKV Table 3: every vector of every layer and head is a number, queries and keys of the whole prompt.
    void normsAreOverVectors() {
        const LayerRunner runner = makeRunner();
        const auto capture = captures(1);
        const ReproductionResult result = reproduce(runner, reproductionById("balancekv-table3"), capture, {}, {});
        std::vector<double> lengths;
        for (const int layer : {0, 1}) {
            const HostTensor queries = capture[0]->read(LayerIndex(layer), TensorRole::Queries, {});
            for (std::size_t row = 0; row < queries.data.size(); row += 8) {
                double square = 0;
                for (std::size_t c = 0; c < 8; ++c) square += double{queries.data[row + c]} * queries.data[row + c];
                lengths.push_back(std::sqrt(square));
            }
        }
        const ReproducedPoint& point = seriesOf(result, "query_norm").points[0];
        QCOMPARE(point.over, std::string("vectors"));
        QCOMPARE(point.summary.count, 2 * 4 * 80);
        QVERIFY(std::abs(point.summary.mean - summaryOf(lengths).mean) < 1e-5 &&
                std::abs(point.summary.deviation - summaryOf(lengths).deviation) < 1e-5);
        QCOMPARE(seriesOf(result, "shifted_key_norm").points[0].summary.count, 2 * 2 * 80);
    }

    // The mean query of KeyDiff's Figs. 14 and 16 is that of the prompt: a capture with a window of queries is refused
    // there, and elsewhere its window is named.
    void queriesOfAWindowAreRefusedOrNamed() {
        const LayerRunner runner = makeRunner();
        auto window = makeRandomCapture(20, 80, 2, 4, 2, 8);
        for (LayerInfo& layer : window->captureInfo.layers) layer.queryCount = 30;
        for (auto& [place, tensor] : window->tensors)
            if (place.second == TensorRole::Queries) {
                HostTensor last{{4, 30, 8}, {}};
                for (int h = 0; h < 4; ++h)
                    last.data.insert(last.data.end(), tensor.data.begin() + (h * 80 + 50) * 8,
                                     tensor.data.begin() + (h + 1) * 80 * 8);
                tensor = last;
            }
        window->captureInfo.path = "folder/window.h5";
        const std::string message =
            errorMessage([&] { reproduce(runner, reproductionById("keydiff-fig14"), {window}, {}, {}); });
        QVERIFY2(message.find("layer 0 holds those of the last 30 of 80") != std::string::npos &&
                     message.find("folder/window.h5") != std::string::npos,
                 message.c_str());
        const ReproductionResult norms = reproduce(runner, reproductionById("keydiff-fig15"), {window}, {}, {});
        QVERIFY(std::any_of(norms.notes.begin(), norms.notes.end(), [](const std::string& note) {
            return note.find("those of the last 30 of 80 tokens") != std::string::npos;
        }));
    }

    // Sinks and recents that leave nothing to balance: figure and file say so, at the budgets where it is so.
    void whatBalancedNothingSaysSo() {
        const LayerRunner runner = makeRunner();
        Reproduction row = reproductionById("balancekv-table6");
        row.policies = {"balancekv:longbench", "keydiff"};
        row.budgets = {"0.2", "0.75"};
        const auto capture = captures(1, 200); // 64 protected of 150
        const ReproductionResult result = reproduce(runner, row, capture, {0}, {});
        const std::string note = "the protected first and last tokens take the whole budget: nothing was balanced";
        QCOMPARE(std::count(result.notes.begin(), result.notes.end(), "balancekv:longbench at 0.2: " + note), 1);
        QCOMPARE(result.series[0].points[0].notes, std::vector<std::string>{note});
        QVERIFY(result.series[0].points[1].notes.empty() && result.series[1].points[0].notes.empty());
        const std::string csv = reproductionCsv(row, result);
        QVERIFY2(csv.find(",3,seeds," + note + "\n") != std::string::npos, csv.c_str());
    }
};

KVSCOPE_TEST(ReproductionSpreadTest)
#include "reproduction_spread_test.moc"
