// Budget curves over several captures: each prompt's own runs, their mean and its interval, against sums made here.
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/metrics/fidelity.h"
#include "tests/support/error_message.h"
#include "tests/support/run_request.h"
#include "tests/support/scene_checks.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/policy_style.h"
#include "views/common/view_options.h"
#include "views/curves/curves_data.h"
#include "views/curves/curves_painter.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <QFile>
#include <QTemporaryDir>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;
using namespace kvscope::scene_checks;

namespace {

std::string sample(const std::string& name) { return kvscope::testing::sourceDir() + "/sample_data/" + name; }

const std::vector<std::string> kNames = {"needle-1k.h5", "fewshot-1k.h5", "records-2k.h5"};

std::string furtherFiles() { return sample(kNames[1]) + "; " + sample(kNames[2]); }

/// Mean output error of the query heads 4 to 7 (KV head 1) of layer 3 on one sample, on a runner of its own.
double errorOn(const std::string& name, const std::string& spec) {
    RunRequest request = runRequest(openCapture(sample(name)), spec);
    request.layer = LayerIndex(3);
    const auto result = runner().run(request, {});
    double sum = 0;
    for (std::size_t q = 4; q < 8; ++q) sum += result->fidelity->meanOutputError[q];
    return sum / 4;
}

const CurvePoint& pointAt(const std::vector<CurvePoint>& points, double asked) {
    const auto found =
        std::find_if(points.begin(), points.end(), [&](const CurvePoint& p) { return p.asked == asked; });
    if (found == points.end()) throw Error({"no such point", {}, {}, {}});
    return *found;
}

bool isNear(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); }

} // namespace

class CurvesCapturesTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_text;
    ParameterValues m_options;
    ViewInput m_input;

private slots:
    void initTestCase() {
        m_text = std::make_unique<QtTextService>();
        m_options = optionsOf(viewById("curves"), {{"captures", furtherFiles()}, {"seeds", "2"}});
        m_input = inputFor(viewById("curves"), {"keydiff@0.25", "uniform@0.25"}, m_options);
    }

    void theNamesOfATextAreItsFiles() {
        QCOMPARE(filesOf(""), std::vector<std::string>{});
        QCOMPARE(filesOf(" ; ;"), std::vector<std::string>{});
        QCOMPARE(filesOf("a b.h5; /x/c.h5 ;d"), (std::vector<std::string>{"a b.h5", "/x/c.h5", "d"}));
        const std::vector<std::string> odd = {"a;b.h5", ";;c", "d\\", "\\e\\\\;", " f ", "  g  h  "};
        QCOMPARE(filesText({"a;b.h5", "c"}), std::string("a\\;b.h5;c"));
        QCOMPARE(filesOf(filesText(odd)), odd);
    }

    // In bytes the points lie at means over captures: the open one's bytes are none of them.
    void thePresentBudgetHasNoPlaceAmongMeansOfBytes() {
        const auto data = dataAs<CurvesData>(m_input);
        const auto against = [](const char* axis) {
            return optionsOf(viewById("curves"), {{"captures", furtherFiles()}, {"seeds", "2"}, {"against", axis}});
        };
        QVERIFY(!presentPlace(*data, m_input, against("bytes")));
        QVERIFY(presentPlace(*data, m_input, against("retention")));
        CurvesData alone = *data;
        alone.captures = 1;
        QVERIFY(presentPlace(alone, m_input, against("bytes")));
    }

    void eachCaptureHasItsOwnCurveAndThePointsAreTheirMeans() {
        const auto data = dataAs<CurvesData>(m_input);
        QCOMPARE(data->captures, std::size_t{3});
        QCOMPARE(data->models, std::size_t{1});
        const Curve& keydiff = data->curves[0];
        QCOMPARE(keydiff.captures.size(), std::size_t{3});
        double sum = 0, squares = 0, retention = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            QCOMPARE(keydiff.captures[i].capture, kNames[i]);
            const CurvePoint& own = pointAt(keydiff.captures[i].points, 0.1);
            const double expected = errorOn(kNames[i], "keydiff@0.1");
            QCOMPARE(own.mean, expected);
            sum += expected;
            squares += expected * expected;
            retention += own.retention / 3;
        }
        const CurvePoint& mean = pointAt(keydiff.points, 0.1);
        // Student's t of two degrees of freedom.
        const double half = 4.302653 * std::sqrt((squares - sum * sum / 3) / 2) / std::sqrt(3.0);
        QVERIFY(isNear(mean.mean, sum / 3));
        QVERIFY2(std::abs(mean.high - mean.mean - half) < 1e-4 * half &&
                     std::abs(mean.mean - mean.low - half) < 1e-4 * half,
                 qPrintable(QString::number(half)));
        QVERIFY(half > 0.001); // three prompts are not one
        QVERIFY(isNear(mean.retention, retention));
    }

    void everyPromptIsAThinLineUnderTheMean() {
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            const Scene scene = viewById("curves").buildScene(m_input, m_options, viewport(900, 600, *m_text, theme));
            int thin = 0;
            for (const Drawable& item : scene.items)
                if (const auto* line = std::get_if<PolylineItem>(&item);
                    line && line->stroke.width < 1 && line->points.size() > 4)
                    ++thin;
            QCOMPARE(thin, 6); // two policies on three captures
            const auto texts = textsOf(scene);
            QVERIFY(std::count(texts.begin(), texts.end(), std::string("Relative output error, mean of 3 captures")) ==
                    1);
            QVERIFY(cloudNamed(scene, "A KeyDiff")->points->size() > 5);
        }
        const std::string finding = viewById("curves").finding(m_input, m_options);
        QVERIFY2(finding.ends_with("in KV head 1, mean of 3 captures"), finding.c_str());
    }

    void aMarkNamesWhatEachPromptGives() {
        const Scene scene = viewById("curves").buildScene(m_input, m_options, viewport(900, 600, *m_text));
        const auto data = dataAs<CurvesData>(m_input);
        const auto& points = data->curves[0].points;
        const PointFacts facts =
            viewById("curves").factsAt(m_input, m_options, scene, cloudNamed(scene, "A KeyDiff")->points->at(2));
        for (const CaptureCurve& one : data->curves[0].captures) {
            const std::pair<std::string, std::string> row{one.capture,
                                                          formatShort(pointAt(one.points, points[2].asked).mean)};
            QVERIFY2(std::count(facts.rows.begin(), facts.rows.end(), row) == 1, one.capture.c_str());
        }
        QCOMPARE(std::count_if(facts.rows.begin(), facts.rows.end(),
                               [](const auto& row) { return row.first.ends_with(".h5"); }),
                 3);
        const ViewTable table = viewById("curves").table(m_input, m_options);
        std::map<std::string, int> rows;
        for (std::int64_t row = 0; row < table.rowCount; ++row) ++rows[table.cell(row, 3)];
        const int each = static_cast<int>(points.size()) * 2;
        QCOMPARE(rows, (std::map<std::string, int>{
                           {"mean, 95 % interval", each}, {kNames[0], each}, {kNames[1], each}, {kNames[2], each}}));
    }

    // The cut is said in words, so it lies elsewhere in each capture.
    void aParameterRunsOnEveryCapture() {
        const ParameterValues options =
            optionsOf(viewById("curves"), {{"captures", sample(kNames[1])}, {"vary", "window=8,32"}});
        const ViewInput input = inputFor(viewById("curves"), {"snapkv@0.1", "keydiff@0.1"}, options);
        const auto data = dataAs<CurvesData>(input);
        QCOMPARE(data->curves[0].points.size(), std::size_t{2});
        const double expected =
            (errorOn(kNames[0], "snapkv,window=8@0.1") + errorOn(kNames[1], "snapkv,window=8@0.1")) / 2;
        QVERIFY(isNear(data->curves[0].points[0].mean, expected));
        QCOMPARE(data->curves[1].points.size(), std::size_t{1}); // a level
        QVERIFY(isNear(data->curves[1].points[0].mean,
                       (errorOn(kNames[0], "keydiff@0.1") + errorOn(kNames[1], "keydiff@0.1")) / 2));
        QVERIFY(cloudNamed(viewById("curves").buildScene(input, options, viewport(700, 500, *m_text)), "A SnapKV"));
    }

    // 970 tokens lie before the cut of one capture and not of the other: no mean over one of two.
    void whatOneCaptureRefusesHasNoMean() {
        const ParameterValues options =
            optionsOf(viewById("curves"), {{"captures", sample(kNames[1])}, {"vary", "window=8,32"}});
        const ViewInput input = inputFor(viewById("curves"), {"snapkv@970t", "keydiff@0.5"}, options);
        const Curve& curve = dataAs<CurvesData>(input)->curves[0];
        QCOMPARE(curve.captures[0].points.size(), std::size_t{2});
        QVERIFY(curve.captures[1].points.empty() && curve.points.empty());
        QVERIFY2(curve.error.starts_with("fewshot-1k.h5: "), curve.error.c_str());
        const auto texts = textsOf(viewById("curves").buildScene(input, options, viewport(900, 500, *m_text)));
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("A SnapKV (incomplete)")) == 1);
    }

    void whatCannotJoinIsRefusedByName() {
        const auto refusal = [](const std::string& files) {
            return errorText([&] {
                inputFor(viewById("curves"), {"keydiff@0.25"}, optionsOf(viewById("curves"), {{"captures", files}}));
            });
        };
        QVERIFY(refusal(sample("missing.h5")).contains("missing.h5"));
        QVERIFY(refusal(sample("README.md")).contains("README.md"));
        QVERIFY(refusal(sample(kNames[0])).contains("named twice"));
        QVERIFY(refusal(sample(kNames[1]) + ";" + sample("broken/../" + kNames[1])).contains("named twice"));
    }

    void panesOfOnePolicyAreToldApart() {
        const ParameterValues options = optionsOf(viewById("curves"));
        const ViewInput input = inputFor(viewById("curves"), {"snapkv@0.25", "snapkv,window=8@0.25"}, options);
        const std::string finding = viewById("curves").finding(input, options);
        QVERIFY2(finding.starts_with("A SnapKV has") || finding.starts_with("B SnapKV has"), finding.c_str());
        QVERIFY(viewById("curves").finding(m_input, m_options).find(" has ") > 3 &&
                !viewById("curves").finding(m_input, m_options).starts_with("A "));
        std::vector<std::vector<double>> dashes;
        const Scene scene = viewById("curves").buildScene(input, options, viewport(900, 600, *m_text));
        for (const Drawable& item : scene.items)
            if (const auto* line = std::get_if<PolylineItem>(&item); line && line->points.size() > 5)
                dashes.push_back(line->stroke.dash);
        QCOMPARE(dashes, (std::vector<std::vector<double>>{{}, {2, 2}}));
    }

    void aFileWrittenAgainIsAnotherKey() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("copy.h5").toStdString();
        QVERIFY(QFile::copy(QString::fromStdString(sample(kNames[1])), QString::fromStdString(path)));
        ViewDataRequest request;
        request.capture = m_input.capture;
        request.cut = m_input.cut;
        request.options = optionsOf(viewById("curves"), {{"captures", path}});
        const ViewDataMaker& maker = *makerFor(viewById("curves"));
        const std::string before = maker.key(request);
        QCOMPARE(maker.key(request), before);
        std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
        QVERIFY(maker.key(request) != before);
    }

    void labelsMoveApartAsLittleAsTheyMust() {
        QCOMPARE(spreadLabels({10, 100, 50}, 14, 0, 200, 36), (std::vector<double>{10, 100, 50}));
        QCOMPARE(spreadLabels({50, 50}, 14, 0, 200, 36), (std::vector<double>{43, 57}));
        QCOMPARE(spreadLabels({60, 50, 55}, 14, 0, 200, 36), (std::vector<double>{69, 41, 55})); // in their order
        QCOMPARE(spreadLabels({2, 3}, 14, 0, 200, 36), (std::vector<double>{0, 14}));
        QCOMPARE(spreadLabels({199, 200}, 14, 0, 200, 36), (std::vector<double>{186, 200}));
        QVERIFY(spreadLabels({1, 2, 3}, 14, 0, 20, 36).empty());
        QVERIFY(
            spreadLabels({100, 100, 100, 100, 100, 100, 100, 100}, 14, 0, 200, 36).empty()); // too far from their ends
    }

    // A printed figure names few curves at their ends, in their colours; more curves have a legend.
    void printedCurvesAreNamedAtTheirEnds() {
        const ParameterValues options = optionsOf(viewById("curves"), {{"seeds", "2"}});
        const ViewInput input =
            inputFor(viewById("curves"), {"snapkv@0.1", "keydiff@0.1", "streaming_llm@0.1", "uniform@0.1"}, options);
        for (const QSize size : {QSize(317, 240), QSize(620, 420)}) {
            Viewport frame = viewport(size.width(), size.height(), *m_text, ThemeId::Paper);
            frame.forExport = true;
            const Scene scene = viewById("curves").buildScene(input, options, frame);
            int labels = 0;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item);
                    text && text->position.x > size.width() / 2.0 && text->position.y > 20)
                    for (const PaneData& pane : input.panes)
                        if (text->text == std::string(1, pane.letter) + " " + pane.policyName) {
                            ++labels;
                            QCOMPARE(text->colour, policyStyle(pane.policyId, ThemeId::Paper).colour);
                        }
            QCOMPARE(labels, 4);
            QCOMPARE(overlappingTexts(scene, *m_text), QStringList());
            QCOMPARE(clippedTexts(scene, *m_text), QStringList());
        }
    }

    void nothingOverlapsOrIsClipped() {
        for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(930, 340), QSize(1400, 900)})
            QCOMPARE(misplacedTexts(viewById("curves"), m_input, m_options, size, *m_text), QStringList());
    }
};

KVSCOPE_OFFSCREEN_TEST(CurvesCapturesTest)
#include "curves_captures_test.moc"
