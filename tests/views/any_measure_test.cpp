// Grid, curves and phase map with any measure: the menus against the registry, the numbers against measures asked for
// one by one, and sides, units and findings against the cards.
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/metrics/measure_values.h"
#include "tests/support/error_message.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/common/measure_options.h"
#include "views/curves/curves_data.h"
#include "views/head_grid/head_grid_data.h"
#include "views/phase_map/phase_map_data.h"
#include "views/phase_map/phase_painter.h"
#include "views/view.h"

#include <cmath>
#include <map>
#include <memory>
#include <numeric>

using namespace kvscope;
using namespace kvscope::view_fixture;
using namespace kvscope::scene_checks;

namespace {

std::vector<double> perHead(const std::string& id, const std::string& spec, int layer) {
    const std::vector<std::string> ids = {id};
    return runner().measure(*measured(spec, layer), ids, {}).front().perHead;
}

double layerMean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

const ParameterSpec& optionRow(const View& view, const std::string& id) {
    for (const ParameterSpec& row : *view.card().options)
        if (row.id == id) return row;
    throw Error({"no such option", id, {}, {}});
}

} // namespace

class AnyMeasureTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;

private slots:
    void initTestCase() { m_text = std::make_unique<QtTextService>(); }

    void menusAreTheRegistry() {
        for (const auto& [view, option] :
             {std::pair(&viewById("head_grid"), "quantity"), std::pair(&viewById("curves"), "measure"),
              std::pair(&viewById("phase_map"), "measure")}) {
            std::map<std::string, std::string> labels;
            for (const ParameterChoice& choice : optionRow(*view, option).choices)
                QVERIFY2(labels.emplace(choice.id, choice.label).second, choice.id.c_str()); // none twice
            for (const MeasureCard& card : allMeasures()) {
                QCOMPARE(labels.count(card.id), std::size_t(card.shape == MeasureShape::PerLayerQuery ? 0 : 1));
                QVERIFY2(card.unit.empty() || labels[card.id].ends_with(", " + card.unit), card.id.c_str());
            }
            QCOMPARE(optionRow(*view, option).choices.front().id,
                     std::string("output_error")); // as sessions without the option mean
        }
        for (const char* id : {"output_error", "retained_mass", "error_difference", "overlap", "kept_tokens",
                               "selection_kept", "survival_budget", "mean_cosine", "entropy", "effective_budget",
                               "cos_means", "log_det", "leverage_concentration", "sink_mass"})
            QCOMPARE(optionsOf(viewById("head_grid"), {{"quantity", id}}).choice("quantity"), std::string(id));
        QCOMPARE(measureWords(measureById("retained_mass")), std::string("retained attention mass"));
        QCOMPARE(measureWords(measureById("eps_f")), std::string("ε of BalanceKV (Frobenius norm)"));
        QCOMPARE(measureWords(measureById("cos_means")), std::string("cos(k̄, q̄)"));
    }

    void gridCellsAreTheMeasureOfTheirHead_data() {
        QTest::addColumn<QString>("id");
        for (const MeasureCard& card : allMeasures())
            if (card.isPerHead() && card.need != MeasureNeed::OutputProjection && card.id != "cosine_sum_min" &&
                card.id != "eps_op") // slow, and no other path
                QTest::newRow(card.id.c_str()) << QString::fromStdString(card.id);
    }
    void gridCellsAreTheMeasureOfTheirHead() {
        QFETCH(QString, id);
        const MeasureCard& card = measureById(id.toStdString());
        const ParameterValues options = optionsOf(viewById("head_grid"), {{"quantity", card.id}});
        const ViewInput input = inputFor(viewById("head_grid"), {"snapkv@0.25"}, options);
        const auto data = dataAs<HeadGridData>(input);
        QCOMPARE(data->columns, card.shape == MeasureShape::PerKvHead ? 2 : 8);
        QCOMPARE(data->isSigned, card.isSigned);
        QCOMPARE(data->higherIsBetter, card.better == MeasureDirection::LargerIsBetter);
        for (const int layer : {0, 5})
            QCOMPARE(data->rows[std::size_t(layer)].values, perHead(card.id, "snapkv@0.25", layer));
        QCOMPARE(data->what.ends_with(" of SnapKV"), card.subject == MeasureSubject::KeptTokens);
        const std::string finding = viewById("head_grid").finding(input, options);
        const bool isAlike = finding.ends_with(" in every head");
        QCOMPARE(isAlike, card.id == "effective_budget" || card.id == "log_det_count");
        QVERIFY2(
            finding.starts_with(asSentence(data->what) + ": ") &&
                (card.unit.empty() || isAlike || finding.find(" " + card.unit + ", in layer ") != std::string::npos),
            finding.c_str());
        const ViewTable table = viewById("head_grid").table(input, options);
        QCOMPARE(table.columns[2], data->what + (card.unit.empty() ? "" : ", " + card.unit));
        for (const QSize size : {QSize(300, 220), QSize(930, 400)}) {
            const Scene scene =
                viewById("head_grid").buildScene(input, options, viewport(size.width(), size.height(), *m_text));
            QCOMPARE(misplacedTexts(scene, *m_text), QStringList());
        }
    }

    void whatDescribesTheLayerNeedsNoPane() {
        for (const char* id : {"entropy", "sink_mass", "leverage_concentration"}) {
            const ParameterValues options = optionsOf(viewById("head_grid"), {{"quantity", id}});
            const auto data = dataAs<HeadGridData>(inputFor(viewById("head_grid"), {}, options));
            QCOMPARE(data->rows[2].values, perHead(id, "keydiff@0.1", 2));
        }
        const auto refused = errorMessage([] {
            inputFor(viewById("head_grid"), {}, optionsOf(viewById("head_grid"), {{"quantity", "effective_budget"}}));
        });
        QVERIFY2(refused.find("no policy is shown") != std::string::npos, refused.c_str());
    }

    void curvesFollowTheMeasureOfTheirHeads() {
        for (const char* heads : {"kv_head", "layer"}) {
            const ParameterValues options =
                optionsOf(viewById("curves"), {{"measure", "log_det"}, {"heads", heads}, {"vary", "window=8,64"}});
            const ViewInput input = inputFor(viewById("curves"), {"snapkv@0.1", "keydiff@0.25"}, options);
            const auto data = dataAs<CurvesData>(input);
            for (const std::size_t i : {0, 1}) {
                const auto values = perHead("log_det", i == 0 ? "snapkv,window=8@0.1" : "snapkv,window=64@0.1", 3);
                QCOMPARE(data->curves[0].points[i].mean, std::string(heads) == "layer" ? layerMean(values) : values[1]);
            }
            const double level = data->curves[1].points[0].mean;
            const int snapkv = int(data->curves[0].points[0].mean > level) +
                               int(data->curves[0].points[1].mean > level); // larger wins
            const std::string finding = viewById("curves").finding(input, options);
            const std::string wanted = (snapkv >= 1 ? "SnapKV" : "KeyDiff") +
                                       std::string(" has the largest log det of kept keys at ") +
                                       std::to_string(snapkv >= 1 ? snapkv : 2) + " of 2";
            QVERIFY2(finding.starts_with(wanted), finding.c_str());
            const auto texts = textsOf(viewById("curves").buildScene(input, options, viewport(700, 500, *m_text)));
            QCOMPARE(std::count(texts.begin(), texts.end(), std::string("log det of kept keys, nat")), 1);
        }
    }

    void aCurveThatNoSelectionMovesSaysSo() {
        const ParameterValues options =
            optionsOf(viewById("curves"), {{"measure", "entropy"}, {"vary", "window=8,64"}});
        const ViewInput input = inputFor(viewById("curves"), {"snapkv@0.1"}, options);
        const std::vector<double> heads = perHead("entropy", "exact", 3);
        const double mean = layerMean({heads.begin() + 4, heads.begin() + 8}); // the query heads of KV head 1
        for (const CurvePoint& point : dataAs<CurvesData>(input)->curves[0].points)
            QVERIFY(std::abs(point.mean - mean) < 1e-12);
        const Scene scene = viewById("curves").buildScene(input, options, viewport(700, 500, *m_text));
        for (const Point& mark : *cloudNamed(scene, "A SnapKV")->points) // a level line has an axis around it
            QVERIFY2(mark.y > 60 && mark.y < 430, qPrintable(QString::number(mark.y)));
        const std::string finding = viewById("curves").finding(input, options);
        QVERIFY2(finding.starts_with("The attention entropy in KV head 1 is ") &&
                     finding.ends_with(" nat: it describes the layer, whatever is kept"),
                 finding.c_str());
    }

    // A cosine may be negative: its axis and its colours go below 0.
    void signedMeasuresHaveTheirAxisAndColours() {
        CurvesData data;
        data.measure = "score_correlation";
        data.where = "KV head 1";
        Curve curve;
        curve.policyId = "keydiff";
        curve.policyName = "KeyDiff";
        for (const auto& [asked, value] : {std::pair(0.1, -0.5), std::pair(0.5, 0.25)})
            curve.points.push_back({asked, {}, asked, 1, value, value, value, 1});
        data.curves = {curve};
        ViewInput input = needleInput({"keydiff@0.25"});
        input.data.value = std::make_shared<const CurvesData>(data);
        const Scene scene =
            viewById("curves").buildScene(input, optionsOf(viewById("curves")), viewport(700, 500, *m_text));
        const auto& marks = *cloudNamed(scene, "A KeyDiff")->points;
        QVERIFY2(marks[0].y < 455 && marks[0].y > marks[1].y + 100,
                 qPrintable(QString("%1 and %2").arg(marks[0].y).arg(marks[1].y))); // the axis ends near 460
        PhaseMapData map;
        map.cells = {{true, {-0.5}, {0.1}, ""}, {true, {0.25}, {0.1}, ""}};
        map.measure = "score_correlation";
        QVERIFY(phaseScale(map, optionsOf(viewById("phase_map"))).isSigned());
        map.measure = "output_error";
        QVERIFY(!phaseScale(map, optionsOf(viewById("phase_map"))).isSigned());
    }

    void thePhaseMapsWinnerHasTheBetterSide() {
        const ParameterValues options =
            optionsOf(viewById("phase_map"),
                      {{"x", "budget=0.05,0.4"}, {"y", "window=8,64"}, {"colour", "winner"}, {"measure", "log_det"}});
        const ViewInput input = inputFor(viewById("phase_map"), {"snapkv@0.25", "keydiff@0.25"}, options);
        const auto data = dataAs<PhaseMapData>(input);
        for (std::size_t x = 0; x < 2; ++x)
            for (std::size_t y = 0; y < 2; ++y) {
                const double snapkv =
                    perHead("log_det", "snapkv,window=" + data->y.texts[y] + "@" + data->x.texts[x], 3)[1];
                const double keydiff = perHead("log_det", "keydiff@" + data->x.texts[x], 3)[1];
                QCOMPARE(data->cells[y * data->x.texts.size() + x].values, (std::vector<double>{snapkv, keydiff}));
                QCOMPARE(data->winner(data->cells[y * data->x.texts.size() + x]), snapkv > keydiff ? 0 : 1);
            }
        const auto refused = errorMessage([] {
            inputFor(viewById("phase_map"), {"snapkv@0.25"},
                     optionsOf(viewById("phase_map"), {{"colour", "winner"}, {"measure", "sink_mass"}}));
        });
        QVERIFY2(refused.find("nobody wins by 'sink_mass'") != std::string::npos, refused.c_str());
    }

    void thePhaseMapsFindingTakesASideOnlyWhereThereIsOne() {
        const auto findingOf = [](const char* measure) {
            const ParameterValues options =
                optionsOf(viewById("phase_map"), {{"x", "budget=0.1,0.4"}, {"y", "window=8,64"}, {"measure", measure}});
            return viewById("phase_map").finding(inputFor(viewById("phase_map"), {"snapkv@0.25"}, options), options);
        };
        QVERIFY2(findingOf("effective_budget")
                     .starts_with(
                         "The effective budget of SnapKV is smallest at budget 10 %, observation window W 8, where "
                         "it is 100 tokens; largest at budget 40 %, observation window W 8, where it is 398 tokens"),
                 findingOf("effective_budget").c_str());
        QVERIFY2(findingOf("log_det").starts_with("The log det of kept keys of SnapKV is best at "),
                 findingOf("log_det").c_str());
        QVERIFY2(findingOf("entropy").ends_with(" nat at every setting"), findingOf("entropy").c_str());
    }
};

KVSCOPE_OFFSCREEN_TEST(AnyMeasureTest)
#include "any_measure_test.moc"
