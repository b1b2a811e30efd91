// The token strip's scroll bar: each row of pixels says which share of its tokens is kept, against a count of
// every token.
#include "app/text/qt_text_service.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/scene/scene_builder.h"
#include "views/token_strip/strip_picture.h"

#include <QtTest>

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

class StripScrollBarTest : public QObject {
    Q_OBJECT

private slots:
    void theScrollBarSaysHowDenselyTokensAreKept_data() {
        QTest::addColumn<int>("ownCut");
        QTest::newRow("the session's cut") << 995;
        QTest::newRow("a recorded list's own") << 500;
    }
    void theScrollBarSaysHowDenselyTokensAreKept() {
        QFETCH(int, ownCut);
        ViewInput input = needleInput({"keydiff@0.3"});
        auto own = std::make_shared<RunResult>(*input.panes[0].result);
        own->visible = own->request.cut.token = ownCut;
        for (HeadSelection& head : own->selection.heads)
            std::erase_if(head.kept, [&](TokenIndex token) { return token >= ownCut; });
        input.panes[0].result = own;
        const QtTextService text;
        const Theme& theme = themeOf(ThemeId::Light);
        const auto layout = layoutStrip(*input.capture, 300, text);
        const StripScene strip{.input = input,
                               .layout = *layout,
                               .mode = StripMode::Panes,
                               .theme = theme,
                               .colourMapName = "viridis",
                               .active = &input.panes[0],
                               .activeStates = tokenStates(input, input.panes[0])};
        const Colour full = policyStyle("keydiff", ThemeId::Light).colour;
        for (const std::int64_t rows : {37, 4000}) { // tokens that share a row of pixels, and tokens that fill several
            Scene scene;
            SceneBuilder builder(scene, text);
            drawScrollBar(builder, strip, {0, 0, kScrollBarWidth, static_cast<double>(rows)}, 0, 5);
            const auto& pixels = *std::get<ImageItem>(scene.items.front()).rgba;
            std::vector<int> all(static_cast<std::size_t>(rows), 0), kept(all);
            for (std::int64_t row = 0; row < rows; ++row)
                for (TokenIndex token = 0; token < ownCut; ++token) {
                    const double top = static_cast<double>(row) * 1028 / static_cast<double>(rows),
                                 bottom = static_cast<double>(row + 1) * 1028 / static_cast<double>(rows);
                    const bool isFirst = token == std::floor(top), isWithin = token >= top && token + 1 <= bottom;
                    if (!isFirst && !isWithin) continue;
                    ++all[static_cast<std::size_t>(row)];
                    kept[static_cast<std::size_t>(row)] += strip.activeStates[token] != TokenState::Evicted;
                }
            for (std::size_t row = 0; row < all.size(); ++row) {
                const double share = all[row] > 0 ? static_cast<double>(kept[row]) / all[row] : 0;
                const Colour ground = all[row] > 0 ? theme.sunken : theme.masked,
                             wanted = share > 0 ? blend(withAlpha(full, 0.15 + 0.85 * share), ground) : ground;
                const std::uint8_t* pixel = pixels.data() + 4 * (6 * row + 3);
                QCOMPARE((Colour{pixel[0], pixel[1], pixel[2], 255}), wanted);
            }
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(StripScrollBarTest)
#include "strip_scroll_bar_test.moc"
