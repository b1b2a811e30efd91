// Panes of one policy: the same colour, yet never the same look, in the helper and in the views that put panes side by
// side.
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/attention_map/map_picture.h"
#include "views/common/pane_identity.h"
#include "views/common/policy_style.h"
#include "views/phase_map/phase_map_data.h"
#include "views/view.h"

#include <algorithm>
#include <vector>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

const std::vector<double> kSecond = {2, 2};

ViewInput inputOf(const std::vector<std::string>& specs) {
    ViewInput input = needleInput(specs);
    for (std::size_t i = 0; i < specs.size(); ++i) input.panes[i].result = measured(specs[i], 3);
    return input;
}

/// Drawables with a stroke of this colour and dash.
template <class Item>
std::vector<const Item*> strokedAs(const Scene& scene, Colour colour, const std::vector<double>& dash) {
    std::vector<const Item*> found;
    for (const Drawable& drawable : scene.items)
        if (const auto* item = std::get_if<Item>(&drawable);
            item && item->stroke.colour == colour && item->stroke.dash == dash)
            found.push_back(item);
    return found;
}

std::vector<bool> railOf(const PaneIdentity& identity) {
    std::vector<bool> rail;
    for (int y = 0; y < static_cast<int>(kRailHeight); ++y) rail.push_back(identity.railHas(y));
    return rail;
}

double contrast(Colour a, Colour b) {
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

} // namespace

class PaneIdentityTest : public ViewTest {
    Q_OBJECT

public:
    PaneIdentityTest() : ViewTest(viewById("token_strip")) {}

private slots:
    void noTwoOfFourPanesLookAlike_data() {
        QTest::addColumn<QString>("policy");
        for (const char* policy : {"keydiff", "key_norm", "uniform", "streaming_llm", "recorded"})
            QTest::newRow(policy) << policy;
    }

    void noTwoOfFourPanesLookAlike() {
        QFETCH(QString, policy);
        std::vector<PaneIdentity> panes;
        for (int earlier = 0; earlier < 4; ++earlier) panes.emplace_back(policy.toStdString(), earlier, ThemeId::Dark);
        for (std::size_t a = 0; a < panes.size(); ++a)
            for (std::size_t b = a + 1; b < panes.size(); ++b) {
                QCOMPARE(panes[a].colour(), panes[b].colour());
                QVERIFY(panes[a].dash() != panes[b].dash());
                QVERIFY(!(panes[a].areaFill() == panes[b].areaFill()));
                QVERIFY(railOf(panes[a]) != railOf(panes[b]));
            }
        QCOMPARE(panes[0].dash(), policyStyle(policy.toStdString(), ThemeId::Dark).dash);
        QCOMPARE(panes[0].areaOutline().colour.a, std::uint8_t{0});
        QCOMPARE(railOf(panes[0]), std::vector<bool>(8, true));
    }

    void theSecondPaneOfAPolicyIsDashed() {
        const ViewInput input = inputOf({"keydiff@0.1", "snapkv@0.1", "keydiff@0.3"});
        QVERIFY(!identityOf(input, input.panes[0], ThemeId::Light).isRepeated());
        QVERIFY(!identityOf(input, input.panes[1], ThemeId::Light).isRepeated());
        const PaneIdentity second = identityOf(input, input.panes[2], ThemeId::Light);
        QCOMPARE(second.dash(), kSecond);
        QCOMPARE(railOf(second), (std::vector<bool>{true, true, false, false, true, true, false, false}));
        // Data that were made before a pane changed its policy keep the policy they had.
        QVERIFY(!identityOf(input, 'C', "snapkv_of_before", ThemeId::Light).isRepeated());
        QCOMPARE(identityOf(input, 'C', "snapkv", ThemeId::Light).dash(), kSecond);
    }

    void wordsAreReadableOnEveryArea() {
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark})
            for (const Policy* policy : allPolicies())
                for (int earlier = 0; earlier < 4; ++earlier) {
                    const Colour ground =
                        blend(PaneIdentity(policy->card().id, earlier, theme).areaFill(), themeOf(theme).canvas);
                    QVERIFY2(contrast(textOn(ground), ground) >=
                                 4, // the most that ink or paper can have on every grey is 4.1
                             policy->card().id.c_str());
                }
        QCOMPARE(textOn({250, 240, 60, 255}), themeOf(ThemeId::Light).ink);
        QCOMPARE(textOn({20, 10, 120, 255}), themeOf(ThemeId::Dark).ink);
    }

    void theStripBreaksItsBars() {
        const ViewInput input = inputOf({"keydiff@0.1", "keydiff@0.3"});
        const Scene scene = m_view.buildScene(input, optionsOf(m_view), viewport(1200, 3000, m_text));
        const Colour colour = policyStyle("keydiff", ThemeId::Light).colour;
        std::size_t solid = 0;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item); box && box->fill == colour) ++solid;
        QCOMPARE(solid, std::size_t{100});                                                      // ceil(99.5)
        QCOMPARE(strokedAs<PolylineItem>(scene, colour, kSecond).size(), std::size_t{299 + 1}); // and its legend
    }

    void railsOfTheMapAreStriped() {
        const View& map = viewById("attention_map");
        const ParameterValues options = optionsOf(map);
        ViewInput input = inputFor(map, {"keydiff@0.1", "keydiff@0.3"}, options);
        input.activePane = 1;
        const Scene scene = map.buildScene(input, options, viewport(600, 600, m_text));
        std::vector<std::pair<int, int>> rails;
        for (const Drawable& item : scene.items)
            if (const auto* image = std::get_if<ImageItem>(&item);
                image && std::min(image->box.width, image->box.height) == kRailHeight)
                rails.emplace_back(image->width, image->height);
        QCOMPARE(rails.size(), std::size_t{3}); // two above, the active pane's beside the map
        QCOMPARE(rails[0].second, 1);
        QCOMPARE(rails[1].second, 8);
        QCOMPARE(rails[2].first, 8);
    }

    void barsAndCellsGetAnOutline() {
        const Colour colour = policyStyle("keydiff", ThemeId::Light).colour;
        const ViewInput input = inputOf({"keydiff@0.1", "keydiff@0.3"});
        for (const View* view : {&viewById("token_classes"), &viewById("error_difference")}) {
            const ParameterValues options = optionsOf(*view);
            ViewInput own = input;
            if (!view->card().data.empty()) fillData(own, *view, options);
            const Scene scene = view->buildScene(own, options, viewport(3000, 600, m_text));
            QVERIFY2(!strokedAs<RectangleItem>(scene, colour, kSecond).empty(), view->card().id.c_str());
            QCOMPARE(strokedAs<PolygonItem>(scene, colour, kSecond).size(), std::size_t{1}); // the legend's square
        }
        // Of a phase map the second pane's cells, wherever it wins.
        const ParameterValues options = optionsOf(
            viewById("phase_map"), {{"colour", "winner"}, {"x", "budget=0.05,0.1,0.2,0.4"}, {"y", "window=8,32,64"}});
        const ViewInput both =
            inputFor(viewById("phase_map"), {"snapkv,pool_width=7@0.25", "snapkv,pool_width=1@0.25"}, options);
        const auto data = dataAs<PhaseMapData>(both);
        const auto wins = std::count_if(data->cells.begin(), data->cells.end(),
                                        [&](const PhaseCell& cell) { return data->winner(cell) == 1; });
        QVERIFY(wins > 0);
        const Scene scene = viewById("phase_map").buildScene(both, options, viewport(600, 400, m_text));
        QCOMPARE(std::ssize(strokedAs<RectangleItem>(scene, policyStyle("snapkv", ThemeId::Light).colour, kSecond)),
                 wins);
    }
};

KVSCOPE_OFFSCREEN_TEST(PaneIdentityTest)
#include "pane_identity_test.moc"
