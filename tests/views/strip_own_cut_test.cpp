// The token strip tells what a pane evicted from what it never saw, or never gave a score.
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/policy_style.h"
#include "views/token_strip/strip_picture.h"
#include "views/view.h"

#include <algorithm>
#include <memory>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

/// Of one token.
Box boxOf(const Scene& scene, TokenIndex token) {
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick == PickId{PickId::Kind::Token, token})
            return box->box;
    return {};
}

} // namespace

class StripOwnCutTest : public ViewTest {
    Q_OBJECT

public:
    StripOwnCutTest() : ViewTest(viewById("token_strip"), 900, 4000) {} // high enough for the whole needle capture

private slots:
    // What a recorded list never saw is neither kept nor evicted by it.
    void tokensAfterThePanesOwnCutAreUnseen() {
        ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.1"});
        auto own = std::make_shared<RunResult>(*input.panes[0].result);
        own->visible = own->request.cut.token = 500;
        for (HeadSelection& head : own->selection.heads) head.kept = {100, 498, 499}, head.protectedTokens = {};
        input.panes[0].result = own;
        const auto sceneOf = [&](const char* colour) { return build(input, optionsOf(m_view, {{"colour", colour}})); };
        const Scene state = sceneOf("state");
        const auto evicted = std::ranges::count_if(state.items, [&](const Drawable& item) {
            const auto* line = std::get_if<PolylineItem>(&item);
            return line && line->stroke.dash == std::vector<double>{1.5, 2};
        });
        QCOMPARE(evicted, std::ptrdiff_t{497});
        const auto legend = textsOf(sceneOf("panes"));
        QVERIFY(std::ranges::count(legend, "no bar: evicted by that pane, or after its own cut") == 1);
        // Of two panes only those tokens differ that both saw.
        const Scene onlyInB = sceneOf("only_in_b");
        const Box last = boxOf(onlyInB, 500);
        for (const RectangleItem* bar : boxesBelowTitle(onlyInB, policyStyle("snapkv", ThemeId::Light).colour))
            QVERIFY(bar->box.y < last.y + kStripLead &&
                    (bar->box.y < last.y || bar->box.x < last.x)); // it stands before token 500
    }

    // Exact attention has no scores: the legend cannot promise their ranks.
    void aPaneWithoutScoresSaysSo() {
        const auto texts = textsOf(build(needleInput({"exact"}), optionsOf(m_view, {{"colour", "score"}})));
        QVERIFY(std::ranges::count(texts, "A Exact gives tokens no score") == 1);
        QVERIFY(std::ranges::count(texts, "worst") == 0);
    }
};

KVSCOPE_OFFSCREEN_TEST(StripOwnCutTest)
#include "strip_own_cut_test.moc"
