// The walk view on a hand-made walk with known signs and on the sample: what the three rows show at which cursor, the
// words, and what is said when nothing is balanced.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/view.h"
#include "views/walk/walk_data.h"
#include "views/walk/walk_picture.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Algorithm 2 with all keys 0, all values 1, c = 4: y is the running imbalance, p = 1/2 - y / 8.
BalanceWalkLog handWalk(std::int64_t place, TokenIndex first, const std::vector<std::int8_t>& signs, double c = 4) {
    BalanceWalkLog walk;
    walk.level = 1;
    walk.place = place;
    double imbalance = 0;
    for (std::size_t i = 0; i < signs.size(); ++i) {
        walk.tokens.push_back(first + static_cast<TokenIndex>(i));
        walk.walk.rows.push_back(walk.tokens.back());
        walk.walk.uniforms.push_back(signs[i] > 0 ? 0.01 : 0.99);
        walk.signs.push_back(signs[i]);
        walk.products.push_back(imbalance);
        walk.probabilities.push_back(0.5 - imbalance / (2 * c));
        imbalance += signs[i];
        walk.quadratic.push_back(imbalance * imbalance);
        walk.fairCoins.push_back(static_cast<double>(i) + 1);
        walk.imbalance.push_back(static_cast<std::int64_t>(imbalance));
    }
    return walk;
}

/// Two blocks: tokens 10-13 signed + + - -, tokens 14-17 signed + - + -.
ViewInput handInput(std::optional<TokenIndex> cursor, double c = 4) {
    auto log = std::make_shared<BalanceLog>();
    log->walks = {handWalk(0, 10, {1, 1, -1, -1}, c), handWalk(1, 14, {1, -1, 1, -1}, c)};
    auto data = std::make_shared<WalkData>();
    data->source = "A  hand";
    data->what = "round 1";
    data->end = 20;
    data->log = log;
    data->coinRuns = 9;
    for (const BalanceWalkLog& walk : log->walks)
        data->walks.push_back({&walk, {{1, 1, 1, 1}, {1, 4, 4, 4}}, std::vector<float>(16, 1.0F), 4, 1});
    ViewInput input;
    input.capture = needleCapture();
    input.cut = Cut::resolve("default", *input.capture);
    input.cursor = cursor;
    input.data.value = data;
    return input;
}

ParameterValues walkOptions(const std::vector<std::pair<std::string, std::string>>& set = {}) {
    return view_fixture::optionsOf(viewById("walk"), set);
}

ViewInput sampleInput(const std::vector<std::string>& specs, const ParameterValues& options) {
    return inputFor(viewById("walk"), specs, options);
}

} // namespace

class WalkViewTest : public ViewTest {
    Q_OBJECT

    Scene sceneOf(const ViewInput& input, const ParameterValues& options = walkOptions(), double width = 740,
                  double height = 420) const {
        return m_view.buildScene(input, options, viewport(width, height, m_text));
    }
    QString caption(const ViewInput& input) const {
        return QString::fromStdString(m_view.caption(input, walkOptions()));
    }
    QString finding(const ViewInput& input, const ParameterValues& options = walkOptions()) const {
        return QString::fromStdString(m_view.finding(input, options));
    }
    /// Filled and hollow marks of the sign row.
    std::pair<int, int> signMarks(const Scene& scene) const {
        const Theme& theme = themeOf(ThemeId::Light);
        int plus = 0, minus = 0;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item)) {
                plus += box->fill == theme.text1 ? 1 : 0;
                minus += box->fill == kTransparent && box->stroke.colour == theme.text2 ? 1 : 0;
            }
        return {plus, minus};
    }

public:
    WalkViewTest() : ViewTest(viewById("walk")) {}

private slots:
    // Signs + + - -: y is 0, 1, 2, 1, in units of c = 4: 0, 1/4, 1/2, 1/4.
    void theFirstRowIsTheRunningSum() {
        const Scene scene = sceneOf(handInput(14));
        const PolylineItem* line = nullptr;
        for (const Drawable& item : scene.items)
            if (const auto* candidate = std::get_if<PolylineItem>(&item);
                candidate && candidate->stroke.width == 1.3 && candidate->points.size() == 4)
                line = candidate;
        QVERIFY(line);
        std::vector<double> fail; // the lines at +1 and -1
        for (const Drawable& item : scene.items)
            if (const auto* candidate = std::get_if<PolylineItem>(&item);
                candidate && candidate->stroke.colour == themeOf(ThemeId::Light).errorLine)
                fail.push_back(candidate->points.front().y);
        QCOMPARE(fail.size(), std::size_t{2});
        const double zero = (fail[0] + fail[1]) / 2, one = zero - fail[0];
        QVERIFY(one > 20);
        const std::vector<double> expected = {0, 0.25, 0.5, 0.25};
        for (std::size_t i = 0; i < 4; ++i) {
            QVERIFY(std::abs((zero - line->points[i].y) / one - expected[i]) < 1e-9);
            QVERIFY(std::abs(line->points[i].x - (scene.plot.x + scene.plot.width * (double(i) + 0.5) / 4)) < 1e-6);
        }
    }

    // c = 1: |y| = 2 lies beyond the line, is drawn as beyond, and counted.
    void whatLeavesTheRangeIsMarked() {
        const ViewInput input = handInput(14, 1);
        const Scene scene = sceneOf(input);
        const PointCloudItem* beyond = scene_checks::cloudNamed(scene, "beyond +1");
        QVERIFY(beyond && beyond->points->size() == 1 && !scene_checks::cloudNamed(scene, "beyond −1"));
        QVERIFY(QString::fromStdString(paintSceneAsText(scene)).contains("p outside [0, 1]: 1 of 4"));
        QVERIFY2(finding(input).contains("p leaves [0, 1] on 1 steps and is clipped"), qPrintable(finding(input)));
    }

    void signsAppearPairByPair() {
        QCOMPARE(signMarks(sceneOf(handInput(12))), std::pair(2, 0));
        QCOMPARE(signMarks(sceneOf(handInput(13))), std::pair(2, 1));
        QCOMPARE(signMarks(sceneOf(handInput(14))), std::pair(2, 2));
        QCOMPARE(signMarks(sceneOf(handInput(15))), std::pair(1, 0)); // the second block has begun
        QCOMPARE(signMarks(sceneOf(handInput({}))), std::pair(2, 2));
    }

    void theBlockFollowsTheCursor() {
        const auto named = [&](std::optional<TokenIndex> cursor) {
            return QString::fromStdString(paintSceneAsText(sceneOf(handInput(cursor))));
        };
        QVERIFY(named(12).contains("block 0 of round 1"));
        QVERIFY(named(16).contains("block 1 of round 1"));
        QVERIFY(named({}).contains("block 1 of round 1"));
        QVERIFY(caption(handInput(3)).contains("No pair has been read yet"));
        QVERIFY(sceneOf(handInput(3)).items.size() < 4); // one sentence
    }

    void captionsHoldTheNumbers() {
        const QString third = caption(handInput(13)); // y = 2, p = 1/2 - 2/8
        QVERIFY2(third.contains(
                     "Pair 3 of 4 (token 12): yᵀη/(cR²) = 0.5, so p = ½ − half of it = 0.25; u = 0.990 ≥ p gives −."),
                 qPrintable(third));
        QVERIFY2(third.contains("Imbalance 1; Q = 1 against 3 for fair coins, within their 10–90 % band"),
                 qPrintable(third));
        const QString last = caption(handInput(14)); // balanced: Q = 0, below the band's 1
        QVERIFY2(last.contains("Imbalance 0; Q = 0 against 4 for fair coins, below their 10–90 % band"),
                 qPrintable(last));
        QVERIFY2(finding(handInput(14)).contains("4 of 4 pairs: 2 + and 2 −"), qPrintable(finding(handInput(14))));
    }

    /// The first pair's Q is that of any coins; its rounding is no side of their band.
    void numbersThatLookEqualAreToldApart() {
        auto data = std::make_shared<WalkData>(*dataAs<WalkData>(handInput(12)));
        auto log = std::make_shared<BalanceLog>(*data->log);
        log->walks[0].quadratic = {std::nextafter(3.2e9, 4e9), 3.60124e15, 7.2e15, 1};
        log->walks[0].fairCoins = {3.2e9, 3.60487e15, 7.2e15, 1.00021};
        data->log = log;
        for (std::size_t i = 0; i < data->walks.size(); ++i) data->walks[i].log = &log->walks[i];
        data->walks[0].band = {{3.2e9, 3.603e15, 7e15, 0.9}, {3.2e9, 3.607e15, 7.4e15, 1.1}};
        const auto captionAt = [&](TokenIndex cursor) {
            ViewInput input = handInput(cursor);
            input.data.value = data;
            return caption(input);
        };
        for (const auto& [cursor, said] : {std::pair{11, "Q = 3.2e9 against 3.2e9 for fair coins, within"},
                                           {12, "Q = 3.601e15 against 3.605e15 for fair coins, below"},
                                           {13, "Q = 7.2e15 against 7.2e15 for fair coins, within"},
                                           {14, "Q = 1.0000 against 1.0002 for fair coins, within"}})
            QVERIFY2(captionAt(cursor).contains(said), qPrintable(captionAt(cursor)));
    }

    void stepsAreThePairsWithBlocksAsMilestones() {
        const StepSequence sequence = m_view.stepSequence(handInput({}), walkOptions());
        QCOMPARE(sequence.events, (std::vector<TokenIndex>{11, 12, 13, 14, 15, 16, 17, 18}));
        QCOMPARE(sequence.milestones, (std::vector<TokenIndex>{14, 18}));
    }

    // Survivors of later rounds are not read one by one: their walk happens when the prompt has been read.
    void laterRoundsRunAtOnce() {
        ViewInput input = handInput({});
        auto data = std::make_shared<WalkData>(*dataAs<WalkData>(input));
        data->level = 2;
        input.data.value = data;
        QCOMPARE(m_view.stepSequence(input, walkOptions()).events, (std::vector<TokenIndex>{20}));
        QCOMPARE(walkNow(*data, 19).walk, nullptr);
        QCOMPARE(walkNow(*data, 20).steps, std::int64_t{4});
        data->streaming = true; // a node runs when its last pair has been read
        QCOMPARE(m_view.stepSequence(input, walkOptions()).events, (std::vector<TokenIndex>{14, 18}));
        QVERIFY(m_view.finding(input, walkOptions()).find("node 1 of round 1") != std::string::npos);
        QCOMPARE(walkNow(*data, 17).walk->log->place, std::int64_t{0});
    }

    void factsNameTheStep() {
        const ViewInput input = handInput(13);
        const Scene scene = sceneOf(input);
        const auto at = [&](double step) {
            return m_view.factsAt(input, walkOptions(), scene,
                                  {scene.plot.x + scene.plot.width * (step + 0.5) / 4, scene.plot.y + 9});
        };
        const PointFacts third = at(2), fourth = at(3);
        QCOMPARE(third.token, 12);
        const std::map<std::string, std::string> rows(third.rows.begin(), third.rows.end());
        QCOMPARE(rows.at("p"), std::string("0.25"));
        QCOMPARE(rows.at("sign η"), std::string("−"));
        QCOMPARE(rows.at("coins, 10–90 %"), std::string("1 – 4"));
        QCOMPARE(fourth.rows.back().second, std::string("not yet"));
        QVERIFY(m_view.factsAt(input, walkOptions(), scene, {2, 2}).rows.empty());
    }

    void tableHoldsTheStepsSoFar() {
        const ViewTable table = m_view.table(handInput(13), walkOptions());
        QCOMPARE(table.rowCount, std::int64_t{3});
        QCOMPARE(table.cell(2, 1) + " " + table.cell(2, 6) + " " + table.cell(2, 7) + " " + table.cell(2, 12),
                 std::string("12 0.25 -1 4"));
    }

    // On a real head: blocked and streaming, with the band of coins that the same kernel gives.
    void theSampleWalks() {
        for (const char* spec : {"balancekv,sink=32,recent=32@0.25", "balancekv_stream:greedy,batch=64"}) {
            const ParameterValues options = walkOptions({{"block", "2"}, {"coins", "100"}});
            const ViewInput input = sampleInput({"keydiff@0.25", spec}, options);
            const auto data = dataAs<WalkData>(input);
            QVERIFY(!data->standIn && data->walks.size() == 1 && data->walks[0].log->place == 2);
            const WalkData::Walk& walk = data->walks[0];
            const std::size_t last = walk.log->tokens.size() - 1;
            QCOMPARE(walk.band.low.size(), last + 1);
            QVERIFY(walk.band.low[last] < walk.log->fairCoins[last] &&
                    walk.log->fairCoins[last] < walk.band.high[last]);
            QVERIFY(walk.log->quadratic[last] < walk.band.low[last]); // gamma = 4 balances
            QVERIFY2(finding(input, options).contains("below their 10–90 % band"), qPrintable(finding(input, options)));
            const Scene kernel = sceneOf(input, walkOptions({{"show", "kernel"}}));
            const auto image = std::find_if(kernel.items.begin(), kernel.items.end(),
                                            [](const Drawable& d) { return std::holds_alternative<ImageItem>(d); });
            QVERIFY(image != kernel.items.end());
            const Scene wide = sceneOf(input, walkOptions({{"show", "kernel"}}), 900, 210); // in the middle
            QVERIFY2(wide.plot.x > 250 && wide.plot.right() < 650, qPrintable(QString::number(wide.plot.x)));
            QCOMPARE(std::get<ImageItem>(*image).width, int(last) + 1);
        }
        const ParameterValues plain = walkOptions();
        const ViewInput coins = sampleInput({"balancekv_stream,batch=64"}, plain);
        QVERIFY2(finding(coins).contains("the signs are fair coins (B1)"), qPrintable(finding(coins)));
    }

    void saysWhatIsMissing() {
        QVERIFY(finding(ViewInput{}) == kNoCapture);
        const ViewInput other = sampleInput({"keydiff@0.25"}, walkOptions());
        QVERIFY2(finding(other).startsWith("Example: "), qPrintable(finding(other)));
        const QString said = QString::fromStdString(paintSceneAsText(sceneOf(other))) + finding(other);
        QVERIFY(said.contains("No pane runs BalanceKV"));
        const QString source = QString::fromStdString(dataAs<WalkData>(other)->source); // said where there is room
        QVERIFY2(source.startsWith("BalanceKV, gain ") && source.contains("sinks 32, recent 32") &&
                     source.endsWith("the gain is chosen from the data"),
                 qPrintable(source));
        QVERIFY(said.contains("This is an example") && !said.contains("balancekv"));
        // It balances visibly: hardly a step is certain, and the sums end below those of coins.
        double walked = 0, coins = 0;
        std::int64_t steps = 0, outside = 0;
        for (const WalkData::Walk& walk : dataAs<WalkData>(other)->walks) {
            walked += walk.log->quadratic.back();
            coins += walk.log->fairCoins.back();
            steps += std::ssize(walk.log->tokens);
            outside += stepsOutside(*walk.log, std::ssize(walk.log->tokens));
        }
        QVERIFY2(outside * 20 < steps, qPrintable(QString("%1 of %2").arg(outside).arg(steps)));
        QVERIFY2(walked < 0.9 * coins, qPrintable(QString::number(walked / coins)));
        QVERIFY(QString::fromStdString(paintSceneAsText(sceneOf(other))).contains("yᵀη / (cR²) = 1 − 2p"));
        for (const QSize low : {QSize(430, 190), QSize(300, 200), QSize(868, 130)}) // the curve has a name there, too
            QVERIFY(
                QString::fromStdString(paintSceneAsText(m_view.buildScene(handInput(13, 1), walkOptions(),
                                                                          viewport(low.width(), low.height(), m_text))))
                    .contains("yᵀη / (cR²)"));
        for (const double width : {943.0, 490.0, 246.0}) { // what to do is never cut
            const QString head = QString::fromStdString(
                paintSceneAsText(m_view.buildScene(other, walkOptions(), viewport(width, 160, m_text))));
            QVERIFY2(head.contains("to see your own.") || head.contains("choose BalanceKV for your own."),
                     qPrintable(head));
        }
        const ViewInput full = sampleInput({"balancekv@1.0"}, walkOptions());
        QVERIFY2(finding(full).contains("holds every token: nothing is balanced. Choose a smaller budget"),
                 qPrintable(finding(full)));
        const ViewInput ends = sampleInput({"balancekv@0.25"}, walkOptions()); // 512 of 249 tokens
        QVERIFY2(finding(ends).contains("Sinks and recents take the whole budget of 249 tokens: nothing was balanced"),
                 qPrintable(finding(ends)));
        const ViewInput far = sampleInput({"balancekv,sink=32,recent=32@0.25"}, walkOptions({{"block", "99"}}));
        QVERIFY2(finding(far).contains("round 1 has blocks 0 to "), qPrintable(finding(far)));
        const ViewInput deep = sampleInput({"balancekv,sink=32,recent=32@0.25"}, walkOptions({{"level", "20"}}));
        QVERIFY2(finding(deep).contains("There is no round 20: the last one is 3"), qPrintable(finding(deep)));
        const ViewInput large = sampleInput({"balancekv_stream,batch=4096"}, walkOptions());
        QVERIFY2(finding(large).contains("No batch of this tree is full"), qPrintable(finding(large)));
        ViewInput waiting = other;
        waiting.data = {};
        QVERIFY(!finding(waiting).isEmpty() && m_view.stepSequence(waiting, walkOptions()).events.empty());
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size :
             {QSize(300, 220), QSize(460, 300), QSize(868, 212), QSize(940, 126), QSize(930, 330), QSize(1400, 900)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        // streaming kernels are tiny in theory and huge as they are: their numbers must fit too
        const std::vector<ViewInput> inputs = {handInput(13, 1), sampleInput({"balancekv@0.25"}, walkOptions()),
                                               sampleInput({"keydiff@0.25"}, walkOptions()),
                                               sampleInput({"balancekv_stream,batch=64"}, walkOptions()),
                                               sampleInput({"balancekv_stream:greedy,batch=64"}, walkOptions())};
        for (const ViewInput& input : inputs)
            for (const char* show : {"walk", "kernel"})
                for (const bool forExport : {false, true}) {
                    Viewport frame = viewport(size.width(), size.height(), m_text);
                    frame.forExport = forExport;
                    const Scene scene = m_view.buildScene(input, walkOptions({{"show", show}}), frame);
                    QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
                    const auto texts = scene_checks::textsOf(scene);
                    QCOMPARE(std::count(texts.begin(), texts.end(), "−0"), 0);
                }
    }
};

KVSCOPE_OFFSCREEN_TEST(WalkViewTest)
#include "walk_view_test.moc"
