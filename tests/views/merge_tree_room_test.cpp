// What the tree shows where there is little room: every box says something, and only what is drawn is named.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/merge_tree_fixture.h"

#include <QtTest>

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

class MergeTreeRoomTest : public ViewTest {
    Q_OBJECT

    const ParameterValues m_options{viewById("merge_tree").card().options};

    Scene sceneOf(const ViewInput& input, double width = 860, double height = 410) const {
        return m_view.buildScene(input, m_options, viewport(width, height, m_text));
    }

public:
    MergeTreeRoomTest() : ViewTest(viewById("merge_tree")) {}

private slots:
    // A node says how many pairs it holds, or it is filled: no box is left that looks as if something were missing.
    void noBoxLooksEmpty_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(246, 176), QSize(345, 130), QSize(490, 150), QSize(860, 410), QSize(936, 252),
                                 QSize(940, 200), QSize(940, 126)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void noBoxLooksEmpty() {
        QFETCH(QSize, size);
        for (const char* spec : {"balancekv_stream,batch=64,levels=4", "balancekv_stream,batch=16,levels=2",
                                 "balancekv_stream,batch=16,levels=8"}) {
            const ViewInput input = sampleInput({spec});
            const Scene scene = sceneOf(input, size.width(), size.height());
            std::vector<Point> numbers;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->style.face == FontFace::Monospace)
                    numbers.push_back(text->position);
            for (const Drawable& item : scene.items) {
                const auto* box = std::get_if<RectangleItem>(&item);
                if (!box || box->pick.kind != PickId::Kind::Node || levelOf(box->pick.index) == 0 ||
                    !box->stroke.dash.empty())
                    continue;
                const bool numbered =
                    std::any_of(numbers.begin(), numbers.end(), [&](Point at) { return box->box.contains(at); });
                QVERIFY2(numbered || box->fill != themeOf(ThemeId::Light).canvas,
                         qPrintable(QString("%1: node at %2, %3").arg(spec).arg(box->box.x).arg(box->box.y)));
            }
        }
    }

    // In the dock of the Teach layout at an interface scale of 1.5 and on a small window there is room for the numbers.
    void numbersAreWrittenInTheTeachLayout() {
        for (const QSize size : {QSize(936, 252), QSize(936, 228)}) {
            const Scene scene = sceneOf(sampleInput({"keydiff@0.25"}), size.width(), size.height());
            const RectangleItem* root = boxOf(scene, 4, 0);
            QVERIFY(std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
                const auto* text = std::get_if<TextItem>(&item);
                return text && root->box.contains(text->position);
            }));
        }
    }

    // At 1440 x 900 the layout shows what a set loses and how its signs lean, the stand-in's sentence and all.
    void discrepancyAndImbalanceAreShownInTheTeachLayout() {
        const auto texts = scene_checks::textsOf(sceneOf(sampleInput({"keydiff@0.25"}), 866, 335));
        QVERIFY(std::ranges::count_if(texts, [](const std::string& text) {
                    return text.ends_with(" %") && text.size() <= 5;
                }) == 4); // of the live sets
        QVERIFY(std::ranges::find(texts, "sign imbalance") != texts.end());
    }

    // Every tick of a pair stands in the box of its batch.
    void noTickStandsBetweenBatches() {
        const Scene scene = sceneOf(sampleInput({"balancekv_stream,batch=64,levels=4"}), 936, 252);
        std::vector<Box> batches;
        for (std::int64_t place = 0; const RectangleItem* box = boxOf(scene, 0, place); ++place)
            batches.push_back(box->box);
        QVERIFY(batches.size() > 10);
        int ticks = 0;
        for (const Drawable& item : scene.items) {
            const auto* tick = std::get_if<RectangleItem>(&item);
            if (!tick || !(tick->fill == themeOf(ThemeId::Light).kept)) continue;
            ++ticks;
            const double middle = tick->box.x + tick->box.width / 2;
            QVERIFY(std::any_of(batches.begin(), batches.end(),
                                [&](const Box& box) { return box.x <= middle && middle <= box.right(); }));
        }
        QVERIFY(ticks > 0);
    }

    // The frame around a selected token's set leaves its percentage alone.
    void percentagesDoNotTouchFrames() {
        ViewInput input = handInput(12);
        input.focus.selected = {3};
        const Scene scene = sceneOf(input);
        const RectangleItem* node = boxOf(scene, 2, 0);
        double frame = node->box.y, words = 0;
        for (const Drawable& item : scene.items) {
            if (const auto* box = std::get_if<RectangleItem>(&item);
                box && box->box.contains({node->box.x, node->box.y}) && box->stroke.width == 2)
                frame = box->box.y - box->stroke.width / 2;
            if (const auto* text = std::get_if<TextItem>(&item); text && text->text == "20 %")
                words = text->position.y; // the baseline
        }
        QVERIFY(frame < node->box.y);
        for (const Drawable& item : scene.items) // and so does the bar of its signs
            if (const auto* bar = std::get_if<RectangleItem>(&item);
                bar && bar->fill == themeOf(ThemeId::Light).text2 && bar->box.y > node->box.bottom())
                QVERIFY(bar->box.y > node->box.bottom() + 5);
        QVERIFY2(words > 0 && frame - words >= 2, qPrintable(QString("%1 %2").arg(frame).arg(words)));
    }

    // The plot's edge would clip them: at every height there is room above the topmost set, or none is written.
    void percentagesOfTheTopAreWhole() {
        int seen = 0;
        for (int height = 150; height <= 450; height += 5) {
            const Scene scene = sceneOf(handInput(18), 860, height);
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->text == "30 %") {
                    QVERIFY2(text->position.y - 9 >= scene.plot.y, qPrintable(QString::number(height)));
                    ++seen;
                }
        }
        QVERIFY(seen > 0);
    }

    // What a head names is drawn: the bars of signs and the percentages are named where nodes have room for them.
    void partsAreNamedWhereTheyAreDrawn() {
        for (const int height : {126, 150, 200, 252, 300, 340, 410, 600}) {
            const Scene scene = sceneOf(handInput(14), 860, height);
            const QString text = QString::fromStdString(paintSceneAsText(scene));
            const RectangleItem* live = boxOf(scene, 2, 0);
            const bool percent = text.contains("20 %");
            const bool bars = std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
                const auto* box = std::get_if<RectangleItem>(&item);
                return box && box->fill == themeOf(ThemeId::Light).text2 && box->box.y > live->box.y;
            });
            QCOMPARE(text.contains("discrepancy for query 17"), percent);
            QCOMPARE(text.contains("sign imbalance"), bars);
            QCOMPARE(percent, height >= 300);
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(MergeTreeRoomTest)
#include "merge_tree_room_test.moc"
