// The token profile: where scores spread over powers of ten they are told apart, and protected tokens have their lane.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/view.h"

#include <QtTest>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

const PointCloudItem& cloudNamed(const Scene& scene, const char* name) {
    for (const Drawable& item : scene.items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == name) return *cloud;
    static PointCloudItem none;
    none.points = std::make_shared<const std::vector<Point>>();
    return none;
}

} // namespace

class TokenProfileViewTest : public ViewTest {
    Q_OBJECT

public:
    TokenProfileViewTest() : ViewTest(viewById("token_profile"), 900, 420) {}

private:
    using Set = std::vector<std::pair<std::string, std::string>>;
    Scene sceneOf(const std::string& policy, const Set& set) const {
        const ParameterValues options = optionsOf(m_view, set);
        return build(needleInput({policy}), options);
    }
    /// Heights of all evicted marks above the foot of the plot, as shares of it; sorted.
    static std::vector<double> heightsOf(const Scene& scene, const char* name) {
        std::vector<double> heights;
        for (const Point& at : *cloudNamed(scene, name).points)
            heights.push_back((scene.plot.bottom() - at.y) / scene.plot.height);
        std::ranges::sort(heights);
        return heights;
    }

private slots:
    // In a low picture the axis' title loses its unit as a whole.
    void aTitleIsNotCutInItsUnit() {
        const ViewInput input = needleInput({"streaming_llm@0.1"});
        const auto has = [&](double height, const char* title) {
            const auto texts =
                scene_checks::textsOf(m_view.buildScene(input, optionsOf(m_view), viewport(400, height, m_text)));
            return std::ranges::count(texts, std::string(title)) == 1;
        };
        QVERIFY(has(420, "score: position (0-based)"));
        QVERIFY(has(180, "score: position"));
    }

    // SnapKV's attention scores: linear, nine of ten evicted tokens lie in a strip of a twentieth of the height.
    void attentionScoresAreToldApart() {
        const auto spreadOf = [](const std::vector<double>& heights) {
            return heights[heights.size() * 19 / 20] - heights[heights.size() / 20];
        };
        const Scene linear = sceneOf("snapkv@0.1", {{"axis", "linear"}}), automatic = sceneOf("snapkv@0.1", {}),
                    logarithmic = sceneOf("snapkv@0.1", {{"axis", "log"}}),
                    rank = sceneOf("snapkv@0.1", {{"axis", "rank"}});
        QVERIFY(spreadOf(heightsOf(linear, "evicted")) < 0.2);
        QVERIFY2(spreadOf(heightsOf(automatic, "evicted")) > 2 * spreadOf(heightsOf(linear, "evicted")),
                 qPrintable(QString::number(spreadOf(heightsOf(automatic, "evicted")))));
        QCOMPARE(heightsOf(automatic, "evicted"), heightsOf(logarithmic, "evicted"));
        QVERIFY(spreadOf(heightsOf(rank, "evicted")) > 0.5);
        // KeyDiff's have signs: they stay as they are.
        QCOMPARE(heightsOf(sceneOf("keydiff@0.1", {}), "evicted"),
                 heightsOf(sceneOf("keydiff@0.1", {{"axis", "linear"}}), "evicted"));
    }

    // On every axis the kept lie above the evicted, and no protected token stretches it.
    void theAxesAgreeOnTheOrder() {
        for (const char* axis : {"linear", "log", "rank"}) {
            const Scene scene = sceneOf("snapkv@0.1", {{"axis", axis}});
            const auto kept = heightsOf(scene, "kept"), evicted = heightsOf(scene, "evicted"),
                       guarded = heightsOf(scene, "protected");
            QVERIFY2(!kept.empty() && !guarded.empty() && kept.front() >= evicted.back() - 1e-9, axis);
            QVERIFY2(guarded.front() > kept.back() && guarded.front() == guarded.back(), axis); // one lane, at the top
            QVERIFY2(kept.back() > 0.75, axis);
            QCOMPARE(scene_checks::overlappingTexts(scene, m_text), QStringList());
        }
    }

    // Query heads that choose for themselves evict tokens whose mean score is above the smallest kept one.
    void theLineIsNoRuleWhereQueryHeadsChoose() {
        const ParameterValues options = optionsOf(m_view);
        const auto sentence = [&](const char* policy) { return m_view.finding(needleInput({policy}), options); };
        const std::string group = sentence("keydiff@0.25"), heads = sentence("snapkv:minference@100t");
        QVERIFY2(group.starts_with("Tokens with a score of "), group.c_str());
        QVERIFY2(group.ends_with("lie in the first half of the tokens before the cut"), group.c_str());
        QVERIFY2(heads.starts_with("The smallest kept score is ") && heads.find(" at or above it;") < heads.size(),
                 heads.c_str());
        const std::string text = paintSceneAsText(sceneOf("snapkv:minference@100t", {}));
        QVERIFY(text.find(": smallest kept score ") != std::string::npos && text.find("stays") == std::string::npos);
    }

    // Ranks count the protected tokens too: the legend names the rank at which the line stands.
    void theLegendTellsTheRankOfTheLine() {
        const Scene scene = sceneOf("snapkv:paper@0.25", {{"axis", "rank"}});
        const auto kept = heightsOf(scene, "kept");
        const double rank = scene.yMax - kept.front() * (scene.yMax - scene.yMin); // the axis runs down
        QVERIFY2(paintSceneAsText(scene).find(fmt::format("rank {}: score ≥", std::llround(rank))) != std::string::npos,
                 qPrintable(QString::number(rank)));
    }

    // Keys of equal norm, far from 0: the axis is as wide as doubles need there.
    void equalLargeScoresHaveAnAxis() {
        ViewInput input = needleInput({"key_norm@0.25"});
        RunResult equal = *input.panes[0].result;
        HostTensor scores = equal.scores;
        std::ranges::fill(scores.data, 1e7F);
        equal.scores = std::make_shared<const HostTensor>(std::move(scores));
        input.panes[0].result = std::make_shared<const RunResult>(std::move(equal));
        const Scene scene = build(input, optionsOf(m_view));
        QVERIFY(scene.yMax - scene.yMin > 1e-3);
        const auto kept = heightsOf(scene, "kept");
        QVERIFY(!kept.empty() && kept.front() > 0 && kept.back() < 0.5);
    }

    // The text of a token at the upper edge stands beside it.
    void noTextIsCutByTheUpperEdge() {
        for (const char* policy : {"keydiff@0.25", "keydiff,prompt_block=128@0.25", "snapkv@0.1"}) {
            const Scene scene = build(needleInput({policy}), optionsOf(m_view), 700, 210);
            for (const auto& [text, box] : scene_checks::placedTexts(scene, m_text))
                QVERIFY2(box.x < scene.plot.x || box.y >= scene.plot.y || box.bottom() <= scene.plot.y, text.c_str());
            QCOMPARE(scene_checks::overlappingTexts(scene, m_text), QStringList());
        }
    }

    // A zoom on one axis is none on another.
    void anotherAxisIsShownWhole() {
        const ParameterValues options = optionsOf(m_view, {{"axis", "rank"}});
        Viewport shown = viewport(900, 420, m_text);
        shown.range = Viewport::Range{100, 500, -4.5, -2.0}; // of the logarithms
        const Scene scene = m_view.buildScene(needleInput({"snapkv@0.1"}), options, shown);
        QVERIFY(scene.yMax > 900 && scene.xMin == 100);
    }
};

KVSCOPE_OFFSCREEN_TEST(TokenProfileViewTest)
#include "token_profile_view_test.moc"
