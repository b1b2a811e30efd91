// Two captures: the table says both numbers and their difference, every head has its mark on the right side of the
// diagonal, and nothing lies over anything in docks of every shape.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/two_captures/two_captures_data.h"
#include "views/view.h"

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Numbers chosen by hand: KeyDiff loses more on the second capture, SnapKV less; the last pane has no numbers.
TwoCapturesData handMade() {
    TwoCapturesData data;
    data.first = {"needle-1k.h5", 995};
    data.second = {"records-2k.h5", 2000};
    data.what = "Attention-output error";
    const auto add = [&](char letter, const char* id, const char* name) -> TwoCapturesData::Pane& {
        TwoCapturesData::Pane& pane = data.panes.emplace_back();
        pane.letter = letter, pane.policyId = id, pane.policyName = name;
        return pane;
    };
    const auto addMeasured = [&](char letter, const char* id, const char* name, double first, double second) {
        TwoCapturesData::Pane& pane = add(letter, id, name);
        pane.keptFirst = 249, pane.keptSecond = 500, pane.first = first, pane.second = second;
        for (int head = 0; head < 8; ++head) pane.heads.push_back({3, head, first + 0.01 * head, second + 0.01 * head});
    };
    addMeasured('A', "keydiff", "KeyDiff", 0.25, 0.375);
    addMeasured('B', "snapkv", "SnapKV", 0.5, 0.25);
    add('C', "h2o", "H2O (recorded)").refusal = "the list belongs to another capture";
    return data;
}

ViewInput handMadeInput() {
    ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25", "h2o@0.25"});
    input.layer = LayerIndex(3);
    input.data.value = std::make_shared<const TwoCapturesData>(handMade());
    return input;
}

} // namespace

class TwoCapturesViewTest : public ViewTest {
    Q_OBJECT

    const ParameterValues m_options{m_view.card().options};

public:
    TwoCapturesViewTest() : ViewTest(viewById("two_captures")) {}

private slots:
    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(940, 170), QSize(640, 300), QSize(430, 360), QSize(300, 200), QSize(1200, 400)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        const ViewInput input = handMadeInput();
        for (const bool forExport : {false, true}) {
            Viewport frame = viewport(size.width(), size.height(), m_text);
            frame.forExport = forExport;
            const Scene scene = m_view.buildScene(input, m_options, frame);
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            for (const char* number : {"0.250", "0.375", "+0.125", "0.500", "−0.250"})
                QVERIFY2(scene_checks::hasText(scene, number), number);
        }
    }

    void everyHeadHasItsMark() {
        const ViewInput input = handMadeInput();
        const Scene scene = m_view.buildScene(input, m_options, viewport(900, 400, m_text));
        QVERIFY(scene.plot.width > 100 && std::abs(scene.plot.width - scene.plot.height) < 0.5);
        std::size_t marks = 0;
        for (const Drawable& item : scene.items) {
            const auto* cloud = std::get_if<PointCloudItem>(&item);
            if (!cloud || !cloud->name.starts_with("heads")) continue;
            for (std::size_t i = 0; i < cloud->points->size(); ++i, ++marks) {
                const Point at = (*cloud->points)[i];
                const double across = at.x - scene.plot.x, up = scene.plot.bottom() - at.y;
                const bool isKeyDiff = (*cloud->ids)[i] < 8; // above the diagonal: it loses more on the second
                QVERIFY(isKeyDiff ? up > across : up < across);
                const PointFacts facts = m_view.factsAt(input, m_options, scene, at);
                QCOMPARE(facts.layer, 3);
                QVERIFY(facts.queryHead >= 0 && facts.queryHead < 8);
            }
        }
        QCOMPARE(marks, std::size_t{16});
    }

    // At 0.3 BalanceKV's sinks and recents are the whole budget of the short prompt, and not of the long one.
    void whatBalancedNothingOnTheSecondSaysSo() {
        ViewInput input =
            makeInput(openCapture(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5"), {"balancekv@0.3"}, 3, 0);
        ViewDataRequest request = dataRequest(input, m_options);
        request.panes[0].run.measure = true;
        request.compared = needleCapture();
        input.data.value = makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
        const std::string finding = m_view.finding(input, m_options);
        QVERIFY2(
            finding.ends_with(" · nothing was balanced for A on needle-1k.h5: sinks and recents take the whole budget"),
            finding.c_str());
        const ViewTable table = m_view.table(input, m_options);
        QCOMPARE(table.columns.back(), std::string("notes"));
        QCOMPARE(table.cell(0, 8), std::string("second: nothing balanced"));
        const std::string text = paintSceneAsText(build(input, m_options, 900, 400));
        QVERIFY2(text.find("A: nothing balanced on 2") != std::string::npos, text.c_str());
    }

    // A budget in quality is another retention on another prompt.
    void theRetentionOfAQualityIsSaidOfBoth() {
        ViewInput input = needleInput({"keydiff@tau=0.9:proxy"});
        ViewDataRequest request = dataRequest(input, m_options);
        request.panes[0].run.budget = Budget::parse("tau=0.9:proxy");
        request.panes[0].run.measure = true;
        request.compared = openCapture(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");
        input.data.value = makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
        const std::string finding = m_view.finding(input, m_options);
        QVERIFY2(finding.find(" kept on story-2k.h5 for tau = 0.9 by proxy") != std::string::npos, finding.c_str());
        const std::string notes = m_view.table(input, m_options).cell(0, 8);
        QVERIFY2(notes.find("first: retention ") != std::string::npos &&
                     notes.find("; second: retention ") != std::string::npos,
                 notes.c_str());
    }

    void theSentenceNamesTheBestOfEachAndTheLargestDifference() {
        const std::string finding = m_view.finding(handMadeInput(), m_options);
        QCOMPARE(QString::fromStdString(finding),
                 QString("A KeyDiff is best on needle-1k.h5, B SnapKV on records-2k.h5; B SnapKV differs most: "
                         "attention-output error 0.5 on needle-1k.h5, 0.25 on records-2k.h5 (−0.25)"));
        const auto findingOf = [&](double a, double b, double aSecond, double bSecond) {
            TwoCapturesData data = handMade();
            data.panes[0].first = a, data.panes[0].second = aSecond;
            data.panes[1].first = b, data.panes[1].second = bSecond;
            ViewInput input = handMadeInput();
            input.data.value = std::make_shared<const TwoCapturesData>(data);
            return QString::fromStdString(m_view.finding(input, m_options));
        };
        QCOMPARE(findingOf(0, 0, 0, 0),
                 QString("The best are equal on both captures; no pane's attention-output error differs"));
        QVERIFY(findingOf(0, 0, 0.5, 0.25)
                    .startsWith("The best are equal on needle-1k.h5, B SnapKV is best on "
                                "records-2k.h5; A KeyDiff differs most"));
        QVERIFY(findingOf(0.5, 0.25, 0, 0)
                    .startsWith("B SnapKV is best on needle-1k.h5, the best are equal on "
                                "records-2k.h5; A KeyDiff differs most"));
        TwoCapturesData ofKeys = handMade();
        ofKeys.ofPane = false;
        ofKeys.what = "Key norm";
        ViewInput keys = handMadeInput();
        keys.data.value = std::make_shared<const TwoCapturesData>(ofKeys);
        QVERIFY(QString::fromStdString(m_view.finding(keys, m_options)).startsWith("Key norm "));
        const ViewTable table = m_view.table(handMadeInput(), m_options);
        QCOMPARE(table.rowCount, std::int64_t{2 * 9 + 1});
        QCOMPARE(table.cell(0, 5), std::string("0.125"));
        QCOMPARE(table.cell(0, 7), std::string("500"));
    }
};

KVSCOPE_OFFSCREEN_TEST(TwoCapturesViewTest)
#include "two_captures_view_test.moc"
