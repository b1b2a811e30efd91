// The merge-and-reduce tree on a hand-made stream with known halvings and on the sample: which boxes are live at which
// cursor, what is written on them, captions with their numbers, and what is said when there is nothing to draw.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/merge_tree_fixture.h"
#include "views/common/policy_style.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <map>

using namespace kvscope;
using namespace kvscope::view_fixture;

class MergeTreeViewTest : public ViewTest {
    Q_OBJECT

    const ParameterValues m_options{viewById("merge_tree").card().options};
    const Colour m_live = policyStyle("balancekv", ThemeId::Light).colour;

    Scene sceneOf(const ViewInput& input, double width = 860, double height = 410) const {
        return m_view.buildScene(input, m_options, viewport(width, height, m_text));
    }
    /// "live", "merged" or "future", by what is drawn.
    QString drawnState(const Scene& scene, std::int64_t level, std::int64_t place) const {
        const RectangleItem* box = boxOf(scene, level, place);
        if (!box) return "missing";
        return box->fill == m_live ? "live" : box->stroke.dash.empty() ? "merged" : "future";
    }

public:
    MergeTreeViewTest() : ViewTest(viewById("merge_tree")) {}

private slots:
    // Sizes at j = 4, 8, 12, 16: [0,2,0,0], [0,0,2,0], [0,2,2,0], [0,0,0,2].
    void boxesFollowTheBinaryCounter() {
        const std::map<TokenIndex, QStringList> expected = {
            // level 1: four nodes, level 2: two, level 3: one
            {0, {"future", "future", "future", "future", "future", "future", "future"}},
            {3, {"future", "future", "future", "future", "future", "future", "future"}},
            {4, {"live", "future", "future", "future", "future", "future", "future"}},
            {8, {"merged", "merged", "future", "future", "live", "future", "future"}},
            {12, {"merged", "merged", "live", "future", "live", "future", "future"}},
            {16, {"merged", "merged", "merged", "merged", "merged", "merged", "live"}},
            {18, {"merged", "merged", "merged", "merged", "merged", "merged", "live"}}};
        for (const auto& [cursor, states] : expected) {
            const Scene scene = sceneOf(handInput(cursor));
            QStringList drawn;
            for (std::int64_t level = 1; level <= 3; ++level)
                for (std::int64_t place = 0; place < (8 >> level); ++place) drawn << drawnState(scene, level, place);
            QCOMPARE(drawn, states);
        }
    }

    void labelsCountTheLiveSets() {
        const auto texts = scene_checks::textsOf(sceneOf(handInput(14)));
        const auto count = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text); };
        QCOMPARE(count("2 live"), 3); // C⁰ holds tokens 12 and 13, C¹ and C² two each
        QCOMPARE(count("empty"), 1);
        QCOMPARE(count("j = 14"), 1);
        QCOMPARE(count("weight 8"), 1);
        QCOMPARE(count("12 %"), 1); // node 2 of level 1
        QCOMPARE(count("20 %"), 1); // node 0 of level 2
        QCOMPARE(count("30 %"), 0); // the root is still to come
        QCOMPARE(count("not read yet"), 1);
    }

    // The number of the cursor stands above the boxes, however low the rows are.
    void theCursorsNumberHidesNoBox() {
        for (const double height : {150.0, 170.0, 200.0, 260.0, 410.0}) {
            const Scene scene = sceneOf(handInput(16), 860, height);
            const RectangleItem* root = boxOf(scene, 3, 0);
            QVERIFY(root);
            const Colour ink = themeOf(ThemeId::Light).ink;
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item); box && box->fill == ink && box->radius == 3)
                    QVERIFY2(box->box.bottom() <= root->box.y, qPrintable(QString::number(height)));
        }
    }

    // Nothing moves while the stream is played: the same boxes at the same places at every cursor.
    void nothingReflows() {
        const Scene first = sceneOf(handInput(0)), last = sceneOf(handInput(18));
        for (std::int64_t level = 0; level <= 3; ++level)
            for (std::int64_t place = 0; place < (level == 0 ? 5 : 8 >> level); ++place) {
                const RectangleItem *a = boxOf(first, level, place), *b = boxOf(last, level, place);
                QVERIFY(a && b);
                QVERIFY(a->box.x == b->box.x && a->box.y == b->box.y && a->box.width == b->box.width);
            }
    }

    void barcodeShowsWhatIsInMemory() {
        const Scene scene = sceneOf(handInput(12));
        const Colour kept = themeOf(ThemeId::Light).kept;
        std::vector<double> ticks;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item); box && box->fill == kept)
                ticks.push_back((box->box.x - scene.plot.x) / scene.plot.width * 18);
        // C² holds 3 and 7, C¹ 9 and 11
        QCOMPARE(ticks.size(), std::size_t{4});
        const std::vector<double> tokens = {3, 7, 9, 11};
        for (std::size_t i = 0; i < 4; ++i)
            QVERIFY2(std::abs(ticks[i] - tokens[i]) < 1e-6, qPrintable(QString::number(ticks[i])));
    }

    // Several pairs in a pixel: as dark as the share that is left, nothing where none is.
    void crowdedBarcodesShowShares() {
        const Colour kept = themeOf(ThemeId::Light).kept;
        const auto darkest = [&](TokenIndex cursor) {
            double alpha = 0, right = 0;
            const ViewInput input = [&] {
                ViewInput made = handInput(cursor);
                auto data = std::make_shared<MergeTreeData>(*dataAs<MergeTreeData>(made));
                auto stream = std::make_shared<BalanceStream>(*data->stream);
                BalanceTree& tree = stream->trees[0];
                tree.batch = 3000;
                tree.rows.resize(5000);
                std::iota(tree.rows.begin(), tree.rows.end(), TokenIndex{0});
                std::vector<TokenIndex> first(tree.rows.begin(), tree.rows.begin() + 3000);
                tree.nodes = {{halved(first)}};
                stream->tokens = 5000;
                data->stream = stream;
                data->nodes = {{{0.5, 0.5, 0}}};
                made.data.value = data;
                return made;
            }();
            const Scene scene = sceneOf(input);
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item);
                    box && box->fill.b == kept.b && box->fill.r == kept.r) {
                    alpha = std::max(alpha, box->fill.a / 255.0);
                    right = std::max(right, (box->box.right() - scene.plot.x) / scene.plot.width * 5000);
                }
            return std::pair(alpha, right);
        };
        const auto [half, halfEnd] = darkest(3000); // every second pair of the first batch
        QVERIFY2(half > 0.5 && half < 0.85 && std::abs(halfEnd - 3000) < 10,
                 qPrintable(QString("%1 %2").arg(half).arg(halfEnd)));
        const auto [all, allEnd] = darkest(4500);
        QVERIFY2(all > 0.95 && std::abs(allEnd - 4500) < 10, qPrintable(QString("%1 %2").arg(all).arg(allEnd)));
    }

    // Token 3 is kept by C¹ and C²; token 1 reaches C¹ and is dropped by C²; token 0 leaves at once.
    void pathsLeadToTheSetThatHoldsTheToken() {
        const auto pathLines = [&](TokenIndex token) {
            ViewInput input = handInput(12);
            input.focus.selected = {token};
            int solid = 0, dotted = 0;
            for (const Drawable& item : sceneOf(input).items)
                if (const auto* line = std::get_if<PolylineItem>(&item); line && line->stroke.width == 2.6)
                    ++(line->stroke.dash.empty() ? solid : dotted);
            return std::pair(solid, dotted);
        };
        QCOMPARE(pathLines(3), std::pair(2, 0));
        QCOMPARE(pathLines(1), std::pair(1, 1));
        QCOMPARE(pathLines(0), std::pair(0, 1));
        QCOMPARE(pathLines(13), std::pair(0, 0)); // not read yet
    }

    // Token 0 leaves on the edge on which token 1 is kept: it is drawn once, as the way of a pair that stayed.
    void everyEdgeOfAPathIsDrawnOnce() {
        ViewInput input = handInput(12);
        input.focus.selected = {0, 1};
        std::vector<std::vector<Point>> paths;
        for (const Drawable& item : sceneOf(input).items)
            if (const auto* line = std::get_if<PolylineItem>(&item); line && line->stroke.width == 2.6)
                paths.push_back(line->points);
        QCOMPARE(paths.size(), std::size_t{2});
        input.focus.selected = {3, 7}; // both are in node 0 of level 2, which has one frame
        const Scene scene = sceneOf(input);
        QCOMPARE(std::count_if(scene.items.begin(), scene.items.end(),
                               [&](const Drawable& item) {
                                   const auto* frame = std::get_if<RectangleItem>(&item);
                                   return frame && frame->stroke.width == 2 &&
                                          frame->box.contains({boxOf(scene, 2, 0)->box.x, boxOf(scene, 2, 0)->box.y});
                               }),
                 1);
    }

    void stepsAreTheBatchesWithMergesAsMilestones() {
        const StepSequence sequence = m_view.stepSequence(handInput({}), m_options);
        QCOMPARE(sequence.events, (std::vector<TokenIndex>{4, 8, 12, 16, 18}));
        QCOMPARE(sequence.milestones, (std::vector<TokenIndex>{8, 16}));
    }

    void captionsHoldTheNumbers_data() {
        QTest::addColumn<int>("cursor");
        QTest::addColumn<QStringList>("words");
        QTest::newRow("filling") << 3 << QStringList{"3 of t = 4", "exact"};
        QTest::newRow("first batch") << 4
                                     << QStringList{"Batch 0 (0-based), the 1st of t = 4 pairs, is full",
                                                    "2 pairs enter C¹ with weight 2, 2 leave",
                                                    "It is the only one so far, so nothing merges yet."};
        QTest::newRow("first merge") << 8
                                     << QStringList{"Batch 1 (0-based), the 2nd of", "4 in C¹ make 2 in C², weight 4"};
        QTest::newRow("odd") << 13
                             << QStringList{"Batch 2 (0-based), the 3rd of",
                                            "3 full batches are an odd number, so nothing merges further."};
        QTest::newRow("two merges") << 16
                                    << QStringList{"4 in C¹ make 2 in C², weight 4; 4 in C² make 2 in C³, weight 8"};
    }
    void captionsHoldTheNumbers() {
        QFETCH(int, cursor);
        QFETCH(QStringList, words);
        const QString caption = QString::fromStdString(m_view.caption(handInput(cursor), m_options));
        for (const QString& word : words) QVERIFY2(caption.contains(word), qPrintable(caption));
    }

    void findingCountsMemory() {
        const QString finding = QString::fromStdString(m_view.finding(handInput(14), m_options));
        QVERIFY2(finding.contains("6 of 14 pairs read are in memory (42.9 %) and stand for 14"), qPrintable(finding));
        QVERIFY2(finding.contains("largest live discrepancy 20.0 % in C²"), qPrintable(finding));
    }

    void factsAndClicks() {
        const ViewInput input = handInput(12);
        const Scene scene = sceneOf(input);
        const RectangleItem* node = boxOf(scene, 2, 0);
        const PointFacts facts =
            m_view.factsAt(input, m_options, scene, {node->box.x + node->box.width / 2, node->box.y + 2});
        QCOMPARE(m_view.tokensAt(input, m_options, scene, {node->box.x + node->box.width / 2, node->box.y + 2}),
                 (std::vector<TokenIndex>{3, 7}));
        const std::map<std::string, std::string> rows(facts.rows.begin(), facts.rows.end());
        QCOMPARE(rows.at("keeps"), std::string("2 of 4"));
        QCOMPARE(rows.at("signs"), std::string("2 +, 2 −, Σ η = 0"));
        QCOMPARE(rows.at("discrepancy, query 17"), std::string("20.0 %"));
        QCOMPARE(rows.at("now"), std::string("in memory"));
        const double x = scene.plot.x + scene.plot.width * 1.5 / 18;
        const PointFacts leaf = m_view.factsAt(input, m_options, scene, {x, boxOf(scene, 0, 0)->box.y + 3});
        QCOMPARE(leaf.token, 1);
        QCOMPARE(m_view.tokensAt(input, m_options, scene, {x, boxOf(scene, 0, 0)->box.y + 3}),
                 std::vector<TokenIndex>{1});
        const std::map<std::string, std::string> leafRows(leaf.rows.begin(), leaf.rows.end());
        QCOMPARE(leafRows.at("path"), std::string("C⁰ → C¹, left on the way to C²"));
        QCOMPARE(leafRows.at("in memory"), std::string("1 of 4"));
    }

    void tableListsEveryNode() {
        const ViewTable table = m_view.table(handInput(12), m_options);
        QCOMPARE(table.rowCount, std::int64_t{7});
        QCOMPARE(table.cell(4, 0) + table.cell(4, 1) + table.cell(4, 10), std::string("20live"));
        QCOMPARE(table.cell(4, 11), std::string("3 7"));
        QCOMPARE(table.cell(6, 10), std::string("to come"));
    }

    // On a real head: the sets are those of the policy, and every node's percentage is its halving's.
    void theSampleStreamsAsItsPaneSays() {
        const ViewInput input = sampleInput({"keydiff@0.25", "balancekv_stream:greedy,batch=64,levels=3"});
        const auto data = dataAs<MergeTreeData>(input);
        QVERIFY(!data->standIn); // pane B streams, though A is active
        QCOMPARE(data->source, std::string("B  BalanceKV, streaming, greedy"));
        QCOMPARE(data->query, input.cut.token - 1);
        const auto sets = data->shown()->setsAt(input.cut.token);
        std::vector<TokenIndex> all;
        for (const auto& set : sets) all.insert(all.end(), set.begin(), set.end());
        std::sort(all.begin(), all.end());
        const HeadSelection& head = input.panes[1].result->selection.heads[1];
        std::vector<TokenIndex> denominator;
        for (std::size_t i = 0; i < head.kept.size(); ++i)
            if (head.denominatorWeights[i] > 0) denominator.push_back(head.kept[i]);
        QCOMPARE(all, denominator);
        QCOMPARE(data->errors.back().cursor, input.cut.token);
        QVERIFY(data->errors.back().errors.output > 0);
        const QString finding = QString::fromStdString(m_view.finding(input, m_options));
        QVERIFY2(finding.contains(QString("of 995 pairs read")), qPrintable(finding));
    }

    void octavesPartitionTheValues() {
        const ViewInput input = sampleInput({"balancekv_stream,batch=64"}, {{"tree", "fullest"}});
        const auto data = dataAs<MergeTreeData>(input);
        const std::vector<float>& norms = data->stream->norms[static_cast<std::size_t>(data->kvHead)];
        auto sum = static_cast<std::size_t>(std::count(norms.begin(), norms.end(), 0.0F)); // these have no octave
        for (const MergeTreeData::Octave& octave : data->octaves)
            sum += data->stream->trees[static_cast<std::size_t>(octave.tree)].rows.size();
        QCOMPARE(sum, std::size_t{995});
        QVERIFY(data->shown()->numerator);
        const QString text = QString::fromStdString(paintSceneAsText(sceneOf(input)));
        QVERIFY2(text.contains("Norms of values, by octave") && text.contains("erase line 2^"),
                 qPrintable(text.right(600)));
    }

    // A swatch of nearly the ground's colour has an outline that is seen.
    void theSwatchOfWhatIsToComeIsSeen() {
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            Viewport frame = viewport(860, 410, m_text);
            frame.theme = theme;
            int outlined = 0;
            for (const Drawable& item : m_view.buildScene(handInput(9), m_options, frame).items)
                if (const auto* swatch = std::get_if<PolygonItem>(&item))
                    outlined += swatch->stroke.colour == themeOf(theme).axis && swatch->stroke.width == 1 &&
                                swatch->points.front().y < 40;
            QCOMPARE(outlined, 1);
        }
    }

    void saysWhatIsMissing() {
        QCOMPARE(m_view.finding(ViewInput{}, m_options), std::string(kNoCapture));
        const ViewInput other = sampleInput({"keydiff@0.25"});
        const std::string finding = m_view.finding(other, m_options);
        QVERIFY2(finding.find("Example: ") == 0, finding.c_str());
        const QString text = QString::fromStdString(paintSceneAsText(sceneOf(other)));
        QVERIFY(text.contains("No pane streams BalanceKV"));
        const QString said = text + QString::fromStdString(finding); // what stands in once, in words
        QCOMPARE(said.count("BalanceKV streaming, batch 64, 4 levels"), 1);
        QVERIFY(!said.contains("balancekv_stream"));
        const ViewInput empty = sampleInput({"balancekv_stream"}, {{"tree", "octave"}, {"octave", "100"}});
        QVERIFY(m_view.finding(empty, m_options).find("No value norm lies in octave 100 (octaves with values: ") == 0);
        QVERIFY(m_view.stepSequence(empty, m_options).events.empty());
        ViewInput waiting = other;
        waiting.data = {};
        QVERIFY(!m_view.finding(waiting, m_options).empty() && !m_view.caption(waiting, m_options).empty());
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size :
             {QSize(300, 220), QSize(460, 300), QSize(860, 410), QSize(940, 126), QSize(930, 330), QSize(1400, 900)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        const std::vector<ViewInput> inputs = {
            handInput(9), sampleInput({"balancekv_stream,batch=64,levels=8"}, {{"tree", "fullest"}}),
            sampleInput({"keydiff@0.25"}), sampleInput({"balancekv_stream,batch=16,levels=2"})};
        for (ViewInput input : inputs)
            for (const auto cursor : {std::optional<TokenIndex>(), std::optional<TokenIndex>(5)}) {
                input.cursor = cursor;
                QCOMPARE(misplacedTexts(m_view, input, m_options, size, m_text), QStringList());
            }
    }
};

KVSCOPE_OFFSCREEN_TEST(MergeTreeViewTest)
#include "merge_tree_view_test.moc"
