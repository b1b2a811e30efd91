// The key projection by t-SNE: labelled with what made it, never with a variance, and without anything that has no
// place in an embedding; refusals and the way there have their words.
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/support/thread_state.h"
#include "tests/views/view_fixture.h"

#include <QtTest>

#include <algorithm>
#include <ctime>
#include <set>
#include <thread>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

const View& view() { return viewById("key_projection"); }

ParameterValues tsneOptions(const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::vector<std::pair<std::string, std::string>> set = {
        {"method", "tsne"}, {"iterations", "150"}, {"tsne_seed", "3"}};
    set.insert(set.end(), more.begin(), more.end());
    return optionsOf(view(), set);
}

ViewDataRequest requestOf(const std::shared_ptr<const CaptureReader>& capture, const ParameterValues& options) {
    ViewDataRequest request;
    request.capture = capture;
    request.layer = LayerIndex(capture == needleCapture() ? 3 : 0);
    request.options = options;
    request.cut = Cut::resolve("default", *capture);
    return request;
}

} // namespace

class TsneViewTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;

private slots:
    void initTestCase() { m_text = std::make_unique<QtTextService>(); }

    void saysWhatMadeItAndClaimsNoVariance() {
        const ParameterValues options = tsneOptions({{"show_queries", "true"}, {"x_component", "3"}});
        const ViewInput input = inputFor(view(), {"keydiff@0.25"}, options);
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark, ThemeId::Paper})
            for (const auto& [w, h] : {std::pair{900, 700}, {420, 330}}) {
                const Scene scene = view().buildScene(input, options, viewport(w, h, *m_text, theme));
                QVERIFY(says(scene, "t-SNE, perplexity 30, seed 3"));
                QVERIFY(says(scene, "t-SNE 1") && says(scene, "t-SNE 2"));
                QVERIFY(!says(scene, "variance") && !says(scene, "PC "));
                QVERIFY(!says(scene, "anchor") && !says(scene, "queries")); // no vector has a place in it
                QVERIFY(std::abs((scene.xMax - scene.xMin) / scene.plot.width -
                                 (scene.yMax - scene.yMin) / scene.plot.height) < 1e-9);
            }
        Viewport paper = viewport(700, 500, *m_text, ThemeId::Paper);
        paper.forExport = true;
        QVERIFY(says(view().buildScene(input, options, paper), "perplexity 30, seed 3, 150 iterations: KL "));
    }

    void marksStandWhereTheEmbeddingSays() {
        const ParameterValues options = tsneOptions();
        const ViewInput input = inputFor(view(), {"keydiff@0.25"}, options);
        const auto data = dataAs<ProjectionData>(input);
        QCOMPARE(data->keys.shape, (Shape{1028, 2}));
        const HostTensor keys = needleCapture()->read(LayerIndex(3), TensorRole::Keys, {});
        HostTensor rows{{1028, keys.shape[2]}, {}};
        const auto first = keys.data.begin() + 1028 * keys.shape[2]; // KV head 1
        rows.data.assign(first, first + 1028 * keys.shape[2]);
        const Embedding alone =
            tsne(tsneAffinities(rows, 30, {1, ""}, {}), {.perplexity = 30, .iterations = 150, .seed = 3}, {1, ""}, {});
        QVERIFY(alone.points.data == data->keys.data);
        const Scene scene = view().buildScene(input, options, viewport(640, 480, *m_text));
        const PointCloudItem& kept = *cloudNamed(scene, "kept");
        QVERIFY(kept.ids->size() > 200);
        for (std::size_t i = 0; i < kept.ids->size(); i += 23) {
            const auto token = static_cast<std::size_t>((*kept.ids)[i]);
            const double px = scene.plot.x + (double(data->keys.data[2 * token]) - scene.xMin) /
                                                 (scene.xMax - scene.xMin) * scene.plot.width;
            QVERIFY(std::abs((*kept.points)[i].x - px) < 1e-6);
        }
        const ViewTable table = view().table(input, options);
        QCOMPARE(table.cell(17, 4), QString::number(double(data->keys.data[34]), 'g', 6).toStdString());
    }

    void textsNeitherCollideNorLeave() {
        for (const char* colour : {"state", "norm"}) {
            const ParameterValues options = tsneOptions({{"colour_by", colour}});
            const ViewInput input = inputFor(view(), {"snapkv@0.2"}, options);
            for (const auto& [w, h] : {std::pair{220, 160}, {300, 220}, {270, 470}, {640, 400}, {1400, 900}})
                for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
                    const Scene scene = view().buildScene(input, options, viewport(w, h, *m_text, theme));
                    QCOMPARE(misplacedTexts(scene, *m_text), QStringList());
                }
        }
    }

    // In pixels: marks of both states all over the plot, none beyond it, at twice the size and in every theme.
    void pictureShowsTokensApart() {
        const ParameterValues options = tsneOptions({{"iterations", "300"}});
        const ViewInput input = inputFor(view(), {"keydiff@0.25"}, options);
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark, ThemeId::Paper}) {
            const Scene scene = view().buildScene(input, options, viewport(900, 700, *m_text, theme));
            const QImage image = renderScene(scene, 2);
            QCOMPARE(image.size(), QSize(1800, 1400));
            int kept = 0, evicted = 0, outside = 0;
            std::set<int> cells; // of a raster of 12 x 12 over the plot
            const auto is = [&](const QColor& pixel, Colour c) {
                return pixel.red() == c.r && pixel.green() == c.g && pixel.blue() == c.b;
            };
            for (int y = 80; y < image.height(); ++y) // below the legend
                for (int x = 0; x < image.width(); ++x) {
                    const QColor pixel = image.pixelColor(x, y);
                    const bool isKept = is(pixel, themeOf(theme).kept), isEvicted = is(pixel, themeOf(theme).evicted);
                    kept += isKept;
                    evicted += isEvicted;
                    const double column = (x / 2.0 - scene.plot.x) / scene.plot.width,
                                 row = (y / 2.0 - scene.plot.y) / scene.plot.height;
                    outside += (isKept || isEvicted) && (column < -0.01 || column > 1.01 || row < -0.01 || row > 1.01);
                    if (isKept || isEvicted)
                        cells.insert(static_cast<int>(row * 12) * 12 + static_cast<int>(column * 12));
                }
            const QString counts = QString("%1 kept, %2 evicted, %3 outside, %4 cells")
                                       .arg(kept)
                                       .arg(evicted)
                                       .arg(outside)
                                       .arg(cells.size());
            QVERIFY2(kept > 2000 && evicted > 2000 && outside == 0 && cells.size() > 50, qPrintable(counts));
        }
    }

    void findingSaysHowFarToBelieveIt() {
        const ParameterValues options = tsneOptions();
        const ViewInput input = inputFor(view(), {"keydiff@0.25"}, options);
        const double kept = 100 * dataAs<ProjectionData>(input)->tsne->neighboursKept;
        QVERIFY(kept > 5 && kept < 100);
        QCOMPARE(view().finding(input, options), QString("%1 % of each token's 10 nearest neighbours in the head are "
                                                         "its nearest here too (t-SNE, perplexity 30, seed 3)")
                                                     .arg(kept, 0, 'f', 1)
                                                     .toStdString());
    }

    // The picture unfolds step by step, labelled as unfinished, and the final one is asked for once per seed.
    void comesInStepsAndIsKept() {
        const auto capture = makeRandomCapture(4, 400, 1, 2, 1, 8);
        const ViewDataRequest request = requestOf(capture, tsneOptions());
        std::vector<int> steps;
        const auto note = [&](const ViewDataMaker::Value& value) {
            const auto data = std::dynamic_pointer_cast<const ProjectionData>(value);
            steps.push_back(data->tsne->iteration);
            ViewInput input = makeInput(capture, {"keydiff@0.25"}, 0, 0);
            input.data.value = value;
            QVERIFY(says(view().buildScene(input, request.options, viewport(640, 480, *m_text)),
                         "iteration " + std::to_string(steps.back()) + " of 150"));
            QVERIFY(view().finding(input, request.options).find("iteration") != std::string::npos);
        };
        const auto first = makerFor(view())->make(runner(), request, {}, note);
        QCOMPARE(steps, (std::vector<int>{50, 100}));
        const auto second = makerFor(view())->make(runner(), request, {}, note); // nothing on the way: it was kept
        QCOMPARE(steps.size(), std::size_t{2});
        QVERIFY(std::dynamic_pointer_cast<const ProjectionData>(first)->keys.data ==
                std::dynamic_pointer_cast<const ProjectionData>(second)->keys.data);
        ViewDataRequest other = request;
        other.options.setText("tsne_seed", "4");
        const auto third = makerFor(view())->make(runner(), other, {}, note);
        QCOMPARE(steps.size(), std::size_t{4});
        QVERIFY(std::dynamic_pointer_cast<const ProjectionData>(third)->keys.data !=
                std::dynamic_pointer_cast<const ProjectionData>(first)->keys.data);
    }

    void progressOnlyGrowsAndCancelStops() {
        const auto capture = makeRandomCapture(6, 300, 1, 2, 1, 8);
        std::stop_source stop;
        std::vector<double> seen;
        const Checkpoint checkpoint(stop.get_token(), [&](double done, double total) {
            seen.push_back(done / total);
            if (seen.back() > 0.4) stop.request_stop();
        });
        QVERIFY_THROWS_EXCEPTION(Cancelled, (void)makerFor(view())->make(runner(), requestOf(capture, tsneOptions()),
                                                                         checkpoint, [](const auto&) {}));
        QVERIFY(std::is_sorted(seen.begin(), seen.end()));
        QVERIFY(seen.back() < 0.5);
    }

    // Neighbours, descent and judgement alike: for an engine of one thread nobody but the caller computes.
    void takesNoMoreThreadsThanTheEngine() {
        const auto capture = makeRandomCapture(8, 2500, 1, 2, 1, 8);
        const auto othersShare = [&](int threads) {
            const LayerRunner runner(std::shared_ptr<const Engine>(makeCpuEngine(threads)));
            if (!QTest::qWaitFor(kvscope::testing::allOthersAreAsleep)) // the workers of other tests
                return 1.0;
            const auto seconds = [](clockid_t clock) {
                timespec time{};
                clock_gettime(clock, &time);
                return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
            };
            const double all = seconds(CLOCK_PROCESS_CPUTIME_ID), mine = seconds(CLOCK_THREAD_CPUTIME_ID);
            makerFor(view())->make(runner, requestOf(capture, tsneOptions()), {}, [](const auto&) {});
            const double own = seconds(CLOCK_THREAD_CPUTIME_ID) - mine;
            return (seconds(CLOCK_PROCESS_CPUTIME_ID) - all - own) / own;
        };
        const double alone = othersShare(1);
        QVERIFY2(alone < 0.02, qPrintable(QString("others took %1 of the caller's time").arg(alone)));
        if (std::thread::hardware_concurrency() == 1) return;
        double three = 0; // a busy machine may leave all work to the caller, now and then
        for (int attempt = 0; attempt < 10 && three <= 0.05; ++attempt) three = othersShare(3);
        QVERIFY2(three > 0.05, qPrintable(QString("others took %1 of the caller's time").arg(three)));
    }

    void saysWhenTheRepulsionIsInterpolated() {
        const ParameterValues options = tsneOptions({{"iterations", "50"}});
        for (const int tokens : {400, 8193}) {
            const auto capture = makeRandomCapture(5, tokens, 1, 1, 1, 2);
            ViewInput input = makeInput(capture, {"streaming_llm@0.1"}, 0, 0);
            fillData(input, view(), options);
            const bool more = tokens > 8192;
            QCOMPARE(says(view().buildScene(input, options, viewport(900, 500, *m_text)), "repulsion on a grid"), more);
            QCOMPARE(view().finding(input, options).find("repulsion on a grid") != std::string::npos, more);
        }
    }

    void tooManyTokensAreRefusedWithARemedy() {
        const auto capture = makeRandomCapture(5, 65537, 1, 1, 1, 2);
        ViewInput input = makeInput(capture, {"streaming_llm@0.1"}, 0, 0);
        const ParameterValues options = tsneOptions();
        const std::string refused = errorMessage([&] { fillData(input, view(), options); });
        input.data = {.value = {}, .computing = false, .progress = 0, .error = refused};
        QVERIFY(says(view().buildScene(input, options, viewport(900, 500, *m_text)), "65536 points"));
        QVERIFY(view().finding(input, options).find("method=pca") != std::string::npos);
        input.data = {};
        QVERIFY(says(view().buildScene(input, options, viewport(900, 500, *m_text)),
                     "neighbours of every token, for t-SNE"));
    }
};

KVSCOPE_OFFSCREEN_TEST(TsneViewTest)
#include "tsne_view_test.moc"
