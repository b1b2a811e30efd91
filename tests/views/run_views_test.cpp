// The views that read results and runs (token profile, curves, layer x head grid, block timeline) on the sample: their
// numbers against the results themselves, their words, their layout at every size.
#include "app/text/qt_text_service.h"
#include "core/metrics/fidelity.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/view_facts.h"
#include "views/curves/curves_data.h"
#include "views/head_grid/head_grid_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;
using namespace kvscope::scene_checks;

namespace {

const std::vector<std::string> kPanes = {"keydiff@0.25", "snapkv@0.25", "uniform@0.25"};

} // namespace

class RunViewsTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;

private slots:
    void initTestCase() { m_text = std::make_unique<QtTextService>(); }

    void everyPictureAndTableOfACaptureThatFailedItsSelfCheckSaysSo() {
        const auto capture = makeRandomCapture(3, 80, 2, 4, 2, 8);
        for (const bool failed : {false, true}) {
            if (failed) capture->captureInfo.checks = {{"attention", "failed", 0.4, 1e-3, "relative", 16, ""}};
            const ViewInput input = makeInput(capture, {"keydiff@0.25"}, 1, 0);
            for (const View* view : allViews()) {
                ViewInput shown = input;
                if (view != &viewById("key_projection")) shown.data = {}; // it draws its data, the others wait
                const Scene scene = view->buildScene(shown, optionsOf(*view, {}), viewport(600, 400, *m_text));
                QCOMPARE(paintSceneAsText(scene).find("failed its self-check (att") != std::string::npos, failed);
            }
            const ViewTable plain = viewById("token_strip").table(input, optionsOf(viewById("token_strip"), {}));
            const ViewTable table = withCheckWarning(plain, input);
            QCOMPARE(table.columns.size(), plain.columns.size() + (failed ? 1 : 0));
            for (int column = 0; column < int(plain.columns.size()); ++column)
                QCOMPARE(table.cell(7, column), plain.cell(7, column));
            if (failed) QCOMPARE(table.cell(7, int(plain.columns.size())), capture->info().checkWarning());
        }
    }

    void curvePointsAreTheRunsOfTheirBudget() {
        const ParameterValues options = optionsOf(viewById("curves"), {{"seeds", "3"}});
        const ViewInput input = inputFor(viewById("curves"), kPanes, options);
        const auto data = dataAs<CurvesData>(input);
        QCOMPARE(data->curves.size(), std::size_t{3});
        const Curve& keydiff = data->curves[0];
        const auto quarter = std::find_if(keydiff.points.begin(), keydiff.points.end(),
                                          [](const CurvePoint& p) { return p.asked == 0.25; });
        QVERIFY(quarter != keydiff.points.end());
        const auto run = measured("keydiff@0.25", 3);
        double sum = 0;
        for (std::size_t q = 4; q < 8; ++q) // the query heads of KV head 1
            sum += run->fidelity->meanOutputError[q];
        QCOMPARE(quarter->mean, sum / 4);
        QCOMPARE(quarter->retention, 249.0 / 995); // ceil(0.25 * 995)
        QCOMPARE(quarter->bytes, static_cast<double>(storedBytes(*run)));
        QCOMPARE(quarter->seeds, 1);
    }

    // Every mark of a curve stands for the budget that was asked for, of the pane whose curve it is.
    void aMarkOfACurveGivesItsBudgetToItsPane() {
        const ParameterValues options = optionsOf(viewById("curves"), {{"seeds", "2"}, {"measure", "retained_mass"}});
        ViewInput input = inputFor(viewById("curves"), {"keydiff@0.25", "uniform@0.25", "exact"}, options);
        const auto data = dataAs<CurvesData>(input);
        const Scene scene = viewById("curves").buildScene(input, options, viewport(900, 700, *m_text));
        for (const std::size_t curve : {0, 1}) {
            const auto& points = data->curves[curve].points;
            const PointCloudItem* marks =
                cloudNamed(scene, data->curves[curve].letter + (" " + data->curves[curve].policyName));
            QVERIFY(marks && marks->points->size() == points.size());
            for (std::size_t i = 0; i < points.size(); ++i) {
                const PointFacts facts = viewById("curves").factsAt(input, options, scene, (*marks->points)[i]);
                QVERIFY(!facts.rows.empty());
                if (facts.rows[0].second.front() != data->curves[curve].letter)
                    continue; // another curve's mark lies on top
                QVERIFY(facts.settingChange && facts.settingChange->values.empty());
                QCOMPARE(facts.settingChange->pane, int(curve));
                QCOMPARE(facts.settingChange->budget->value, points[i].asked);
                QCOMPARE(facts.rows[2].first, std::string("retained attention mass"));
                QCOMPARE(facts.rows.size(),
                         curve == 1 ? std::size_t{5} : std::size_t{4}); // a drawn policy tells its spread
            }
        }
        const PointCloudItem* fixed =
            cloudNamed(scene, "C Exact"); // drawn last, takes no budget, so there is none to give
        QVERIFY(fixed && fixed->points->size() == 1);
        const PointFacts facts = viewById("curves").factsAt(input, options, scene, fixed->points->front());
        QVERIFY(!facts.rows.empty() && !facts.settingChange);
        QVERIFY(viewById("curves").factsAt(input, options, scene, {2, 2}).rows.empty());
        input.panes[0].policyId = "snapkv"; // the pane has changed since: the curve is not its own any more
        QVERIFY(!viewById("curves")
                     .factsAt(input, options, scene, cloudNamed(scene, "A KeyDiff")->points->at(3))
                     .settingChange);
    }

    // Each value of a parameter is a run of its own at the pane's own budget; who lacks it is the same at each value.
    void aParameterRunsAlongTheCurves() {
        const ParameterValues options =
            optionsOf(viewById("curves"), {{"vary", "window=8,32,64"}, {"scale", "linear"}});
        ViewInput input = inputFor(viewById("curves"), {"snapkv@0.1", "keydiff@0.25"}, options);
        const auto data = dataAs<CurvesData>(input);
        QCOMPARE(data->parameter, std::string("window"));
        const auto errorOf = [](const std::string& spec) {
            double sum = 0;
            for (std::size_t q = 4; q < 8; ++q) // the query heads of KV head 1
                sum += measured(spec, 3)->fidelity->meanOutputError[q];
            return sum / 4;
        };
        const auto& points = data->curves[0].points;
        QCOMPARE(points.size(), std::size_t{3});
        const std::vector<std::string> windows = {"8", "32", "64"};
        int better = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            QCOMPARE(points[i].setting, windows[i]);
            QCOMPARE(points[i].asked, std::stod(windows[i]));
            QCOMPARE(points[i].mean, errorOf("snapkv,window=" + windows[i] + "@0.1"));
            better += points[i].mean < errorOf("keydiff@0.25");
        }
        QCOMPARE(data->curves[1].points.size(), std::size_t{1});
        QCOMPARE(data->curves[1].points[0].mean, errorOf("keydiff@0.25"));
        const Scene scene = viewById("curves").buildScene(input, options, viewport(900, 700, *m_text));
        QCOMPARE(cloudNamed(scene, "A SnapKV")->points->size(), std::size_t{3});
        QVERIFY(!cloudNamed(scene, "B KeyDiff")); // a level line, not a mark that could be clicked
        const auto texts = textsOf(scene);
        QVERIFY(std::count(texts.begin(), texts.end(), data->title) == 1);
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("B KeyDiff (has no window)")) == 1);
        const std::string winner = better >= 2 ? "SnapKV" : "KeyDiff";
        QVERIFY2(viewById("curves")
                     .finding(input, options)
                     .starts_with(winner + " has the smallest relative output error at "),
                 viewById("curves").finding(input, options).c_str());
        QVERIFY(viewById("curves").finding(input, options).find("of 3 values of window") != std::string::npos);
        const PointFacts facts =
            viewById("curves").factsAt(input, options, scene, cloudNamed(scene, "A SnapKV")->points->at(2));
        QVERIFY(facts.settingChange && !facts.settingChange->budget);
        QCOMPARE(facts.settingChange->values, (std::vector<std::pair<std::string, std::string>>{{"window", "64"}}));
        QCOMPARE(facts.rows.back(), (std::pair<std::string, std::string>{"click", "gives pane A this window"}));
        const ViewTable table = viewById("curves").table(input, options);
        QCOMPARE(table.cell(1, 4) + "=" + table.cell(1, 5), std::string("window=32"));
        for (const double width : {320.0, 700.0, 1600.0}) {
            const Scene sized = viewById("curves").buildScene(input, options, viewport(width, 400, *m_text));
            QCOMPARE(overlappingTexts(sized, *m_text), QStringList());
            QCOMPARE(clippedTexts(sized, *m_text), QStringList());
        }
    }

    // A value that the policy refuses is a gap, not the end; other budgets are other data of the same kind.
    void refusedValuesAreGapsAndChoicesNoAxis() {
        const auto refusal = [](const char* vary) {
            return errorMessage([&] {
                inputFor(viewById("curves"), {"keydiff@0.25", "snapkv@0.25"},
                         optionsOf(viewById("curves"), {{"vary", vary}}));
            });
        };
        QVERIFY(refusal("anchor").find("phase map") != std::string::npos);
        QVERIFY(refusal("windw").find("windw") != std::string::npos);
        QVERIFY(refusal("window=").find("no values") != std::string::npos);
        const auto keyAt = [](const char* vary, double budget) {
            ViewDataRequest request;
            request.capture = needleCapture();
            request.panes.push_back({needleRequest("snapkv@0.25"), {}});
            request.panes[0].run.budget = {Budget::Unit::Fraction, budget};
            request.options = optionsOf(viewById("curves"), {{"vary", vary}});
            const ViewDataMaker& maker = *makerFor(viewById("curves"));
            return std::pair(maker.key(request), maker.identity(request));
        };
        QCOMPARE(keyAt("", 0.1), keyAt("", 0.2)); // curves over budgets serve every budget
        QVERIFY(keyAt("window", 0.1).first != keyAt("window", 0.2).first);
        QCOMPARE(keyAt("window", 0.1).second, keyAt("window", 0.2).second); // the old picture stays meanwhile
        CurvesData data;
        data.measure = "output_error";
        data.parameter = "window";
        data.where = "KV head 1";
        const auto curve = [](char letter, const char* policy, std::vector<std::pair<double, double>> places) {
            Curve made;
            made.letter = letter;
            made.policyId = policy;
            made.policyName = policy;
            for (const auto& [at, error] : places)
                made.points.push_back({at, std::to_string(int(at)), 0.1, 1, error, error, error, 1});
            return made;
        };
        data.curves = {curve('A', "snapkv", {{1, 0.5}, {2, 0.1}, {3, 0.5}}),
                       curve('B', "pyramidkv", {{1, 0.4}, {3, 0.4}})}; // 2 was refused
        ViewInput input = needleInput({"snapkv@0.25", "pyramidkv@0.25"});
        const auto finding = [&] {
            input.data.value = std::make_shared<const CurvesData>(data);
            return viewById("curves").finding(input, optionsOf(viewById("curves")));
        };
        const std::string has = " has the smallest relative output error at ";
        QCOMPARE(finding(), "pyramidkv" + has + "2 of 2 values of window in KV head 1");
        // A recorded list has one budget: it neither wins nor loses, and a curve alone wins nothing.
        data.parameter.clear();
        data.curves[1].points.resize(1);
        QCOMPARE(finding(), std::string("The relative output error in KV head 1: snapkv 0.1 to 0.5, pyramidkv 0.4"));
        data.curves.push_back(curve('C', "keydiff", {{1, 0.6}, {2, 0.6}, {3, 0.6}}));
        QCOMPARE(finding(), "snapkv" + has + "3 of 3 budgets in KV head 1; pyramidkv has one budget only");
    }

    void randomPoliciesHaveABandOverTheirSeeds() {
        const ParameterValues options = optionsOf(viewById("curves"), {{"seeds", "3"}, {"heads", "layer"}});
        const ViewInput input = inputFor(viewById("curves"), kPanes, options);
        const CurvePoint point = dataAs<CurvesData>(input)->curves[2].points[5];
        double mean = 0, low = INFINITY, high = -INFINITY;
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
            const double value = meanOfNumbers(measured("uniform@0.25", 3, seed)->fidelity->meanOutputError);
            mean += value / 3;
            low = std::min(low, value);
            high = std::max(high, value);
        }
        QCOMPARE(point.asked, 0.25);
        QVERIFY(std::abs(point.mean - mean) < 1e-12 && point.low == low && point.high == high && low < high);
        const Scene scene = viewById("curves").buildScene(input, options, viewport(640, 420, *m_text));
        const auto bands = std::count_if(scene.items.begin(), scene.items.end(), [](const Drawable& d) {
            const auto* polygon = std::get_if<PolygonItem>(&d);
            return polygon && polygon->points.size() == 22; // eleven budgets there and back
        });
        QCOMPARE(bands, 1);
        QVERIFY(cloudNamed(scene, "A KeyDiff") && cloudNamed(scene, "A KeyDiff")->points->size() == 11);
    }

    // PyramidKV gives early layers more: bars say how much. A policy that gives all layers the same gets none.
    void unequalBudgetsOfLayersStandBesideTheGrid() {
        for (const char* quantity : {"output_error", "kept_tokens", "overlap"}) {
            const ParameterValues options = optionsOf(viewById("head_grid"), {{"quantity", quantity}});
            const ViewInput input = inputFor(viewById("head_grid"), {"pyramidkv@0.1", "snapkv@0.1"}, options);
            const auto data = dataAs<HeadGridData>(input);
            const bool isOfActive = std::string(quantity) != "overlap";
            for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(620, 420), QSize(900, 700)}) {
                const Scene scene =
                    viewById("head_grid").buildScene(input, options, viewport(size.width(), size.height(), *m_text));
                const bool wide = isOfActive && size.width() >= 420;
                const auto texts = textsOf(scene);
                const auto bars = boxesBelowTitle(scene, themeOf(ThemeId::Light).kept);
                QCOMPARE(bars.size(), wide ? std::size_t{6} : std::size_t{0});
                for (std::size_t row = 0; wide && row < 6; ++row) {
                    double kept = 0;
                    const auto run = measured("pyramidkv@0.1", static_cast<int>(row));
                    for (const HeadSelection& head : run->selection.heads) kept += head.attendedTokens() / 2;
                    QCOMPARE(data->rows[row].kept, kept);
                    QVERIFY2(std::count(texts.begin(), texts.end(), formatCount(std::llround(kept))) >= 1,
                             paintSceneAsText(scene).c_str());
                    QVERIFY(row == 0 || bars[row]->box.width < bars[row - 1]->box.width);
                }
                QCOMPARE(overlappingTexts(scene, *m_text), QStringList());
                QCOMPARE(clippedTexts(scene, *m_text), QStringList());
            }
            const std::string finding = viewById("head_grid").finding(input, options);
            QCOMPARE(finding.find("a head keeps") != std::string::npos, std::string(quantity) == "kept_tokens");
            QVERIFY2(finding.find("largest") != std::string::npos || finding.find("smallest") != std::string::npos,
                     finding.c_str());
        }
        const ParameterValues kept = optionsOf(viewById("head_grid"), {{"quantity", "kept_tokens"}});
        QCOMPARE(viewById("head_grid").finding(inputFor(viewById("head_grid"), {"snapkv@100t"}, kept), kept),
                 std::string("Tokens kept by SnapKV: 100 in every head"));
        const ParameterValues options = optionsOf(viewById("head_grid"));
        const Scene same =
            viewById("head_grid")
                .buildScene(inputFor(viewById("head_grid"), kPanes, options), options, viewport(900, 700, *m_text));
        QVERIFY(boxesBelowTitle(same, themeOf(ThemeId::Light).kept).empty());
    }

    void gridCellsAreTheErrorsOfTheirHeads() {
        const ParameterValues options = optionsOf(viewById("head_grid"));
        const ViewInput input = inputFor(viewById("head_grid"), kPanes, options);
        const auto data = dataAs<HeadGridData>(input);
        QCOMPARE(data->rows.size(), std::size_t{6});
        for (const HeadGridData::Row& row : data->rows) {
            QVERIFY(row.computed);
            QCOMPARE(row.values, measured("keydiff@0.25", row.layer)->fidelity->meanOutputError);
        }
    }

    // The survival budget is the truth: with so many tokens the span is whole, with one token less it is not.
    void survivalBudgetIsTheSmallestThatKeepsTheSpan() {
        const ParameterValues options = optionsOf(viewById("head_grid"), {{"quantity", "survival_budget"}});
        const ViewInput input = inputFor(viewById("head_grid"), {"keydiff@0.25"}, options);
        const auto data = dataAs<HeadGridData>(input);
        QCOMPARE(data->columns, 2);
        for (const int layer : {0, 3}) {
            const double share = data->rows[static_cast<std::size_t>(layer)].values[1];
            const auto budget = std::llround(share * 995);
            const auto keepsAll = [&](long long tokens) {
                const auto run = measured("keydiff@" + std::to_string(tokens) + "t", layer);
                const auto& kept = run->selection.heads[1].kept;
                return std::all_of(input.focus.selected.begin(), input.focus.selected.end(), [&](TokenIndex t) {
                    return t >= 995 || std::binary_search(kept.begin(), kept.end(), t);
                });
            };
            QVERIFY2(keepsAll(budget) && !keepsAll(budget - 1),
                     qPrintable(QString("layer %1: %2 tokens").arg(layer).arg(budget)));
        }
    }

    void differenceAndOverlapNeedTwoPanes() {
        for (const char* quantity : {"error_difference", "overlap"}) {
            const ParameterValues options = optionsOf(viewById("head_grid"), {{"quantity", quantity}});
            QVERIFY(
                errorText([&] { inputFor(viewById("head_grid"), {"keydiff@0.25"}, options); }).contains("two panes"));
        }
    }

    void aClickOnACellLeadsToItsHead() {
        const ParameterValues options = optionsOf(viewById("head_grid"));
        const ViewInput input = inputFor(viewById("head_grid"), kPanes, options);
        const Scene scene = viewById("head_grid").buildScene(input, options, viewport(480, 300, *m_text));
        const RectangleItem* cell = nullptr;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item);
                box && box->pick == PickId{PickId::Kind::Cell, 2 * 8 + 6})
                cell = box;
        QVERIFY(cell);
        const PointFacts facts = viewById("head_grid")
                                     .factsAt(input, options, scene,
                                              {cell->box.x + cell->box.width / 2, cell->box.y + cell->box.height / 2});
        QCOMPARE(facts.layer, 2);
        QCOMPARE(facts.queryHead, 6);
        QCOMPARE(facts.rows[0].second, std::string("layer 2, query head 6"));
    }

    void profileSplitsAtTheCutOff() {
        const ParameterValues options = optionsOf(viewById("token_profile"));
        const ViewInput input = inputFor(viewById("token_profile"), {"keydiff@0.25"}, options);
        const Scene scene = viewById("token_profile").buildScene(input, options, viewport(900, 260, *m_text));
        const PointCloudItem *kept = cloudNamed(scene, "kept"), *evicted = cloudNamed(scene, "evicted");
        QVERIFY(kept && evicted && kept->points->size() == 249 && evicted->points->size() == 746);
        const auto lowest =
            std::max_element(kept->points->begin(), kept->points->end(), [](Point a, Point b) { return a.y < b.y; });
        for (const Point& p : *evicted->points) QVERIFY(p.y >= lowest->y); // screens count down
        QVERIFY(paintSceneAsText(scene).find("rank 248: score ≥") != std::string::npos);
        QVERIFY(viewById("token_profile")
                    .finding(inputFor(viewById("token_profile"), {"exact"}, options), options)
                    .find("no score") != std::string::npos);
    }

    // In blocks only what is still in the cache has a score at the end: the legend says why fewer rings are drawn.
    void theProfileCountsWhatItCannotDraw() {
        const View& view = viewById("token_profile");
        const ParameterValues options = optionsOf(view);
        const ViewInput input = inputFor(view, {"keydiff,prompt_block=128@0.2"}, options);
        const Scene scene = view.buildScene(input, options, viewport(900, 420, *m_text));
        const auto drawn = std::ssize(*cloudNamed(scene, "evicted")->points);
        const std::int64_t evicted = 995 - std::ssize(input.panes[0].result->selection.heads[1].kept);
        QVERIFY(drawn > 0 && drawn < evicted);
        const std::string words =
            "evicted " + formatCount(evicted) + ", " + formatCount(evicted - drawn) + " of them before the last scores";
        QVERIFY2(std::ranges::count(textsOf(scene), words) == 1, words.c_str());
        const ViewInput whole = inputFor(view, {"keydiff@0.2"}, options);
        QVERIFY(
            std::ranges::count(textsOf(view.buildScene(whole, options, viewport(900, 420, *m_text))), "evicted 796"));
    }

    void theProfileOfACrowdSaysHowManyItShows() {
        const ParameterValues options = optionsOf(viewById("token_profile"));
        const ViewInput input = makeInput(makeRandomCapture(7, 48'000, 1, 2, 1, 8), {"key_norm@500t"}, 0, 0);
        const Scene scene = viewById("token_profile").buildScene(input, options, viewport(900, 420, *m_text));
        const auto drawn = std::ssize(*cloudNamed(scene, "evicted")->points);
        const std::int64_t evicted = input.panes[0].result->visible - 500;
        QCOMPARE(std::ssize(*cloudNamed(scene, "kept")->points), std::ptrdiff_t{500}); // of those none is left out
        QVERIFY(drawn >= 10'000 && drawn <= 20'000);
        const std::string words =
            "evicted " + formatCount(evicted) + ", one in " + std::to_string((evicted + drawn - 1) / drawn) + " shown";
        const auto texts = textsOf(scene);
        QVERIFY2(std::find(texts.begin(), texts.end(), words) != texts.end(), words.c_str());
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QString>("view");
        QTest::addColumn<QSize>("size");
        for (const char* view : {"curves", "head_grid", "token_profile", "block_timeline"})
            for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(930, 260), QSize(1400, 900)})
                QTest::newRow(qPrintable(QString("%1 %2x%3").arg(view).arg(size.width()).arg(size.height())))
                    << QString(view) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QString, view);
        QFETCH(QSize, size);
        const View& v = viewById(view.toStdString());
        const ParameterValues options = v.card().id == "curves" ? optionsOf(v, {{"seeds", "1"}}) : optionsOf(v);
        const ViewInput input = inputFor(v, {"keydiff,prompt_block=128@0.25", "snapkv@0.25"}, options);
        QCOMPARE(misplacedTexts(v, input, options, size, *m_text), QStringList());
    }

    void tablesHoldWhatThePicturesShow() {
        for (const std::string id : {"curves", "head_grid", "token_profile", "block_timeline"}) {
            const View& view = viewById(id);
            const ParameterValues options = id == "curves" ? optionsOf(view, {{"seeds", "1"}}) : optionsOf(view);
            const ViewTable table = view.table(inputFor(view, {"keydiff,prompt_block=128@0.25"}, options), options);
            const int column = int(table.columns.size()) - (table.columns.back() == "notes" ? 2 : 1); // may be empty
            QVERIFY2(table.rowCount > 1 && !table.cell(table.rowCount - 1, column).empty(), id.c_str());
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(RunViewsTest)
#include "run_views_test.moc"
