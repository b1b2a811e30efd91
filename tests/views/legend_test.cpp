// Legends: who does not fit into a row stands in the next one. No view leaves an entry out, on the screen or in a
// figure.
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// A view with what it needs to show its longest legend.
struct Shown {
    const char* view;
    std::vector<std::string> panes;
    std::vector<std::pair<std::string, std::string>> options = {};
    double middle = 13; ///< of its first row
};

const std::vector<std::string> kFour = {"snapkv@0.1", "keydiff@0.1", "streaming_llm@0.1", "uniform@0.1"};

std::vector<Shown> allShown() {
    return {{"curves", kFour, {{"seeds", "2"}}},
            {"token_strip", kFour, {}, 12},
            {"token_classes", kFour},
            {"phase_map", {"snapkv@0.1", "pyramidkv@0.1"}, {{"grid", "2"}}},
            {"token_profile", {"snapkv@0.1"}},
            {"error_difference", kFour},
            {"key_projection", {"keydiff@0.1"}, {}, 15},
            {"key_projection", {"snapkv@0.1"}, {}, 15},
            {"block_timeline", {"keydiff,prompt_block=128@0.1"}},
            {"calibration", kFour},
            {"geometry", kFour, {{"figure", "log_det"}}},
            {"geometry", kFour, {{"figure", "table3"}}},
            {"keep_probability", {"uniform@0.1"}, {{"seeds", "4"}}},
            {"score_plane", {"compactor@0.1"}},
            {"leverage", {"compactor@0.1"}, {{"picture", "scatter"}}},
            {"clustering", {"subgen"}, {{"picture", "delta"}}},
            {"variant_diff", {"keydiff@0.1"}},
            {"walk", {"balancekv,sink=32,recent=32@0.25"}},
            {"merge_tree", {"balancekv_stream"}}};
}

/// Texts of the rows that a legend may have.
std::vector<std::string> legendTexts(const Scene& scene, double middle, int rows) {
    std::vector<std::string> texts;
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item))
            for (int row = 0; row < rows; ++row)
                if (text->vertical == VerticalAlign::Middle && text->horizontal == HorizontalAlign::Left &&
                    std::abs(text->position.y - middle - kLegendPitch * row) < 0.01)
                    texts.push_back(text->text);
    return texts;
}

bool isShownIn(const std::vector<std::string>& texts, const std::string& label) {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        if (text == label) return true;
        const std::string ellipsis = "…";
        return text.size() > ellipsis.size() && text.ends_with(ellipsis) &&
               label.starts_with(text.substr(0, text.size() - ellipsis.size()));
    });
}

} // namespace

class LegendTest : public ViewTest {
    Q_OBJECT

public:
    LegendTest() : ViewTest(viewById("key_projection")) {}

private slots:
    void rowsFillUpBeforeLabelsAreCut() {
        std::vector<LegendEntry> entries;
        for (const char* name : {"A SnapKV", "B KeyDiff", "C StreamingLLM", "D Uniform random"})
            entries.push_back({name, Marker::Circle, themeOf(ThemeId::Light).kept, {}, 3});
        QCOMPARE(legendRows(entries, 1000, 4, m_text), 1);
        QCOMPARE(legendRows(entries, 297, 4, m_text), 2); // the single column of a paper
        QCOMPARE(legendRows(entries, 297, 1, m_text), 1);
        QVERIFY(legendRows(entries, 130, 4, m_text) > 2); // in two, less than a word would be left of each
        QCOMPARE(legendRows({}, 297, 4, m_text), 1);
        for (const double width : {130.0, 200.0, 297.0, 420.0, 1000.0}) {
            Scene scene;
            SceneBuilder builder(scene, m_text);
            const int rows = legendRows(entries, width, 4, m_text);
            const double end = drawLegend(builder, {10, 13}, width, entries, themeOf(ThemeId::Light), rows);
            const double right = end - 14; // a gap follows the last
            QVERIFY(right <= 10 + width + 0.5);
            QVERIFY(right <=
                    10.5 + legendWidth(entries, width, rows, m_text)); // a cut label may be narrower than its place
            const auto texts = legendTexts(scene, 13, rows);
            QCOMPARE(texts.size(), entries.size());
            for (std::size_t i = 0; i < entries.size(); ++i)
                QVERIFY2(width < 297 ? isShownIn(texts, entries[i].label) : texts[i] == entries[i].label,
                         texts[i].c_str());
            QCOMPARE(scene_checks::overlappingTexts(scene, m_text), QStringList());
        }
    }

    void noViewLeavesAnEntryOut_data() {
        QTest::addColumn<int>("index");
        const auto all = allShown();
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::newRow(qPrintable(QString("%1 %2").arg(i).arg(all[i].view))) << static_cast<int>(i);
    }

    void noViewLeavesAnEntryOut() {
        QFETCH(int, index);
        const Shown shown = allShown()[static_cast<std::size_t>(index)];
        const View& view = viewById(shown.view);
        const ParameterValues options = optionsOf(view, shown.options);
        ViewInput input = inputFor(view, shown.panes, options);
        if (view.card().data.empty())
            for (PaneData& pane : input.panes)
                pane.result = runner().run(needleRequest(shown.panes[static_cast<std::size_t>(pane.letter - 'A')]), {});
        const auto whole = legendTexts(view.buildScene(input, options, viewport(3000, 420, m_text)), shown.middle, 1);
        QVERIFY(!whole.empty());
        for (const QSize size : {QSize(317, 240), QSize(300, 220), QSize(460, 300), QSize(620, 420), QSize(900, 700)})
            for (const bool forExport : {false, true}) {
                Viewport frame =
                    viewport(size.width(), size.height(), m_text, forExport ? ThemeId::Paper : ThemeId::Light);
                frame.forExport = forExport;
                const Scene scene = view.buildScene(input, options, frame);
                // A printed figure may name its curves at their ends.
                const auto texts = forExport ? scene_checks::textsOf(scene) : legendTexts(scene, shown.middle, 4);
                for (const std::string& label : whole)
                    QVERIFY2(isShownIn(texts, label),
                             qPrintable(QString("%1 px: %2").arg(size.width()).arg(QString::fromStdString(label))));
                if (view.card().id == "token_strip") continue; // its text scrolls on beyond the edge
                const QStringList wrong =
                    scene_checks::overlappingTexts(scene, m_text) + scene_checks::clippedTexts(scene, m_text);
                QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1 px: %2").arg(size.width()).arg(wrong.join("; "))));
            }
    }
};

KVSCOPE_OFFSCREEN_TEST(LegendTest)
#include "legend_test.moc"
