// Panes beside each other in the window have one plane, one range and one legend: said once, under equal plots.
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

class PanesBesideTest : public ViewTest {
    Q_OBJECT

    /// The panes' pictures, as the window asks for them.
    std::vector<Scene> pictures(ViewInput input, const ParameterValues& options, double width, double height,
                                bool beside = true) {
        fillData(input, m_view, options);
        std::vector<Scene> scenes;
        for (input.activePane = 0; input.activePane < static_cast<int>(input.panes.size()); ++input.activePane) {
            Viewport frame = viewport(width, height, m_text);
            frame.besideOthers = beside;
            scenes.push_back(m_view.buildScene(input, options, frame));
        }
        return scenes;
    }

public:
    PanesBesideTest() : ViewTest(viewById("key_projection")) {}

private slots:
    void whatTheyShareIsSaidOnce() {
        const ViewInput input = needleInput({"streaming_llm@0.25", "keydiff@0.25", "snapkv@0.25"});
        for (const QSize size : {QSize(272, 300), QSize(420, 260), QSize(900, 500)}) {
            const auto scenes = pictures(input, optionsOf(m_view), size.width(), size.height());
            for (const char* entry :
                 {"kept", "evicted", "protected", "anchor", "needle"}) // an anchor has only the second one
                for (std::size_t i = 0; i < scenes.size(); ++i)
                    QVERIFY2(scene_checks::hasTextFrom(scenes[i], entry) == (i == 0),
                             qPrintable(QString("%1 in pane %2, %3 px").arg(entry).arg(i).arg(size.width())));
            for (std::size_t i = 0; i < scenes.size(); ++i) {
                QVERIFY2(scene_checks::hasTextFrom(scenes[i], "PC 1 (8.3 % of variance) × PC 2") == (i == 1),
                         qPrintable(QString("axes in pane %1").arg(i)));
                QCOMPARE(scenes[i].plot.y, scenes[0].plot.y);
                QCOMPARE(scenes[i].plot.width, scenes[0].plot.width);
                QCOMPARE(scenes[i].plot.height, scenes[0].plot.height);
                QCOMPARE(scenes[i].xMax, scenes[0].xMax);
                QCOMPARE(scenes[i].yMin, scenes[0].yMin);
                QCOMPARE(scene_checks::misplacedTexts(scenes[i], m_text), QStringList());
            }
        }
    }

    // Without the names of the axes and a legend of its own a plot is larger.
    void thePlotGainsTheRoom() {
        const ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25"});
        const Scene beside = pictures(input, optionsOf(m_view), 272, 300).front(),
                    alone = pictures(input, optionsOf(m_view), 272, 300, false).front();
        QVERIFY(beside.plot.width >= alone.plot.width + 15);
        QVERIFY(beside.plot.height >= alone.plot.height + 15);
    }

    // What colours mean may differ from pane to pane, so each says it itself.
    void coloursOfTheirOwnKeepTheirLegends() {
        const ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25"});
        const char* kept[] = {"kept 249", "kept 217"}; // SnapKV protects its window of 32
        for (int pane = 0;
             const Scene& scene : pictures(input, optionsOf(m_view, {{"colour_by", "score"}}), 500, 400)) {
            QVERIFY(scene_checks::hasTextFrom(scene, kept[pane++]));
            QVERIFY(scene_checks::hasTextFrom(scene, "colour: score"));
            QVERIFY(scene_checks::hasTextFrom(scene, "PC 1 (8.3 %"));
        }
    }

    void anExportedPaneNamesEverything() {
        ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25"});
        fillData(input, m_view, optionsOf(m_view));
        Viewport frame = viewport(500, 400, m_text);
        frame.besideOthers = frame.forExport = true;
        const Scene scene = m_view.buildScene(input, optionsOf(m_view), frame);
        QVERIFY(scene_checks::hasTextFrom(scene, "kept 249") && scene_checks::hasTextFrom(scene, "PC 1 (8.3 %") &&
                scene_checks::hasTextFrom(scene, "PC 2"));
    }
};

KVSCOPE_OFFSCREEN_TEST(PanesBesideTest)
#include "panes_beside_test.moc"
