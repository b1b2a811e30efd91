// Keep probability: counts against the runs themselves, certainty told from luck, and a sentence for policies without
// any.
#include "app/export/scene_export.h"
#include "core/metrics/statistics.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/keep_probability/keep_probability_data.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stop_token>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::cloudNamed;

namespace {

/// Four tokens and three seeds: token 0 always, 1 twice, 2 once, 3 never.
ViewInput handInput() {
    ViewInput input = needleInput({"uniform@0.25"});
    auto data = std::make_shared<KeepProbabilityData>();
    data->policyId = "uniform";
    data->policyName = "Uniform";
    data->drawsRandomNumbers = true;
    data->visible = 4;
    data->seedsAsked = 3;
    data->lists = {{0, 1}, {0, 2}, {0, 1}};
    data->times = {3, 2, 1, 0};
    input.data.value = data;
    input.focus.selected = {0, 1};
    input.focus.selectionName = "pair";
    return input;
}

/// As a file of recorded numbers: what it gives does not depend on the seed.
class SeedlessRandom final : public RandomSource {
public:
    double uniform(const RandomKey& key) const override {
        RandomKey seedless = key;
        seedless.seed = 0;
        return RandomSource::uniform(seedless);
    }
    std::string id() const override { return "seedless"; }
};

} // namespace

class KeepProbabilityViewTest : public ViewTest {
    Q_OBJECT

public:
    KeepProbabilityViewTest() : ViewTest(viewById("keep_probability")) {}

private slots:
    void countsAreThoseOfTheRuns() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "7"}});
        const auto data = dataAs<KeepProbabilityData>(inputFor(m_view, {"uniform@0.25", "keydiff@0.1"}, options));
        QVERIFY(data->drawsRandomNumbers);
        QCOMPARE(data->seeds(), 7);
        std::vector<std::int32_t> times(995, 0);
        for (std::uint64_t seed = 0; seed < 7; ++seed) {
            const auto run = measured("uniform@0.25", 3, seed);
            QCOMPARE(data->lists[seed], run->selection.heads[1].kept);
            for (const TokenIndex token : run->selection.heads[1].kept) ++times[static_cast<std::size_t>(token)];
        }
        QCOMPARE(data->times, times);
        QVERIFY(data->lists[0] != data->lists[1]);
    }

    // Uniform keeps each token with probability 0.25: over 995 tokens and 40 seeds the counts scatter as coins do.
    void uniformScattersAsCoinsDo() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "40"}});
        const auto data = dataAs<KeepProbabilityData>(inputFor(m_view, {"uniform@0.25"}, options));
        double squares = 0;
        for (const std::int32_t times : data->times) squares += std::pow(times - 40 * 249.0 / 995, 2);
        const double p = 249.0 / 995, variance = squares / 995;
        QVERIFY2(std::abs(variance - 40 * p * (1 - p)) < 1.2,
                 qPrintable(QString::number(variance))); // 7.5 +- 4 of its own deviations
    }

    void sketchesAreLuckToo() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "3"}});
        const auto data = dataAs<KeepProbabilityData>(inputFor(m_view, {"compactor,sketch_size=16@0.25"}, options));
        const std::string wide = m_view.finding(inputFor(m_view, {"compactor@0.25"}, options), options);
        QVERIFY2(wide.ends_with("as wide as a key (k = d), so it is exact"), wide.c_str()); // 64 of 64 columns
        QVERIFY(data->drawsRandomNumbers);
        QVERIFY(data->lists[0] != data->lists[1] || data->lists[1] != data->lists[2]);
    }

    void aPolicyWithoutCoinsRunsOnceAndSaysSo() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        const auto data = dataAs<KeepProbabilityData>(input);
        QVERIFY(!data->drawsRandomNumbers && data->seeds() == 1);
        QCOMPARE(m_view.finding(input, options),
                 std::string("KeyDiff draws no random numbers: the same list of 249 tokens for every seed"));
        const Scene scene = m_view.buildScene(input, options, viewport(640, 400, m_text));
        QCOMPARE(cloudNamed(scene, "always kept")->points->size(), std::size_t{249});
        QCOMPARE(cloudNamed(scene, "never kept")->points->size(), std::size_t{746});
        QVERIFY(cloudNamed(scene, "sometimes kept")->points->empty());
        QVERIFY(paintSceneAsText(scene).find("the same for every seed") != std::string::npos);
    }

    // A file gives every seed the same numbers: 20 runs would be one drawing, with the certainty of 20.
    void replayedNumbersAreOneDrawing() {
        const ParameterValues options = optionsOf(m_view);
        const auto dataOf = [&](ViewInput& input, const std::shared_ptr<const RandomSource>& random) {
            RunRequest run = input.panes[0].result->request;
            run.random = random;
            input.panes[0].result = runner().run(run, {});
            fillData(input, m_view, options);
            return dataAs<KeepProbabilityData>(input);
        };
        ViewInput input = needleInput({"uniform@0.25"});
        const auto replayed = dataOf(input, std::make_shared<const SeedlessRandom>());
        QVERIFY(replayed->replayed && !replayed->drawsRandomNumbers);
        QCOMPARE(replayed->seeds(), 1);
        const std::string sentence = m_view.finding(input, options);
        QVERIFY2(sentence.starts_with("Uniform random replays recorded random numbers: one drawing, and its ") &&
                     sentence.ends_with(" tokens, for every seed"),
                 sentence.c_str());
        const Scene scene = m_view.buildScene(input, options, viewport(640, 400, m_text));
        QVERIFY(paintSceneAsText(scene).find("replayed: one drawing") != std::string::npos);
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.cell(0, 5), table.cell(0, 4)); // no interval
        QCOMPARE(m_view.factsAt(input, options, scene, cloudNamed(scene, "always kept")->points->front()).rows[0],
                 (std::pair<std::string, std::string>("in the one drawing", "kept")));
        // The generator beside such a file still depends on the seed.
        const auto drawn = dataOf(input, std::make_shared<const RandomSource>());
        QVERIFY(!drawn->replayed && drawn->drawsRandomNumbers && drawn->seeds() == 20);
    }

    void certainTokensStandApartAtTheirHeights() {
        const ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view, {{"smooth", "3"}});
        const Scene scene = m_view.buildScene(input, options, viewport(640, 400, m_text));
        const PointCloudItem* always = cloudNamed(scene, "always kept");
        const PointCloudItem* sometimes = cloudNamed(scene, "sometimes kept");
        const PointCloudItem* never = cloudNamed(scene, "never kept");
        QCOMPARE(*always->ids, (std::vector<std::int64_t>{0}));
        QCOMPARE(*sometimes->ids, (std::vector<std::int64_t>{1, 2}));
        QCOMPARE(*never->ids, (std::vector<std::int64_t>{3}));
        QVERIFY(always->fill.a == 255 && never->fill.a == 0 && never->stroke.colour.a == 255); // filled against hollow
        for (const double height : {126.0, 155.0, 400.0}) { // rings of what lies at 0 and 1 are whole
            const Scene low = m_view.buildScene(input, options, viewport(640, height, m_text));
            QVERIFY(cloudNamed(low, "always kept")->points->front().y - low.plot.y >= 5);
            QVERIFY(low.plot.bottom() - cloudNamed(low, "never kept")->points->front().y >= 5);
        }
        const double span = never->points->front().y - always->points->front().y;
        QVERIFY(std::abs((*sometimes->points)[0].y - always->points->front().y - span / 3) < 1e-9);
        QCOMPARE(m_view.finding(input, options), std::string("Over 3 seeds Uniform keeps 1 token always, 2 sometimes "
                                                             "and 1 never, 2.0 of 4 on average; the whole pair in 2"));
    }

    void readOutAndTableSayHowOften() {
        const ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = m_view.buildScene(input, options, viewport(640, 400, m_text));
        const PointFacts facts =
            m_view.factsAt(input, options, scene, (*cloudNamed(scene, "sometimes kept")->points)[1]);
        QCOMPARE(facts.token, TokenIndex{2});
        QCOMPARE(facts.rows[0].second, std::string("1 of 3 seeds"));
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, std::int64_t{4});
        QCOMPARE(table.cell(1, 3), std::string("2"));
        QCOMPARE(table.cell(1, 4), std::string("0.666667"));
        QVERIFY(std::stod(table.cell(1, 5)) < 2.0 / 3 && std::stod(table.cell(1, 6)) > 2.0 / 3);
    }

    // Wilson (1927): the ends solve |p - x| = z sqrt(x (1 - x) / n).
    void wilsonsIntervalSolvesItsEquation() {
        for (const auto& [successes, trials] : {std::pair{0, 20}, {7, 20}, {20, 20}, {50, 200}}) {
            const ShareInterval interval = wilsonInterval(successes, trials);
            const double p = static_cast<double>(successes) / trials;
            for (const double end : {interval.low, interval.high})
                if (end > 1e-12 && end < 1 - 1e-12)
                    QVERIFY(std::abs(std::abs(p - end) - 1.96 * std::sqrt(end * (1 - end) / trials)) < 1e-12);
            QVERIFY(interval.low <= p && p <= interval.high && interval.low < interval.high);
        }
        QVERIFY(std::abs(wilsonInterval(0, 20).high - 0.1611) < 1e-4); // quoted in the help
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(930, 260), QSize(1400, 900)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view, {{"seeds", "3"}});
        const ViewInput input = inputFor(m_view, {"uniform@0.25"}, options);
        QCOMPARE(misplacedTexts(m_view, input, options, size, m_text), QStringList());
    }

    // The blue row of the certain ones on top, the orange row below, grey marks between, and the policy's line.
    void thePictureShowsLuckBetweenTheCertainOnes() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "5"}});
        const ViewInput input = inputFor(m_view, {"balancekv,sink=256,recent=256@0.75"}, options);
        const QImage image = renderScene(m_view.buildScene(input, options, viewport(900, 400, m_text)), 1);
        int blueAbove = 0, greyBetween = 0;
        for (int y = 40; y < image.height() - 40; ++y)
            for (int x = 80; x < image.width() - 20; ++x) {
                const QColor c = image.pixelColor(x, y);
                blueAbove += y < 80 && c.blue() > 150 && c.red() < 60;
                greyBetween += y > 80 && c == QColor(0x5F, 0x67, 0x71);
            }
        QVERIFY2(blueAbove > 400 && greyBetween > 100,
                 qPrintable(QString("%1 blue, %2 grey").arg(blueAbove).arg(greyBetween)));
    }

    void partsComeSeedBySeedAndStop() {
        ViewDataRequest request;
        request.capture = needleCapture();
        request.layer = LayerIndex(3);
        request.panes.push_back({needleRequest("uniform@0.25"), {}});
        request.options = optionsOf(m_view, {{"seeds", "9"}});
        std::stop_source stop;
        std::vector<int> seeds;
        const auto cancelAfterFour = [&] {
            makerFor(viewById("keep_probability"))
                ->make(runner(), request, Checkpoint(stop.get_token()), [&](const ViewDataMaker::Value& value) {
                    seeds.push_back(std::dynamic_pointer_cast<const KeepProbabilityData>(value)->seeds());
                    if (seeds.size() == 4) stop.request_stop();
                });
        };
        QVERIFY_THROWS_EXCEPTION(Cancelled, cancelAfterFour());
        QCOMPARE(seeds, (std::vector<int>{1, 2, 3, 4}));
    }

    void emptyStatesSayWhatIsMissing() {
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
        ViewInput none = needleInput({});
        none.data = {};
        QVERIFY(m_view.finding(none, options).find("add a pane") != std::string::npos);
        ViewInput waiting = needleInput({"uniform@0.25"});
        waiting.data = {};
        const Scene scene = m_view.buildScene(waiting, options, viewport(400, 300, m_text));
        QVERIFY(paintSceneAsText(scene).find("Running the first seed") != std::string::npos);
    }
};

KVSCOPE_OFFSCREEN_TEST(KeepProbabilityViewTest)
#include "keep_probability_view_test.moc"
