// Several panes in one figure, and the row of names above a plot: nobody is left out, nothing is cut off.
#include "app/export/figure.h"
#include "core/base/error.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/policy_style.h"
#include "views/scene/axes.h"

#include <algorithm>
#include <set>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Where the panels of a figure begin: the corners of their coloured lines.
std::set<std::pair<int, int>> panelsOf(const Scene& figure, const ViewInput& input) {
    std::set<std::pair<int, int>> corners;
    for (const Drawable& item : figure.items)
        if (const auto* line = std::get_if<RectangleItem>(&item); line && line->box.height == 2)
            for (const PaneData& pane : input.panes)
                if (line->fill == policyStyle(pane.policyId, ThemeId::Light).colour)
                    corners.insert({static_cast<int>(line->box.x - 8), static_cast<int>(line->box.y - 4)});
    return corners;
}

} // namespace

class FigurePanesTest : public ViewTest {
    Q_OBJECT

public:
    FigurePanesTest() : ViewTest(viewById("key_projection")) {}

private slots:
    void noPaneIsRefused() {
        const ViewInput input = needleInput({});
        QVERIFY_THROWS_EXCEPTION(Error, buildFigure(m_view, input, optionsOf(m_view), {}, viewport(600, 420, m_text)));
    }

    void panesStandWhereTheyAreLargest_data() {
        using Corners = std::set<std::pair<int, int>>;
        QTest::addColumn<int>("panes");
        QTest::addColumn<QSize>("size");
        QTest::addColumn<Corners>("corners");
        QTest::newRow("two side by side") << 2 << QSize(600, 420) << Corners{{0, 0}, {300, 0}};
        QTest::newRow("two in a column") << 2 << QSize(400, 900) << Corners{{0, 0}, {0, 450}};
        QTest::newRow("four in a square") << 4 << QSize(600, 420) << Corners{{0, 0}, {300, 0}, {0, 210}, {300, 210}};
        QTest::newRow("four in a row") << 4 << QSize(1600, 420) << Corners{{0, 0}, {400, 0}, {800, 0}, {1200, 0}};
        QTest::newRow("no place stays empty")
            << 4 << QSize(1200, 600) << Corners{{0, 0}, {600, 0}, {0, 300}, {600, 300}};
        QTest::newRow("three: two above, one below") << 3 << QSize(900, 800) << Corners{{0, 0}, {450, 0}, {0, 400}};
    }

    void panesStandWhereTheyAreLargest() {
        using Corners = std::set<std::pair<int, int>>;
        QFETCH(int, panes);
        QFETCH(QSize, size);
        QFETCH(Corners, corners);
        const std::vector<std::string> policies = {"keydiff@0.25", "snapkv@0.25", "compactor@0.25", "h2o@0.25"};
        const ViewInput input = needleInput({policies.begin(), policies.begin() + panes});
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < input.panes.size(); ++i) all.push_back(i);
        Viewport frame = viewport(size.width(), size.height(), m_text);
        frame.forExport = true;
        const Scene figure = buildFigure(m_view, input, optionsOf(m_view), all, frame);
        QCOMPARE(panelsOf(figure, input), corners);
        QCOMPARE(scene_checks::misplacedTexts(figure, m_text), QStringList());
    }

    // One of three needles is selected: the line above a panel counts the tokens that the finding counts.
    void titlesCountTheSelection() {
        ViewInput input = needleInput({"keydiff@0.25"});
        const auto countedAs = [&](const std::string& counted) {
            Viewport frame = viewport(600, 420, m_text);
            const auto texts = scene_checks::textsOf(buildFigure(m_view, input, optionsOf(m_view), {0}, frame));
            return std::ranges::any_of(texts, [&](const auto& text) { return text.ends_with(" · " + counted); });
        };
        QVERIFY(countedAs("needle 37/48"));
        std::erase_if(input.focus.selected, [](TokenIndex token) { return token < 611 || token >= 627; });
        QVERIFY(m_view.finding(input, optionsOf(m_view)).starts_with("4 of 16 needle tokens evicted"));
        QVERIFY(countedAs("needle 12/16"));
        input.focus.selectionName.clear();
        QVERIFY(countedAs("selected 12/16"));
        input.focus.selected.clear();
        QVERIFY(countedAs("needle 37/48"));
    }

    // Nobody can hover over a figure: the smallest panel of one names its marks, its axes and where it comes from.
    void smallPanelsOfAFigureNameEverything() {
        const ViewInput input = needleInput({"snapkv@0.1"});
        for (const QSize size : {QSize(168, 224), QSize(310, 170), QSize(450, 350)}) {
            Viewport v = viewport(size.width(), size.height(), m_text, ThemeId::Paper);
            v.forExport = true;
            const Scene scene = m_view.buildScene(input, optionsOf(m_view), v);
            const auto texts = scene_checks::textsOf(scene);
            for (const char* word : {"kept 68", "evicted 895", "prot", "needle", "PC 1", "PC 2", "layer 3"})
                QVERIFY2(std::any_of(texts.begin(), texts.end(), [&](auto& t) { return t.find(word) == 0; }),
                         qPrintable(QString("%1 px: %2").arg(size.width()).arg(word)));
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
        }
    }

    // However long the notes are, a figure's caption stays inside it.
    void captionsStayInTheirFigure() {
        ViewInput input = needleInput({"keydiff,prompt_block=128@0.2"});
        const ParameterValues options = optionsOf(m_view, {{"source", "values"}});
        fillData(input, m_view, options);
        for (const double width : {200.0, 300.0, 450.0}) {
            Viewport v = viewport(width, 350, m_text);
            v.forExport = true;
            v.range = Viewport::Range{-1, 1, -1, 1}; // most tokens lie beyond it, which is a note too
            for (const Drawable& item : m_view.buildScene(input, options, v).items)
                if (const auto* text = std::get_if<TextItem>(&item)) {
                    const Box box = textBounds(*text, m_text);
                    QVERIFY2(box.bottom() <= 350 && box.right() <= width, text->text.c_str());
                }
        }
    }

    void everyEntryOfALegendIsNamed() {
        std::vector<LegendEntry> entries;
        for (const char* name :
             {"A KeyDiff 359 ± 11.4", "B", "C Compactor 365 ± 12, a long one", "D BalanceKV 344 ± 12.2"})
            entries.push_back({name, Marker::Circle, themeOf(ThemeId::Light).kept, {}, 3});
        const auto drawn = [&](double width) {
            Scene scene;
            SceneBuilder builder(scene, m_text);
            const double end = drawLegend(builder, {10, 10}, width, entries, themeOf(ThemeId::Light));
            std::vector<std::string> names;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item)) {
                    names.push_back(text->text);
                    if (textBounds(*text, m_text).right() > 10 + width + 0.5) names.emplace_back("beyond the end");
                }
            if (end > 10 + width + 15) // a gap follows the last
                names.emplace_back("ends too late");
            return names;
        };
        std::vector<std::string> whole;
        for (const LegendEntry& entry : entries) whole.push_back(entry.label);
        QCOMPARE(drawn(1000), whole);
        const auto cut = drawn(400); // the long ones are cut, the short one is not
        QCOMPARE(cut.size(), std::size_t{4});
        QCOMPARE(cut[1], std::string("B"));
        QVERIFY2(cut[2].starts_with("C Compactor") && cut[2].ends_with("…"), cut[2].c_str());
        QVERIFY(cut[3].starts_with("D Bal"));
        const auto few = drawn(150); // nothing readable would be left of all four
        QVERIFY(few.size() < 4 && few[0].starts_with("A"));
    }
};

KVSCOPE_OFFSCREEN_TEST(FigurePanesTest)
#include "figure_panes_test.moc"
