// Pictures that claim more than they show: heads that were not drawn, octaves that are dropped, counts that end early,
// tokens that are left out, and what an exported figure says below.
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/merge_tree_fixture.h"
#include "tests/views/view_test.h"
#include "views/clustering/clustering_data.h"
#include "views/common/view_facts.h"
#include "views/curves/curves_data.h"
#include "views/leverage/leverage_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <QtTest>

#include <algorithm>
#include <numeric>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::textWith;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

ViewInput inputOf(const char* view, std::shared_ptr<const CaptureReader> capture, const std::vector<std::string>& specs,
                  const ParameterValues& options, int layer, int kvHead) {
    ViewInput input = makeInput(std::move(capture), specs, layer, kvHead);
    fillData(input, viewById(view), options);
    return input;
}

/// The tree of the octave of norms up to 4, above or below the erase line.
ViewInput octaveInput(double epsilon) {
    ViewInput input = handInput(std::nullopt);
    auto data = std::make_shared<MergeTreeData>(*dataAs<MergeTreeData>(input));
    auto stream = std::make_shared<BalanceStream>(*data->stream);
    stream->trees[0].numerator = true;
    stream->trees[0].bucket = 2;
    stream->norms = {std::vector<float>(18, 4.0F)};
    stream->settings.erase = EraseLine::Proof; // epsilon * 4 / sqrt(18)
    stream->settings.epsilon = epsilon;
    data->stream = stream;
    input.data.value = data;
    return input;
}

} // namespace

class PictureClaimsTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;

    Scene figure(const char* view, const ViewInput& input, const ParameterValues& options, double width = 900) const {
        Viewport paper = viewport(width, 600, *m_text, ThemeId::Paper);
        paper.forExport = true;
        return viewById(view).buildScene(input, options, paper);
    }

private slots:
    void initTestCase() { m_text = std::make_unique<QtTextService>(); }

    void curvesOfTheLayerNameNoHead() {
        const View& view = viewById("curves");
        for (const auto& [heads, words] : {std::pair("layer", "layer 2 (0-based), all its heads"),
                                           std::pair("kv_head", "layer 2, KV head 1 (0-based)")}) {
            const ParameterValues options = optionsOf(view, {{"heads", heads}, {"vary", "budget=0.1,0.3"}});
            const ViewInput input = inputOf("curves", needleCapture(), {"keydiff@0.25"}, options, 2, 1);
            const std::string below = textWith(figure("curves", input, options), "cut: ");
            QVERIFY2(below.starts_with(words), below.c_str());
        }
    }

    // The points lie at the layer's share, and so does the line, whichever head is shown.
    void theLineOfThePresentBudgetIsThatOfThePoints() {
        const View& view = viewById("curves");
        const ParameterValues options = optionsOf(view, {{"heads", "layer"}});
        std::string first;
        for (const int head : {0, 1}) {
            const ViewInput input =
                inputOf("curves", needleCapture(), {"compactor:compactor_vllm,page=1@0.25"}, options, 2, head);
            const std::string now = textWith(view.buildScene(input, options, viewport(900, 600, *m_text)), "now ");
            QVERIFY2(contains(now, " % of the layer"), now.c_str());
            QVERIFY2(head == 0 || now == first, now.c_str());
            first = now;
        }
    }

    void budgetsCanBeListed() {
        const View& view = viewById("curves");
        const ParameterValues options = optionsOf(view, {{"vary", "budget=0.3,0.1"}});
        const ViewInput input = inputFor(view, {"keydiff@0.25", "snapkv@0.25"}, options);
        const auto data = dataAs<CurvesData>(input);
        QVERIFY(variesBudget(*data));
        for (const Curve& curve : data->curves) {
            QCOMPARE(curve.points.size(), std::size_t{2});
            QVERIFY(curve.points[0].asked == 0.1 && curve.points[1].asked == 0.3);
        }
        const std::string finding = view.finding(input, options);
        QVERIFY2(contains(finding, "of 2 budgets"), finding.c_str());
        const std::string refusal = errorMessage([&] {
            inputFor(view, {"keydiff@0.25"}, optionsOf(view, {{"vary", "budget=100t"}}));
        });
        QVERIFY2(contains(refusal, "no share of the tokens"), refusal.c_str());
    }

    void equalCurvesHaveNoWinner() {
        const View& view = viewById("curves");
        const ParameterValues options = optionsOf(view);
        const std::string finding = view.finding(inputFor(view, {"keydiff@0.25", "keydiff@0.5"}, options), options);
        QVERIFY2(finding.starts_with("No curve alone has the smallest relative output error: the best are equal at "
                                     "11 of 11 budgets"),
                 finding.c_str());
        ViewInput input = inputFor(view, {"keydiff@0.25", "keydiff@0.5"}, options);
        auto data = std::make_shared<CurvesData>(*dataAs<CurvesData>(input));
        data->curves[1].points[0].mean /= 2;
        input.data.value = data;
        const std::string one = view.finding(input, options);
        QVERIFY2(one.starts_with("B KeyDiff has the") && contains(one, "at 1 of 11 budgets") &&
                     contains(one, "at 10 the best are equal"),
                 one.c_str());
    }

    // In prompt blocks the log is of the last block, and its walk is not the prompt's.
    void blocksHaveNoWalkOverThePrompt() {
        const View& view = viewById("clustering");
        const std::string blocks = "subgen_kcenter,prompt_block=128@200t";
        const std::string refusal = errorMessage([&] {
            inputFor(view, {blocks}, optionsOf(view, {{"picture", "overview"}}));
        });
        QVERIFY2(contains(refusal, "no walk over the whole prompt"), refusal.c_str());
        const ParameterValues radius = optionsOf(view, {{"picture", "radius"}});
        const ViewInput inBlocks = inputFor(view, {blocks}, radius),
                        atOnce = inputFor(view, {"subgen_kcenter@200t"}, radius);
        QCOMPARE(dataAs<ClusteringData>(inBlocks)->coverOrder, dataAs<ClusteringData>(atOnce)->coverOrder);
        QCOMPARE(dataAs<ClusteringData>(inBlocks)->coverRadius, dataAs<ClusteringData>(atOnce)->coverRadius);
    }

    void aPlotWithoutCentresHasNothingToRead() {
        const View& view = viewById("clustering");
        const ParameterValues options = optionsOf(view, {{"picture", "radius"}});
        const ViewInput input = inputFor(view, {"subgen_kcenter,recent=1000@0.25"}, options);
        QVERIFY(dataAs<ClusteringData>(input)->coverRadius.empty());
        const Scene scene = view.buildScene(input, options, viewport(700, 420, *m_text));
        QVERIFY(view.factsAt(input, options, scene, scene.plot.centre()).rows.empty());
    }

    void aCountThatStopsEarlyIsTold() {
        const View& view = viewById("clustering");
        const ParameterValues options = optionsOf(view, {{"picture", "delta"}});
        ViewInput input = needleInput({"keydiff@0.25"});
        auto data = std::make_shared<ClusteringData>();
        data->cut = data->medianRows = 995;
        data->most = 1024;
        data->curves = {{"keys", 1, {0.95, 1.0}, {0, 900}}, // stopped: narrower radii have more
                        {"values", 1, {0.8, 1.0}, {700, 300}},
                        {"later", 1, {0.9, 1.0}, {600, 500}}}; // still counting
        input.data.value = data;
        const std::string finding = view.finding(input, options);
        QVERIFY2(contains(finding, "keys more than 1,024, values 700") && !contains(finding, "later"), finding.c_str());
    }

    void allCentresOfTheBudgetAreListed() {
        const View& view = viewById("clustering");
        const ParameterValues options = optionsOf(view);
        const ViewInput input =
            inputOf("clustering", makeRandomCapture(5, 3200, 1, 2, 1, 4), {"subgen_kcenter@0.5"}, options, 0, 0);
        const auto data = dataAs<ClusteringData>(input);
        QVERIFY(data->centres && data->centres->order.size() > 1024);
        QCOMPARE(view.table(input, options).rowCount, std::ssize(data->centres->order));
        const std::string finding = view.finding(input, options);
        QVERIFY2(contains(finding, " with " + formatCount(std::ssize(data->centres->order))), finding.c_str());
    }

    void narrowHeadsHaveFewerComponents() {
        const View& view = viewById("key_projection");
        const ParameterValues options = optionsOf(view, {{"x_component", "5"}});
        const ViewInput input =
            inputOf("key_projection", makeRandomCapture(5, 60, 1, 2, 1, 4), {"keydiff@0.25"}, options, 0, 0);
        const Scene scene = view.buildScene(input, options, viewport(700, 500, *m_text));
        QVERIFY(!textWith(scene, "PC 4 (").empty() && textWith(scene, "PC 5").empty());
    }

    void keysBeforeRopeAreNamed() {
        const ParameterValues options = optionsOf(viewById("key_projection"), {{"source", "keys_pre_rope"}});
        const ViewInput input = inputOf("key_projection", needleCapture(), {"keydiff@0.25"}, options, 2, 1);
        QVERIFY(textWith(figure("key_projection", input, options), "cut: ").starts_with("keys before RoPE · "));
    }

    void aDroppedOctaveIsNotInMemory() {
        const View& view = viewById("merge_tree");
        const ParameterValues options = optionsOf(view);
        const ViewInput kept = octaveInput(1), dropped = octaveInput(5);
        QVERIFY(contains(view.finding(kept, options), " of 18 pairs read are in memory"));
        const std::string finding = view.finding(dropped, options);
        QVERIFY2(contains(finding, "Octave 2 lies below the erase line and is dropped: 0 of 18 pairs"),
                 finding.c_str());
        const auto states = [&](const ViewInput& input) {
            const ViewTable table = view.table(input, options);
            std::vector<std::string> found;
            for (std::int64_t row = 0; row < table.rowCount; ++row) found.push_back(table.cell(row, 10));
            return found;
        };
        QCOMPARE(std::ranges::count(states(kept), "live"), std::ptrdiff_t{1});
        QCOMPARE(std::ranges::count(states(dropped), "dropped"), std::ptrdiff_t{7});
        const Scene scene = view.buildScene(dropped, options, viewport(900, 600, *m_text));
        QVERIFY(textWith(scene, "2 live").empty() && !textWith(scene, "dropped, below the erase line").empty());
    }

    // The first delivery knows the query, and not yet its errors.
    void discrepanciesAreNotToldBeforeTheyAreKnown() {
        const View& view = viewById("merge_tree");
        const ParameterValues options = optionsOf(view);
        ViewInput input = needleInput({"balancekv_stream:greedy,batch=64,levels=3"});
        ViewDataMaker::Value first;
        makerFor(view)->make(runner(), dataRequest(input, options), {}, [&](const ViewDataMaker::Value& early) {
            if (!first) first = early;
        });
        QVERIFY(first);
        input.data.value = first;
        const std::string finding = view.finding(input, options);
        QVERIFY2(contains(finding, "pairs read are in memory") && !contains(finding, "discrepancy"), finding.c_str());
        QVERIFY(textWith(view.buildScene(input, options, viewport(900, 600, *m_text)), "0 %").empty());
    }

    void marksThatAreLeftOutAreCounted() {
        const View& view = viewById("leverage");
        const ParameterValues options = optionsOf(view, {{"picture", "tokens"}});
        ViewInput input = needleInput({"keydiff@0.25"}); // a budget of 249
        auto data = std::make_shared<LeverageData>();
        for (LeverageData::Scores* scores : {&data->exact, &data->sketched}) {
            scores->order.resize(60'249);
            std::iota(scores->order.begin(), scores->order.end(), TokenIndex{0});
            for (const TokenIndex token : scores->order)
                scores->scores.push_back(1.0F / (1.0F + static_cast<float>(token)));
            scores->spectrum = {1};
            scores->rank = 1;
            scores->sum = std::accumulate(scores->scores.begin(), scores->scores.end(), 0.0);
        }
        input.data.value = data;
        const Scene scene = view.buildScene(input, options, viewport(900, 600, *m_text));
        const PointCloudItem* neither = scene_checks::cloudNamed(scene, "neither");
        QVERIFY(neither && neither->points->size() == 20'000);
        QVERIFY(!textWith(scene, "neither, showing 20,000 of 60,000").empty());
    }

    // Narrow figures cut the end off: what marks a result stands in front, and what holds of all panes is said once.
    void marksStandInFront() {
        ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2"});
        for (PaneData& pane : input.panes) {
            auto result = std::make_shared<RunResult>(*pane.result);
            result->simulated = true;
            result->arithmetic = "fast";
            auto calibrated = std::make_shared<CalibratedBudget>();
            calibrated->asked = Budget::parse("tau=0.9");
            calibrated->retention = 0.25;
            calibrated->proxy = true;
            result->calibrated = calibrated;
            pane.result = result;
        }
        const std::string place = "layer 3, KV head 1 (0-based) · cut: " + input.cut.label;
        const std::string kept = " · A 25.0 % kept for tau = 0.9 · B 25.0 % kept for tau = 0.9";
        QCOMPARE(provenance(input, readyPanes(input)),
                 "fast arithmetic · simulated on full-attention tensors · tau by proxy · " + place + kept);
        auto exact = std::make_shared<RunResult>(*input.panes[0].result);
        exact->simulated = false;
        input.panes[0].result = exact;
        QCOMPARE(provenance(input, readyPanes(input)),
                 "fast arithmetic · B simulated on full-attention tensors · tau by proxy · " + place + kept);
    }
};

KVSCOPE_OFFSCREEN_TEST(PictureClaimsTest)
#include "picture_claims_test.moc"
