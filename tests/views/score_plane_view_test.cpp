// The score plane: tokens stand at their standardised scores, the line has the slope of the paper and separates kept
// from evicted, nothing is left out without a count, and other policies are told what to choose.
#include "app/export/scene_export.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/score_plane/score_plane.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

/// Back from a pixel of the plot to the scores.
Point dataAt(const Scene& scene, Point pixel) {
    return {scene.xMin + (pixel.x - scene.plot.x) / scene.plot.width * (scene.xMax - scene.xMin),
            scene.yMin + (scene.plot.bottom() - pixel.y) / scene.plot.height * (scene.yMax - scene.yMin)};
}

/// The selection line: the only thick polyline of two points.
std::vector<Point> lineOf(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* line = std::get_if<PolylineItem>(&item);
            line && line->points.size() == 2 && line->stroke.width == 2)
            return {dataAt(scene, line->points[0]), dataAt(scene, line->points[1])};
    return {};
}

/// z = (x - mean) / std of the parts that the policy reports, written down from the formula.
std::vector<double> standardised(const RunResult& result, const char* part, int head) {
    const HostTensor& table = result.parts.at(part);
    const auto width = static_cast<std::size_t>(table.shape[1]);
    const std::vector<double> x(table.data.begin() + static_cast<std::ptrdiff_t>(width) * head,
                                table.data.begin() + static_cast<std::ptrdiff_t>(width) * (head + 1));
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(width);
    double squares = 0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    std::vector<double> z;
    for (const double value : x) z.push_back((value - mean) / std::sqrt(squares / static_cast<double>(width)));
    return z;
}

} // namespace

class ScorePlaneViewTest : public ViewTest {
    Q_OBJECT

    ParameterValues m_everything{m_view.card().options}, m_middle{m_view.card().options};

    ViewInput input(const std::string& spec) { return needleInput({spec}); }

public:
    ScorePlaneViewTest() : ViewTest(viewById("score_plane"), 640, 460) {}

private slots:
    void initTestCase() { m_everything.setText("shown", "all"); }

    void marksStandAtTheStandardisedScores() {
        const ViewInput in = input("compactor@0.25");
        const Scene scene = build(in, m_everything);
        const auto x = standardised(*in.panes[0].result, "attention", 1),
                   y = standardised(*in.panes[0].result, "leverage", 1);
        std::size_t marks = 0;
        for (const char* name : {"kept", "evicted"}) {
            const PointCloudItem& cloud = *cloudNamed(scene, name);
            marks += cloud.ids->size();
            for (std::size_t i = 0; i < cloud.ids->size(); ++i) {
                const auto token = static_cast<std::size_t>((*cloud.ids)[i]);
                const Point at = dataAt(scene, (*cloud.points)[i]);
                QVERIFY(std::abs(at.x - x[token]) < 1e-5 && std::abs(at.y - y[token]) < 1e-5);
            }
        }
        QCOMPARE(marks, std::size_t{995});
        QCOMPARE(cloudNamed(scene, "kept")->ids->size(), std::size_t{249}); // ceil(0.25 * 995)
    }

    // The line is between the two states, and both colours are where it says, at every lambda and budget.
    void theLineSeparatesKeptFromEvicted_data() {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<double>("lambda");
        for (const char* budget : {"0.05", "0.25", "0.9"}) {
            QTest::addRow("paper %s", budget) << QString("compactor@%1").arg(budget) << 0.3;
            QTest::addRow("attention alone %s", budget) << QString("compactor,lambda=0@%1").arg(budget) << 0.0;
            QTest::addRow("leverage heavy %s", budget) << QString("compactor,lambda=2.5@%1").arg(budget) << 2.5;
            QTest::addRow("kvpress %s", budget)
                << QString("compactor:kvpress@%1").arg(budget) << 1 - QString(budget).toDouble();
            QTest::addRow("jointly %s", budget) << QString("compactor:compactor_vllm@%1").arg(budget) << 0.5;
        }
    }
    void theLineSeparatesKeptFromEvicted() {
        QFETCH(QString, spec);
        QFETCH(double, lambda);
        const ViewInput in = input(spec.toStdString());
        const Scene scene = build(in, m_everything);
        const std::vector<Point> line = lineOf(scene);
        QCOMPARE(line.size(), std::size_t{2});
        const double score = line[0].x + lambda * line[0].y; // the same at both ends: the slope is -1 / lambda
        QVERIFY2(std::abs(line[1].x + lambda * line[1].y - score) < 1e-6,
                 qPrintable(QString("%1 and %2").arg(score).arg(line[1].x + lambda * line[1].y)));
        QVERIFY(std::abs(line[0].x - line[1].x) + std::abs(line[0].y - line[1].y) > 0.5);
        for (const Point& p : *cloudNamed(scene, "kept")->points)
            QVERIFY(dataAt(scene, p).x + lambda * dataAt(scene, p).y > score - 1e-4);
        for (const Point& p : *cloudNamed(scene, "evicted")->points)
            QVERIFY(dataAt(scene, p).x + lambda * dataAt(scene, p).y < score + 1e-4);
    }

    void protectedTokensAreSquaresOnBothSides() {
        const ViewInput in = input("compactor,protect_first=8,protect_last=24@0.1");
        const Scene scene = build(in, m_everything);
        QCOMPARE(cloudNamed(scene, "protected")->ids->size(), std::size_t{32});
        QCOMPARE(cloudNamed(scene, "protected")->marker, Marker::Square);
        QCOMPARE(cloudNamed(scene, "kept")->ids->size(), std::size_t{68}); // 100 less the protected
    }

    void whatLiesBeyondIsCountedByState() {
        const ViewInput in = input("compactor@0.25");
        const Scene scene = build(in, m_middle);
        std::int64_t kept = 0, evicted = 0;
        const ScorePlane plane = scorePlaneOf(in);
        for (std::size_t i = 0; i < plane.marks.places.size(); ++i) {
            const Point p = plane.marks.places[i];
            if (p.x >= scene.xMin && p.x <= scene.xMax && p.y >= scene.yMin && p.y <= scene.yMax) continue;
            (plane.marks.states[i] == TokenState::Kept ? kept : evicted) += 1;
        }
        QVERIFY(kept > 0 && kept + evicted < 20); // at most 0.5 % at each of four ends
        std::string wanted = std::to_string(kept + evicted) + " beyond the range: " + std::to_string(kept) + " kept";
        if (evicted > 0) wanted += ", " + std::to_string(evicted) + " evicted";
        const auto texts = textsOf(scene);
        QVERIFY2(std::count(texts.begin(), texts.end(), wanted) == 1, wanted.c_str());
        for (const std::string& text : textsOf(build(in, m_everything)))
            QVERIFY(text.find("beyond") == std::string::npos);
    }

    // A sketch has no more columns than a key: the axis must not claim the 200 that were asked for.
    void theAxisNamesTheColumnsThatThereAre() {
        const auto texts = textsOf(build(input("compactor,sketch_size=200@0.25"), m_middle));
        QCOMPARE(needleCapture()->info().headDim, 64);
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("z(leverage): sketch, k = 64")) == 1);
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("z(attention): non-causal, C = 256")) == 1);
    }

    void skippedTokensHaveNoPlaceAndAreCounted() {
        const Scene scene = build(input("compactor:kvpress@0.25"), m_everything);
        const auto texts = textsOf(scene);
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("12 tokens have no scores")) == 1);
    }

    // Two scores, four tokens, worked out by hand: (3,0) (0,3) (2,2) (0,0); lambda 1 keeps 2.
    void deciderCountsByHand() {
        ScorePlane plane;
        plane.marks.places = {{3, 0}, {0, 3}, {2, 2}, {0, 0}};
        plane.marks.states = {TokenState::Kept, TokenState::Evicted, TokenState::Kept, TokenState::Evicted};
        plane.total = {3, 3, 4, 0};
        const Deciders deciders = decidersOf(plane); // attention: tokens 0 and 2; leverage: 1 and 2
        QCOMPARE(deciders.kept, 2);
        QCOMPARE(deciders.byAttention, 2);
        QCOMPARE(deciders.byLeverage, 1);
        QCOMPARE(deciders.byBoth, 1);
    }

    void theLineIsCutAtTheFrameByHand() {
        ScorePlane plane;
        plane.lambda = 0.5;
        plane.threshold = 1; // x + y / 2 = 1
        PlotFrame frame;
        frame.x = {0, 10, AxisScale::Linear, ""};
        frame.y = {0, 10, AxisScale::Linear, ""};
        const std::vector<Point> line = lineInside(plane, frame);
        QCOMPARE(line.size(), std::size_t{2});
        QVERIFY(line[0].x == 1 && line[0].y == 0 && line[1].x == 0 && line[1].y == 2);
        plane.threshold = 100;
        QVERIFY(lineInside(plane, frame).empty());
        plane.lambda = 0;
        plane.threshold = 4;
        QVERIFY(lineInside(plane, frame)[0].x == 4 && lineInside(plane, frame)[1].y == 10);
    }

    void theFindingSaysWhichScoreDecides() {
        QVERIFY(m_view.finding(input("compactor,lambda=0@0.25"), m_middle)
                    .starts_with("Attention decides: of 249 tokens kept by score, 249 would be by attention alone"));
        QVERIFY(m_view.finding(input("compactor,lambda=3@0.25"), m_middle).starts_with("Leverage decides: of 249"));
        QVERIFY(
            m_view.finding(input("compactor,protect_first=0,protect_last=0@1t"), m_middle).find(": of 1 token kept ") !=
            std::string::npos);
        QVERIFY(m_view.finding(input("compactor,protect_first=400@0.25"), m_middle)
                    .starts_with("No token is kept for its scores"));
    }

    void otherPoliciesAreToldWhatToChoose() {
        for (const char* spec : {"keydiff@0.25", "leverage@0.25", "exact"}) {
            const ViewInput in = input(spec);
            QVERIFY2(scene_checks::says(build(in, m_middle), "Choose Compactor"), spec);
            QCOMPARE(m_view.table(in, m_middle).rowCount, 0);
        }
        QVERIFY(!m_view.finding(ViewInput{}, m_middle).empty());
        QVERIFY(m_view.finding(input("compactor,skip_first=4096@0.25"), m_middle).find("Lower its skipped tokens") !=
                std::string::npos);
    }

    void theHandleTellsItsNumbers() {
        const ViewInput in = input("compactor@0.25");
        const Scene scene = build(in, m_middle);
        for (const Drawable& item : scene.items)
            if (const auto* circle = std::get_if<CircleItem>(&item);
                circle && circle->pick.kind == PickId::Kind::Handle) {
                const PointFacts facts = m_view.factsAt(in, m_middle, scene, circle->centre);
                QCOMPARE(facts.rows.size(), std::size_t{4});
                QCOMPARE(facts.rows[2].second, std::string("slope −1/λ = −3.33"));
                return;
            }
        QFAIL("no handle");
    }

    // x + y / 2 = 1, tokens at (3,0) (0,3) (2,2) (0,0): a line through (2, -1) has lambda 1 - but clamped where it
    // would not.
    void draggingByHand() {
        ScorePlane plane;
        plane.marks.places = {{3, 0}, {0, 3}, {2, 2}, {0, 0}};
        plane.marks.states = {TokenState::Kept, TokenState::Kept, TokenState::Kept, TokenState::Protected};
        plane.total = {3, 1.5F, 3, 0};
        plane.lambda = 0.5;
        plane.threshold = 1;
        QCOMPARE(*lambdaThrough(plane, {2, -1}), 1.0); // (1 - 2) / -1
        QCOMPARE(*lambdaThrough(plane, {0, 2}), 0.5);
        QCOMPARE(*lambdaThrough(plane, {5, 2}), 0.0);  // would lean the other way
        QCOMPARE(*lambdaThrough(plane, {-9, 1}), 3.0); // the parameter's largest
        QVERIFY(!lambdaThrough(plane, {1, 0}));
        QCOMPARE(budgetThrough(plane, {2, 0}), 3); // two scores of 3, and the protected one
        QCOMPARE(budgetThrough(plane, {1, 0}), 4);
        QCOMPARE(budgetThrough(plane, {50, 0}), 1);
    }

    void theLineFollowsWhereItIsDragged() {
        const ViewInput in = input("compactor@0.25");
        const Scene scene = build(in, m_everything);
        const auto& handles = m_view;
        const Point target{scene.plot.x + 0.5 * scene.plot.width, scene.plot.bottom() - 0.2 * scene.plot.height};
        const auto turned = handles.draggedTo(in, m_everything, scene, {PickId::Kind::Handle, 0}, target);
        QVERIFY(turned && !turned->budget && turned->values.size() == 2);
        const Point data = dataAt(scene, target);
        const double lambda = std::clamp((scorePlaneOf(in).threshold - data.x) / data.y, 0.0, 3.0);
        QVERIFY(std::abs(std::stod(turned->values[1].second) - lambda) < 0.006);
        const auto moved = handles.draggedTo(in, m_everything, scene, {PickId::Kind::Handle, 1}, target);
        QVERIFY(moved && moved->values.empty() && moved->budget->unit == Budget::Unit::Tokens);
        // With that budget the point lies between the worst kept and the best evicted score.
        const ScorePlane there =
            scorePlaneOf(input("compactor@" + std::to_string(std::llround(moved->budget->value)) + "t"));
        for (std::size_t i = 0; i < there.total.size(); ++i)
            QCOMPARE(there.marks.states[i] == TokenState::Kept, double(there.total[i]) >= data.x + 0.3 * data.y);
        QVERIFY(!handles.draggedTo(input("keydiff@0.25"), m_everything, scene, {PickId::Kind::Handle, 1}, target));
    }

    void tableRanksEveryToken() {
        const ViewInput in = input("compactor@0.25");
        const ViewTable table = m_view.table(in, m_middle);
        QCOMPARE(table.rowCount, 995);
        std::set<std::string> ranks;
        for (std::int64_t row = 0; row < 995; ++row) {
            ranks.insert(table.cell(row, 7));
            QCOMPARE(table.cell(row, 3) == "kept", std::stoi(table.cell(row, 7)) < 249);
        }
        QCOMPARE(ranks.size(), std::size_t{995});
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(220, 160), QSize(300, 220), QSize(460, 300), QSize(640, 460), QSize(1400, 900)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        for (const char* spec :
             {"compactor@0.25", "compactor:kvpress@0.1", "compactor,lambda=0@0.5", "compactor,prompt_block=256@0.25"})
            QCOMPARE(misplacedTexts(m_view, input(spec), m_middle, size, m_text, ThemeId::Dark, ThemeId::Paper),
                     QStringList());
    }

    // The lower left is orange, the upper right blue, and the line between them ink.
    void pictureShowsTwoSidesOfALine() {
        const Scene scene = build(input("compactor,lambda=1@0.3"), m_middle, 800, 600);
        const QImage image = renderScene(scene, 1);
        int blue = 0, orange = 0;
        for (int y = static_cast<int>(scene.plot.y) + 40; y < scene.plot.bottom(); ++y)
            for (int x = static_cast<int>(scene.plot.x) + 1; x < scene.plot.right(); ++x) {
                const QColor c = image.pixelColor(x, y);
                blue += c.blue() > 150 && c.red() < 60;
                orange += c.red() > 190 && c.blue() < 90;
            }
        QVERIFY2(blue > 1000 && orange > 1000, qPrintable(QString("%1 blue, %2 orange").arg(blue).arg(orange)));
        const std::vector<Point> line = lineOf(scene);
        const auto pixel = [&](Point p) {
            return QPoint(
                static_cast<int>(scene.plot.x + (p.x - scene.xMin) / (scene.xMax - scene.xMin) * scene.plot.width),
                static_cast<int>(scene.plot.bottom() -
                                 (p.y - scene.yMin) / (scene.yMax - scene.yMin) * scene.plot.height));
        };
        const Point middle{(line[0].x + line[1].x) / 2, (line[0].y + line[1].y) / 2};
        QVERIFY(image.pixelColor(pixel(middle)).lightness() < 120);
    }
};

KVSCOPE_OFFSCREEN_TEST(ScorePlaneViewTest)
#include "score_plane_view_test.moc"
