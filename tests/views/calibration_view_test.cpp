// The calibration view: points where they were measured, curves of the fitted k, r* where the curve meets tau, proxies
// hollow and named, several contexts, and what a click on r* adopts.
#include "app/export/scene_export.h"
#include "core/base/atomic_file.h"
#include "core/run/calibrated_budget.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/calibration/calibration_data.h"
#include "views/common/policy_style.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <QImage>
#include <QTemporaryDir>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::cloudNamed;
using kvscope::scene_checks::says;
using kvscope::scene_checks::textsOf;

namespace {

const std::vector<std::string> kPanes = {"compactor:kvpress@0.25", "snapkv@0.25"};

const CircleItem* ringOf(const Scene& scene, std::int64_t series) {
    for (const Drawable& item : scene.items)
        if (const auto* circle = std::get_if<CircleItem>(&item);
            circle && circle->pick == PickId{PickId::Kind::Node, series})
            return circle;
    return nullptr;
}

/// Those whose marks are points of a series.
std::vector<const PointCloudItem*> seriesClouds(const Scene& scene) {
    std::vector<const PointCloudItem*> clouds;
    for (const Drawable& item : scene.items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->pickKind == PickId::Kind::Cell)
            clouds.push_back(cloud);
    return clouds;
}

/// Docks as the layouts have them, and a page.
const std::vector<QSize> kSizes = {QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(490, 200),
                                   QSize(654, 260), QSize(700, 520), QSize(1860, 850)};

} // namespace

class CalibrationViewTest : public ViewTest {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string tableOfThree() const {
        const std::string path = m_folder.path().toStdString() + "/three.csv";
        writeFileAtomically(
            path, "context,retention,quality,nll_context\na,0.2,0.8,1\na,0.5,0.97,1\nb,0.2,0.5,2.5\nb,0.5,0.8,2.5\n"
                  "c,0.2,0.25,4\nc,0.5,0.55,4\n");
        return path;
    }

public:
    CalibrationViewTest() : ViewTest(viewById("calibration"), 700, 520) {}

private slots:
    void pointsAreTheTriplesAndProxiesAreHollow() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        const auto data = dataAs<CalibrationViewData>(input);
        QCOMPARE(data->series.size(), std::size_t{2});
        QVERIFY(!data->series[0].proxy && data->series[1].proxy && data->series[0].own && data->series[1].own);
        const Scene scene = build(input, options);
        const PointCloudItem& measured = *cloudNamed(scene, "measured A needle-1k.h5");
        const PointCloudItem& proxy = *cloudNamed(scene, "proxy B needle-1k.h5");
        QCOMPARE(measured.points->size(), std::size_t{13});
        QCOMPARE(proxy.points->size(), proxyBudgetGrid().size());
        QCOMPARE(measured.fill.a, 255);
        QCOMPARE(proxy.fill.a, 0);
        QVERIFY(says(scene, "proxy: not losses of the model") && says(scene, "SnapKV (proxy)"));
        // x is linear in r: 0.5 lies in the middle of 0 and 1
        const auto& triples = data->series[0].triples;
        const auto at = [&](double r) {
            for (std::size_t i = 0; i < triples.size(); ++i)
                if (triples[i].retention == r) return (*measured.points)[i];
            return Point{};
        };
        const Point half = at(0.5), full = at(1), tenth = at(0.1);
        QVERIFY(std::abs((full.x - half.x) / 0.5 - (half.x - tenth.x) / 0.4) < 1e-9);
    }
    void theRingIsWhereTheCurveMeetsTau() {
        const ParameterValues options = optionsOf(m_view, {{"source", "given"}, {"k", "-10"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25"}, options);
        const Scene scene = build(input, options);
        const double needed = retentionNeeded(-10, 0.95); // 0.2995
        QVERIFY(says(scene, "A SnapKV r* " + formatFixed(needed, 3)));
        QVERIFY(says(scene, "τ = 0.95"));
        const CircleItem* ring = ringOf(scene, 0);
        QVERIFY(ring);
        // the tau line is the dashed horizontal line across the plot; the ring lies on it
        const bool onTau = std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
            const auto* line = std::get_if<PolylineItem>(&item);
            return line && line->points.size() == 2 && line->stroke.dash == std::vector<double>{4, 3} &&
                   std::abs(line->points[0].y - ring->centre.y) < 1;
        });
        QVERIFY(onTau);
        QCOMPARE(m_view.finding(input, options),
                 "To keep a quality of 0.95: A SnapKV " + formatFixed(100 * needed, 1) + " %");
        const ParameterValues lower = optionsOf(m_view, {{"source", "given"}, {"k", "-10"}, {"tau", "0.5"}});
        QVERIFY(ringOf(build(input, lower), 0)->centre.x < ring->centre.x);
    }

    void theCurveIsDashedBelowTheSmallestMeasurement() {
        const ParameterValues options = optionsOf(m_view, {{"source", "proxy"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25"}, options);
        const auto data = dataAs<CalibrationViewData>(input);
        double smallest = 1;
        for (const CalibrationTriple& triple : data->series[0].triples) smallest = std::min(smallest, triple.retention);
        const Scene scene = build(input, options);
        std::vector<const PolylineItem*> curves;
        for (const Drawable& item : scene.items)
            if (const auto* line = std::get_if<PolylineItem>(&item); line && line->points.size() > 100)
                curves.push_back(line);
        QCOMPARE(curves.size(), std::size_t{2});
        QVERIFY((curves[0]->stroke.dash == std::vector<double>{3, 3}));
        QVERIFY(std::abs(curves[0]->points.back().x - curves[1]->points.front().x) < 1e-9);
        const double left = curves[0]->points.front().x, right = curves[1]->points.back().x;
        QVERIFY(std::abs((curves[1]->points.front().x - left) / (right - left) - smallest) < 1e-9);
    }

    void contextsOfATableAreGreyAndTheOpenOneColoured() {
        const ParameterValues options = optionsOf(m_view, {{"source", "table"}, {"table", tableOfThree()}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25"}, options);
        const auto data = dataAs<CalibrationViewData>(input);
        QCOMPARE(data->series.size(), std::size_t{4}); // the open capture by its own loss, then a, b, c
        QVERIFY(data->series[0].own && data->series[0].triples.empty());
        const auto fit = fitCalibration(readTriplesCsv(tableOfThree(), "snapkv", "paper").triples, kCalibrationWeight);
        QCOMPARE(data->series[0].k, fit.k(contextNllOf(*input.capture, 995)));
        QVERIFY(data->series[1].k < data->series[2].k && data->series[2].k < data->series[3].k);
        const Scene scene = build(input, options);
        QVERIFY(cloudNamed(scene, "measured A b")->fill == themeOf(ThemeId::Light).text3);
        QVERIFY(cloudNamed(scene, "measured A a")->marker != cloudNamed(scene, "measured A b")->marker);
        QVERIFY(says(scene, "A b"));
        const Budget adopted = *m_view.factsAt(input, options, scene, ringOf(scene, 0)->centre).settingChange->budget;
        QCOMPARE(adopted.text(), "tau=0.95:" + tableOfThree());
        double squares = 0; // the open capture has no points: its line is compared with those of the others
        for (const CalibrationTriple& t : readTriplesCsv(tableOfThree(), "snapkv", "paper").triples)
            squares += std::pow(calibrationCurve(fit.k(t.contextNll), t.retention) - t.quality, 2);
        QVERIFY(m_view.finding(input, options)
                    .find("residual " + formatFixed(std::sqrt(squares / 6), 3) + " over 3 contexts") !=
                std::string::npos);
    }

    void aClickOnTheRingSetsTheQuality() {
        const ParameterValues options = optionsOf(m_view, {{"tau", "0.8"}});
        const ViewInput input = inputFor(m_view, kPanes, options);
        const Scene scene = build(input, options);
        const PointFacts measured = m_view.factsAt(input, options, scene, ringOf(scene, 0)->centre);
        QVERIFY(measured.settingChange && measured.settingChange->pane == 0);
        QCOMPARE(measured.settingChange->budget->text(), std::string("tau=0.8"));
        const PointFacts proxy = m_view.factsAt(input, options, scene, ringOf(scene, 1)->centre);
        QCOMPARE(proxy.settingChange->pane, 1);
        QCOMPARE(proxy.settingChange->budget->text(), std::string("tau=0.8:proxy"));
        // what is adopted is the retention that was shown
        RunRequest request = input.panes[1].result->request;
        request.budget = *proxy.settingChange->budget;
        const auto shown =
            std::find_if(proxy.rows.begin(), proxy.rows.end(), [](const auto& row) { return row.first == "r*"; });
        QCOMPARE(formatFixed(runner().run(request, {})->calibrated->retention, 4), shown->second);
        const ParameterValues heavier = optionsOf(m_view, {{"tau", "0.8"}, {"weight", "9"}});
        const ViewInput other = inputFor(m_view, kPanes, heavier);
        const Scene redrawn = build(other, heavier);
        const Budget fraction =
            *m_view.factsAt(other, heavier, redrawn, ringOf(redrawn, 1)->centre).settingChange->budget;
        QVERIFY(fraction.unit == Budget::Unit::Fraction);
    }

    void pointsTellTheirNumbers() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"compactor:kvpress@0.25"}, options);
        const Scene scene = build(input, options);
        const auto& points = *cloudNamed(scene, "measured A needle-1k.h5")->points;
        const PointFacts facts = m_view.factsAt(input, options, scene, points[7]); // r = 0.5
        QVERIFY(facts.settingChange && facts.settingChange->pane == 0);
        QCOMPARE(facts.settingChange->budget->text(), (Budget{Budget::Unit::Fraction, 0.5}.text()));
        const auto value = [&](const char* name) {
            for (const auto& [key, text] : facts.rows)
                if (key == name) return text;
            return std::string();
        };
        QCOMPARE(value("retention"), std::string("0.500"));
        QCOMPARE(value("quality"), formatFixed(dataAs<CalibrationViewData>(input)->series[0].triples[7].quality, 3));
    }

    // In the list or in the legend, at every size.
    void everyNeededRetentionIsTold() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input =
            inputFor(m_view, {"compactor:kvpress@0.25", "snapkv@0.25", "streaming_llm@0.25"}, options);
        for (const QSize size : kSizes) {
            const Scene scene = build(input, options, size.width(), size.height());
            const QByteArray where = QByteArray::number(size.width()) + " x " + QByteArray::number(size.height());
            for (const CalibrationSeries& series :
                 dataAs<CalibrationViewData>(input)->series) // of a poor fit two digits
                QVERIFY2(
                    says(scene, formatFixed(retentionNeeded(series.k, 0.95),
                                            misfitOf(series.triples, series.k, kCalibrationWeight).isPoor() ? 2 : 3)),
                    where + paintSceneAsText(scene).c_str());
        }
    }

    void marksAtTheEndsStandWhole() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input =
            inputFor(m_view, {"keydiff:kvpress@0.25", "snapkv@0.25"}, options); // qualities from 0.003 to 1.02
        for (const QSize size : kSizes) {
            const Scene scene = build(input, options, size.width(), size.height());
            const Box plot = scene_checks::clipOf(scene);
            double rightmost = 0, lowest = 0;
            for (const PointCloudItem* cloud : seriesClouds(scene))
                for (const Point point : *cloud->points) {
                    const double r = cloud->radius + 1;
                    QVERIFY2(
                        point.x - r >= plot.x && point.x + r <= plot.right() && point.y - r >= plot.y &&
                            point.y + r <= plot.bottom(),
                        qPrintable(
                            QString("%1 x %2: %3, %4").arg(size.width()).arg(size.height()).arg(point.x).arg(point.y)));
                    rightmost = std::max(rightmost, point.x), lowest = std::max(lowest, point.y);
                }
            QVERIFY(plot.right() - rightmost < 8 && plot.bottom() - lowest < 8); // the margin is no more than that
        }
    }

    void aCurveThatMissesItsPointsIsCalledAPoorFit() {
        const std::string path = m_folder.path().toStdString() + "/fits.csv", open = needleCapture()->info().fileName;
        std::string rows = "context,retention,quality,policy\n";
        for (const double r : {0.1, 0.3, 0.5, 0.7}) {
            rows += open + "," + std::to_string(r) + "," + std::to_string(calibrationCurve(-6, r)) + ",compactor\n";
            rows += open + "," + std::to_string(r) + "," + std::to_string(r < 0.2 ? 0.01 : 1.0) +
                    ",snapkv\n"; // a step, which no f is
        }
        writeFileAtomically(path, rows);
        const ParameterValues options = optionsOf(m_view, {{"source", "table"}, {"table", path}});
        const ViewInput input = inputFor(m_view, {"compactor@0.25", "snapkv@0.25"}, options);
        const auto data = dataAs<CalibrationViewData>(input);
        double squares = 0, deviations = 0;
        for (const CalibrationTriple& triple : data->series[1].triples) {
            squares += std::pow(calibrationCurve(data->series[1].k, triple.retention) - triple.quality, 2);
            deviations += std::pow(triple.quality - (0.01 + 3) / 4, 2);
        }
        const std::string finding = m_view.finding(input, options),
                          residual = "residual " + formatFixed(std::sqrt(squares / 4), 3);
        QVERIFY2(finding.find(residual + " of few rows (4): poor fit") != std::string::npos, finding.c_str());
        QVERIFY2(finding.find("residual 0.000") != std::string::npos, finding.c_str());
        QCOMPARE(finding.find("poor fit"), finding.rfind("poor fit"));
        for (const QSize size : {QSize(490, 200), QSize(700, 520), QSize(1000, 200), QSize(1860, 850)}) {
            const auto texts = textsOf(build(input, options, size.width(), size.height()));
            QCOMPARE(std::count_if(texts.begin(), texts.end(),
                                   [](const std::string& text) { return text.find("poor fit") != std::string::npos; }),
                     std::ptrdiff_t{1});
        }
        // Of the step the points know better: 0.3 keeps 0.95, and nothing below does. It stands before r*, and is
        // ringed.
        const auto saysIt = finding.find("B SnapKV 30.0 % by its points, ");
        QVERIFY2(saysIt != std::string::npos, finding.c_str());
        QVERIFY2(finding.find(" by its curve", saysIt) != std::string::npos, finding.c_str());
        const Scene scene = build(input, options);
        const Point ringed = (*cloudNamed(scene, "measured B " + open)->points)[1];
        QVERIFY(std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
            const auto* circle = std::get_if<CircleItem>(&item);
            return circle && circle->centre.x == ringed.x && circle->centre.y == ringed.y && circle->radius == 6;
        }));
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.columns.back(), std::string("r_squared"));
        QVERIFY(std::abs(std::stod(table.cell(4, int(table.columns.size()) - 1)) - (1 - squares / deviations)) < 1e-6);
    }

    // What the legend shows beside B's name is B's mark: its shape, its colour, hollow.
    void theLegendHasTheMarksOfThePlot() {
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = build(inputFor(m_view, kPanes, options), options);
        for (const auto& [label, cloudName] :
             {std::pair("A Compactor", "measured A needle-1k.h5"), std::pair("B SnapKV", "proxy B needle-1k.h5")}) {
            const PointCloudItem& cloud = *cloudNamed(scene, cloudName);
            const auto outline = markerOutline(cloud.marker, cloud.radius);
            QVERIFY(!outline.empty()); // a diamond, a square
            bool found = false;
            for (std::size_t i = 0; i + 1 < scene.items.size(); ++i) {
                const auto* mark = std::get_if<PolygonItem>(&scene.items[i]);
                const auto* text = std::get_if<TextItem>(&scene.items[i + 1]);
                if (!mark || !text || !text->text.starts_with(label)) continue;
                const Point shift{mark->points[0].x - outline[0].x, mark->points[0].y - outline[0].y};
                found = mark->points.size() == outline.size() && mark->fill == cloud.fill &&
                        mark->stroke.colour == cloud.stroke.colour;
                for (std::size_t p = 0; found && p < outline.size(); ++p)
                    found = std::hypot(mark->points[p].x - outline[p].x - shift.x,
                                       mark->points[p].y - outline[p].y - shift.y) < 1e-9;
            }
            QVERIFY2(found, label);
        }
    }

    void theTableHoldsEveryTriple() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, static_cast<std::int64_t>(13 + proxyBudgetGrid().size()));
        QCOMPARE(table.cell(0, 4), std::string("measured"));
        QCOMPARE(table.cell(13, 4), std::string("proxy"));
        QVERIFY(!table.cell(0, 10).empty() && !table.cell(0, 11).empty());
        std::string csv;
        for (const std::string& column : table.columns) csv += (csv.empty() ? "" : ",") + column;
        for (std::int64_t row = 0; row < table.rowCount; ++row) {
            csv += "\n";
            for (int column = 0; column < std::ssize(table.columns); ++column)
                csv += (column > 0 ? ",\"" : "\"") + table.cell(row, column) + "\"";
        }
        const std::string path = m_folder.path().toStdString() + "/view.csv";
        writeFileAtomically(path, csv + "\n");
        const auto data = dataAs<CalibrationViewData>(input);
        const CalibrationData measured = readTriplesCsv(path, "compactor", "kvpress"),
                              proxy = readTriplesCsv(path, "snapkv", data->series[1].variant);
        QVERIFY(!measured.proxy && proxy.proxy);
        QCOMPARE(measured.triples.size(), std::size_t{13});
        QCOMPARE(proxy.triples.size(), proxyBudgetGrid().size());
        for (std::size_t i = 0; i < measured.triples.size(); ++i) {
            const CalibrationTriple &read = measured.triples[i], &shown = data->series[0].triples[i];
            QVERIFY(read.context == shown.context && std::abs(read.quality - shown.quality) < 1e-8 &&
                    std::abs(read.retention - shown.retention) < 1e-8 &&
                    std::abs(read.contextNll - shown.contextNll) < 1e-8);
        }
    }

    void whatCannotBeCalibratedSaysWhy() {
        const ParameterValues options = optionsOf(m_view, {{"source", "measured"}});
        const ViewInput none = inputFor(m_view, {"snapkv@0.25"}, options);
        QVERIFY(m_view.finding(none, options).find("snapkv:kvpress") != std::string::npos);
        QVERIFY(!textsOf(build(none, options)).empty());
        const ViewInput exact = inputFor(m_view, {"exact"}, options);
        QVERIFY(m_view.finding(exact, options).find("takes no budget") != std::string::npos);
        const ViewInput half = inputFor(m_view, {"compactor:kvpress@0.25", "exact"}, options);
        QVERIFY(says(build(half, options), "B: no curve"));
        ViewInput closed;
        QVERIFY(m_view.finding(closed, options).find("No capture") != std::string::npos);
    }

    // What must be visible on paper: the colour of each policy, and the measured marks as filled discs.
    void thePictureShowsEachPolicy() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        const std::string path = m_folder.path().toStdString() + "/calibration.png";
        exportScene(build(input, options), path, {});
        const QImage picture(QString::fromStdString(path));
        QCOMPARE(picture.size(), QSize(700, 520));
        for (const char* policy : {"compactor", "snapkv"}) {
            const Colour colour = policyStyle(policy, ThemeId::Light).colour;
            int pixels = 0;
            for (int y = 0; y < picture.height(); ++y)
                for (int x = 0; x < picture.width(); ++x)
                    pixels += picture.pixelColor(x, y) == QColor(colour.r, colour.g, colour.b) ? 1 : 0;
            QVERIFY2(pixels > 300, qPrintable(QString("%1: %2 pixels").arg(policy).arg(pixels)));
        }
    }

    // Where the list of curves has no room, the legend names the policies.
    void everyPolicyIsNamedAtEverySize() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"compactor:kvpress@0.25", "snapkv:kvpress@0.25"}, options);
        for (const QSize size : {QSize(317, 240), QSize(460, 300), QSize(620, 420), QSize(900, 700)})
            for (const ThemeId theme : {ThemeId::Paper, ThemeId::Dark}) {
                Viewport frame = viewport(size.width(), size.height(), m_text, theme);
                frame.forExport = theme == ThemeId::Paper;
                const Scene scene = m_view.buildScene(input, options, frame);
                for (const char* name : {"A Compactor", "B SnapKV"})
                    QVERIFY2(paintSceneAsText(scene).find(name) != std::string::npos,
                             qPrintable(QString("%1 px: %2").arg(size.width()).arg(name)));
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
    }

    void aLegendOfManyContextsNamesTheOpenOne() {
        std::string rows = "context,retention,quality,nll_context\n";
        for (char name = 'a'; name <= 'j'; ++name)
            for (const char* point : {",0.2,0.8,", ",0.5,0.97,"})
                rows += std::string("context ") + name + point + std::to_string(1 + name - 'a') + "\n";
        const std::string path = m_folder.path().toStdString() + "/many.csv";
        writeFileAtomically(path, rows);
        const ParameterValues options = optionsOf(m_view, {{"source", "table"}, {"table", path}});
        const ViewInput input = inputFor(m_view, {"compactor@0.25", "snapkv@0.25"}, options);
        const Scene scene = build(input, options, 600, 420); // no room for the list in the plot
        QVERIFY2(says(scene, "A Compactor") && says(scene, "B SnapKV") && says(scene, "other contexts, measured"),
                 paintSceneAsText(scene).c_str());
        QVERIFY(!says(scene, "context a"));
    }

    void nothingOverlapsAtAnySize() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(
            m_view, {"compactor:kvpress@0.25", "snapkv:kvpress@0.25", "keydiff:kvpress@0.25", "tova:kvpress@0.25"},
            options);
        for (const QSize size :
             {QSize(300, 220), QSize(460, 300), QSize(930, 260), QSize(1400, 900), QSize(940, 140), QSize(490, 160)})
            for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
                Viewport frame = viewport(size.width(), size.height(), m_text, theme);
                frame.forExport = true;
                const Scene scene = m_view.buildScene(input, options, frame);
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
    }
};

KVSCOPE_OFFSCREEN_TEST(CalibrationViewTest)
#include "calibration_view_test.moc"
