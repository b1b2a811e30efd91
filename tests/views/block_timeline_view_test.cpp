// Block processing as a picture, and what it does to the anchor and to the error, against the steps and runs
// themselves.
#include "app/text/qt_text_service.h"
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/block_timeline/block_timeline_data.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

using namespace kvscope;
using namespace kvscope::view_fixture;
using namespace kvscope::scene_checks;

class BlockTimelineViewTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;

private slots:
    void initTestCase() { m_text = std::make_unique<QtTextService>(); }

    void timelineShowsEveryEvictionWhereItHappened() {
        const ParameterValues options = optionsOf(viewById("block_timeline"));
        const ViewInput input = inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, options);
        const RunResult& result = *input.panes[0].result;
        const Scene scene = viewById("block_timeline").buildScene(input, options, viewport(640, 420, *m_text));
        const PointCloudItem* evicted = cloudNamed(scene, "evicted");
        std::size_t evictions = 0;
        for (const BlockStep& step : result.steps) evictions += step.evicted[1].size();
        QCOMPARE(evicted->points->size(), evictions);
        QCOMPARE(evictions + result.selection.heads[1].kept.size(), std::size_t{995});
        const TokenIndex first = result.steps[0].evicted[1].front();
        const auto at = std::find(evicted->ids->begin(), evicted->ids->end(), first) - evicted->ids->begin();
        const double x = scene.plot.x + scene.plot.width * result.steps[0].end / 995.0;
        QVERIFY(std::abs((*evicted->points)[static_cast<std::size_t>(at)].x - x) < 1e-6);
        QVERIFY(paintSceneAsText(scene).find("simulated") != std::string::npos);
        const ViewInput oneShot = inputFor(viewById("block_timeline"), {"keydiff@0.25"}, options);
        QVERIFY(viewById("block_timeline").finding(oneShot, options).find("Set its prompt block") != std::string::npos);
    }

    // The number of the cursor lies over the marks of the evictions at the cursor.
    void marksDoNotHideTheCursorsNumber() {
        const View& view = viewById("block_timeline");
        for (const auto& [picture, marks] : {std::pair{"timeline", "evicted"}, std::pair{"drift", "drift"}}) {
            const ParameterValues options = optionsOf(view, {{"picture", picture}});
            ViewInput input = inputFor(view, {"keydiff,prompt_block=128@0.25"}, options);
            input.cursor = 384;
            const Scene scene = view.buildScene(input, options, viewport(640, 420, *m_text));
            std::ptrdiff_t number = -1, cloud = -1;
            for (std::ptrdiff_t i = 0; i < std::ssize(scene.items); ++i) {
                const Drawable& item = scene.items[static_cast<std::size_t>(i)];
                if (const auto* text = std::get_if<TextItem>(&item); text && text->text == "j = 384") number = i;
                if (const auto* points = std::get_if<PointCloudItem>(&item); points && points->name == marks) cloud = i;
            }
            QVERIFY2(cloud >= 0 && number > cloud, picture);
        }
    }

    // Of more tokens than can be told apart a part is drawn: the legend says so, and a zoom shows all of the range.
    void aLongTimelineSaysWhatItLeavesOut() {
        const View& view = viewById("block_timeline");
        const ParameterValues options = optionsOf(view);
        const ViewInput input =
            makeInput(makeRandomCapture(7, 12'000, 1, 1, 1, 4), {"keydiff,prompt_block=2048@0.25"}, 0, 0);
        const auto evicted = [](const Scene& scene) { return std::ssize(*cloudNamed(scene, "evicted")->points); };
        const auto note = [](const Scene& scene) {
            return std::ranges::count(textsOf(scene), std::string("1 of 3 tokens drawn"));
        };
        std::int64_t all = 0, early = 0;
        for (const BlockStep& step : input.panes[0].result->steps)
            for (const TokenIndex token : step.evicted[0]) ++all, early += token < 1'000 ? 1 : 0;
        const Scene whole = view.buildScene(input, options, viewport(900, 420, *m_text));
        QVERIFY(evicted(whole) < all / 2 && note(whole) == 1);
        Viewport zoomed = viewport(900, 420, *m_text);
        zoomed.range = Viewport::Range{0, 9'000, 0, 1'000};
        const Scene part = view.buildScene(input, options, zoomed);
        QCOMPARE(evicted(part), early);
        QCOMPARE(note(part), std::ptrdiff_t{0});
    }

    // A short prompt is tried in blocks of one token: that mark too lies in the plot.
    void blocksOfOneTokenLieInThePlot() {
        const View& view = viewById("block_timeline");
        const ParameterValues options = optionsOf(view, {{"picture", "block_size"}});
        ViewInput input = inputFor(view, {"keydiff,prompt_block=8@0.5"}, options);
        auto data = std::make_shared<BlockTimelineData>(*dataAs<BlockTimelineData>(input));
        for (std::size_t i = 1; i < data->sizes.size(); ++i) data->sizes[i].block = 1 << (i - 1);
        input.data.value = data;
        const Scene scene = view.buildScene(input, options, viewport(640, 420, *m_text));
        for (const Point& at : *cloudNamed(scene, "block sizes")->points)
            QVERIFY2(at.x > 30 && at.x < scene.width, qPrintable(QString::number(at.x))); // right of the labels
    }

    // Rings of the last step lie on the right edge or on the cursor: nothing may cover or cut them.
    void evictionsAreDrawnOverCursorAndEdge() {
        const ParameterValues options = optionsOf(viewById("block_timeline"));
        ViewInput input = inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, options);
        for (const std::optional<TokenIndex> cursor :
             {std::optional<TokenIndex>{}, std::optional<TokenIndex>{input.panes[0].result->steps[2].end}}) {
            input.cursor = cursor;
            const Scene scene = viewById("block_timeline").buildScene(input, options, viewport(620, 420, *m_text));
            bool after = false;
            for (const Drawable& item : scene.items) {
                const auto* cloud = std::get_if<PointCloudItem>(&item);
                after = after || (cloud && cloud->name == "evicted");
                QVERIFY(!after || !std::holds_alternative<PopClipItem>(item)); // neither in a clip nor under what is
            }
            QVERIFY(after);
            const auto texts = textsOf(scene);
            QVERIFY(std::find(texts.begin(), texts.end(), "until it is evicted") != texts.end());
        }
        const ViewInput exact = inputFor(viewById("block_timeline"), {"exact"}, options);
        const std::string advice = viewById("block_timeline").finding(exact, options);
        QVERIFY2(advice.find("Choose a policy with a prompt block") != std::string::npos, advice.c_str());
    }

    // Step by step by hand: which keys are there, where their mean points, and where that of all keys does.
    void theAnchorDriftIsThatOfTheMeans() {
        const ParameterValues options = optionsOf(viewById("block_timeline"), {{"picture", "drift"}});
        ViewInput input = inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, options);
        const RunResult& result = *input.panes[0].result;
        const auto data = dataAs<BlockTimelineData>(input);
        QCOMPARE(data->drift.size(), result.steps.size());
        const HostTensor keys =
            runner().engine().download(runner().tensor(input.capture, input.layer, TensorRole::Keys, {}));
        std::set<TokenIndex> gone;
        for (std::size_t i = 0; i < result.steps.size(); ++i) {
            const BlockStep& step = result.steps[i];
            std::vector<double> all(static_cast<std::size_t>(keys.shape[2])), cache = all;
            for (TokenIndex t = 0; t < step.end; ++t)
                for (std::size_t c = 0; c < all.size(); ++c) {
                    const double number =
                        keys.data[static_cast<std::size_t>((keys.shape[1] + t) * keys.shape[2]) + c]; // KV head 1
                    all[c] += number / double(step.end);
                    cache[c] += gone.count(t) ? 0 : number / double(step.cached);
                }
            double dot = 0, a = 0, b = 0;
            for (std::size_t c = 0; c < all.size(); ++c)
                dot += all[c] * cache[c], a += all[c] * all[c], b += cache[c] * cache[c];
            QVERIFY(std::abs(data->drift[i].cosine - dot / std::sqrt(a * b)) < 1e-9);
            QVERIFY(std::abs(data->drift[i].ratio - std::sqrt(b / a)) < 1e-9);
            gone.insert(step.evicted[1].begin(), step.evicted[1].end());
        }
        QVERIFY(data->drift.front().cosine > 1 - 1e-9 &&
                data->drift.back().cosine < 0.999); // the first step has lost nothing yet
        const Scene scene = viewById("block_timeline").buildScene(input, options, viewport(620, 420, *m_text));
        QCOMPARE(cloudNamed(scene, "drift")->points->size(), data->drift.size());
        QCOMPARE(viewById("block_timeline").table(input, options).rowCount, std::ssize(data->drift));
        input.cursor = result.steps[1].end;
        QCOMPARE(cloudNamed(viewById("block_timeline").buildScene(input, options, viewport(620, 420, *m_text)), "drift")
                     ->points->size(),
                 std::size_t{2});
    }

    // Every mark is a run of the pane's policy with that block; the prompt at once is a level.
    void theErrorIsShownAgainstTheBlockSize() {
        const ParameterValues options = optionsOf(viewById("block_timeline"), {{"picture", "block_size"}});
        const ViewInput input =
            inputFor(viewById("block_timeline"), {"keydiff@0.25"}, options); // needs no block of its own
        const auto data = dataAs<BlockTimelineData>(input);
        std::vector<std::int64_t> blocks;
        for (const auto& size : data->sizes) {
            blocks.push_back(size.block);
            const auto run = measured("keydiff,prompt_block=" + std::to_string(size.block) + "@0.25", 3);
            double sum = 0;
            for (std::size_t q = 4; q < 8; ++q) // the query heads of KV head 1
                sum += run->fidelity->meanOutputError[q];
            QCOMPARE(size.error, sum / 4);
            QCOMPARE(size.overlap,
                     jaccard(run->selection.heads[1].kept, measured("keydiff@0.25", 3)->selection.heads[1].kept));
        }
        QCOMPARE(blocks, (std::vector<std::int64_t>{0, 16, 32, 64, 128, 256}));
        const Scene scene = viewById("block_timeline").buildScene(input, options, viewport(620, 420, *m_text));
        const PointCloudItem* marks = cloudNamed(scene, "block sizes");
        QCOMPARE(marks->points->size(), std::size_t{5});
        const PointFacts facts = viewById("block_timeline").factsAt(input, options, scene, (*marks->points)[3]);
        QCOMPARE(facts.rows[0].second, std::string("128"));
        QVERIFY(facts.settingChange);
        QCOMPARE(facts.settingChange->values,
                 (std::vector<std::pair<std::string, std::string>>{{"prompt_block", "128"}}));
        const std::string finding = viewById("block_timeline").finding(input, options);
        QVERIFY2(finding.find(" at once and ") != std::string::npos &&
                     finding.find("blocks of 16") != std::string::npos,
                 finding.c_str());
        const auto findingOf = [&](double atOnce, double small, double large) {
            BlockTimelineData made = *data;
            made.sizes = {{0, atOnce, 1}, {16, small, 1}, {32, large, 1}};
            ViewInput other = input;
            other.data.value = std::make_shared<const BlockTimelineData>(std::move(made));
            return QString::fromStdString(viewById("block_timeline").finding(other, options));
        };
        QVERIFY(findingOf(0.1, 0.2, 0.3).endsWith("; least at once"));
        QVERIFY(findingOf(0.3, 0.2, 0.1).endsWith("; least, 0.1, in blocks of 32"));
        QVERIFY(findingOf(0.2, 0.2, 0.3).endsWith("chosen at once)"));
        QVERIFY(viewById("block_timeline")
                    .finding(inputFor(viewById("block_timeline"), {"exact"}, options), options)
                    .find("Choose a policy with a prompt block") != std::string::npos);
        for (const char* picture : {"drift", "block_size"})
            for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(620, 420), QSize(900, 700)}) {
                const ParameterValues chosen = optionsOf(viewById("block_timeline"), {{"picture", picture}});
                const Scene sized =
                    viewById("block_timeline")
                        .buildScene(inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, chosen),
                                    chosen, viewport(size.width(), size.height(), *m_text));
                QVERIFY(cloudNamed(sized, picture == std::string("drift") ? "drift" : "block sizes"));
                QCOMPARE(misplacedTexts(sized, *m_text), QStringList());
            }
    }

    // At a cursor nothing is known of what comes later: no later token, no later eviction.
    void timelineAtACursorShowsOnlyWhatWasRead() {
        const ParameterValues options = optionsOf(viewById("block_timeline"));
        ViewInput input = inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, options);
        const RunResult& result = *input.panes[0].result;
        for (const std::size_t events : {std::size_t{0}, std::size_t{2}, result.steps.size()}) {
            input.cursor = events ? result.steps[events - 1].end : 100;
            const Scene scene = viewById("block_timeline").buildScene(input, options, viewport(640, 420, *m_text));
            std::size_t evictions = 0;
            for (std::size_t i = 0; i < events; ++i) evictions += result.steps[i].evicted[1].size();
            QCOMPARE(cloudNamed(scene, "evicted")->points->size(), evictions);
            const double x = scene.plot.x + scene.plot.width * *input.cursor / 995.0;
            for (const Drawable& item : scene.items)
                if (const auto* line = std::get_if<PolylineItem>(&item);
                    line && line->points.size() == 2 && line->points[0].y == line->points[1].y)
                    QVERIFY(line->points[1].x <= x + 1 || line->points[0].y > scene.plot.bottom() - 1);
            const std::string finding = viewById("block_timeline").finding(input, options);
            QVERIFY2(finding.find(std::to_string(evictions) + " evictions in " + std::to_string(events) + " step") !=
                         std::string::npos,
                     finding.c_str());
            const auto caption = viewById("block_timeline").caption(input, options);
            const std::string leaving =
                events ? std::to_string(result.steps[events - 1].evicted[1].size()) + " leave" : "holds all";
            QVERIFY2(caption.find(leaving) != std::string::npos, caption.c_str());
            QVERIFY(events == result.steps.size() || paintSceneAsText(scene).find("not read yet") != std::string::npos);
        }
        const ParameterValues drift = optionsOf(viewById("block_timeline"), {{"picture", "drift"}});
        ViewInput drifting = inputFor(viewById("block_timeline"), {"keydiff,prompt_block=128@0.25"}, drift);
        drifting.cursor = 300; // two blocks of 128 were read
        const std::string said = viewById("block_timeline").finding(drifting, drift);
        QVERIFY2(said.find("after 256 tokens") != std::string::npos && said.find("995") == std::string::npos,
                 said.c_str());
        QVERIFY(viewById("block_timeline")
                    .stepSequence(inputFor(viewById("block_timeline"), {"keydiff@0.25"}, options), options)
                    .events.empty());
    }
};

KVSCOPE_OFFSCREEN_TEST(BlockTimelineViewTest)
#include "block_timeline_view_test.moc"
