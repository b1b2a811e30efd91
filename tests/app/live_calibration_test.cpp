// Calibration of a live context: its triples against losses that are asked for one by one, what is shown where the
// model cannot be asked, and what a click on r* adopts. The worker has no model: its losses are functions of the kept
// bits.
#include "app/study/live_calibration.h"
#include "app/study/live_rows.h"
#include "app/study/makers/view_data_maker.h"
#include "core/run/calibrated_budget.h"
#include "tests/app/answer_context.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"
#include "views/calibration/calibration_data.h"
#include "views/calibration/calibration_picture.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::testing;

namespace {

/// A live context, and what the calibration view shows of it.
struct Live {
    FakeWorker fake;
    LayerRunner runner = testing::cpuRunner(1);
    std::shared_ptr<const live::LiveCapture> capture;
    ParameterValues options{viewById("calibration").card().options};

    explicit Live(bool hasAnswer = true, const char* mode = "right") : fake(contextWith(hasAnswer).get()) {
        capture = opened(fake, mode);
    }
    PaneRequest pane(const char* spec, const char* cut = "61") const { return {runRequest(capture, spec, cut), {}}; }
    CalibrationViewData shown(std::vector<const char*> specs, const char* cut = "61") const {
        ViewDataRequest request;
        request.capture = capture;
        request.layer = LayerIndex(0);
        request.cut = Cut::resolve(cut, *capture);
        request.options = options;
        for (const char* spec : specs) request.panes.push_back(pane(spec, cut));
        const auto data = makerFor(viewById("calibration"))->make(runner, request, {}, [](const auto&) {});
        return dynamic_cast<const CalibrationViewData&>(*data);
    }
};

} // namespace

class LiveCalibrationTest : public QObject {
    Q_OBJECT

private slots:
    void triplesAreTheLossesOfEachRetention() {
        const Live live;
        const auto data = liveTriples(live.runner, live.capture, live.pane("snapkv@0.3"), {});
        const live::LiveAnswers answers(live.capture);
        QCOMPARE(data->triples.size(), proxyBudgetGrid().size());
        for (std::size_t i = 0; i < data->triples.size(); ++i) {
            LiveRow row{.pane = live.pane("snapkv@0.3")};
            row.pane->run.budget = {Budget::Unit::Fraction, proxyBudgetGrid()[i], {}};
            sendRow(row, live.runner, answers, {});
            askRows(std::span(&row, 1), answers, {.mostTokens = 0}, {});
            QCOMPARE(data->triples[i].quality, 0.5 / row.expected->nll); // the full cache's loss is 0.5
            QCOMPARE(data->triples[i].retention, row.kept / kCut);
            QCOMPARE(data->triples[i].contextNll, 0.5);
        }
        QVERIFY(!data->proxy && data->origin.find("asked of the model") != std::string::npos);
        QVERIFY(liveTriples(live.runner, live.capture, live.pane("snapkv@0.1"), {}) == data); // whatever its budget
        QVERIFY(liveTriples(live.runner, live.capture, live.pane("keydiff@0.1"), {}) != data);
    }

    void theViewShowsThemAndAClickTakesTheirRetention() {
        Live live;
        const CalibrationViewData data = live.shown({"keydiff@0.3", "snapkv@0.3"});
        QVERIFY(data.failures.empty() && data.series.size() == 2);
        for (const CalibrationSeries& series : data.series) {
            QVERIFY(series.own && !series.proxy && !series.foreign);
            QCOMPARE(kindOf(series), std::string("measured live"));
            const Budget adopted = budgetOf(series, data, live.options); // no budget could find this curve again
            QVERIFY(adopted.unit == Budget::Unit::Fraction);
            QCOMPARE(adopted.value, neededBy(series, live.options).retention);
        }
        ViewInput input;
        input.capture = live.capture;
        input.data.value = std::make_shared<CalibrationViewData>(data);
        const std::string finding = viewById("calibration").finding(input, live.options);
        QVERIFY2(finding.starts_with("To keep a quality of 0.95, measured live: "), finding.c_str());
        live.options.setText("source", "proxy");
        const CalibrationViewData proxies = live.shown({"keydiff@0.3"});
        QCOMPARE(kindOf(proxies.series.at(0)), std::string("proxy"));
        QVERIFY(budgetOf(proxies.series[0], proxies, live.options).unit == Budget::Unit::Quality);
    }

    void whereTheModelCannotBeAskedThereIsAProxy() {
        Live silent(false), live;
        QCOMPARE(kindOf(silent.shown({"keydiff@0.3"}).series.at(0)), std::string("proxy"));
        QCOMPARE(kindOf(live.shown({"keydiff@0.3"}, "50").series.at(0)), std::string("proxy"));
        silent.options.setText("source", "measured"), live.options.setText("source", "measured");
        const std::string why = silent.shown({"keydiff@0.3"}).failures.at(0).sentence;
        QVERIFY2(why.find("no answer is expected") != std::string::npos, why.c_str());
        const std::string cut = live.shown({"keydiff@0.3"}, "50").failures.at(0).sentence;
        QVERIFY2(cut.find("chosen at 50 (cut). Set the cut to 61") != std::string::npos, cut.c_str());
    }

    void aPolicyWithoutLossesFailsAlone() {
        const Live live(true, "overflows");
        const CalibrationViewData data = live.shown({"snapkv@0.3", "keydiff@0.3"});
        QVERIFY(data.series.size() == 1 && data.series[0].letter == 'B');
        QVERIFY2(data.failures.at(0).sentence.find("the loss is NaN or infinite") != std::string::npos,
                 data.failures[0].sentence.c_str());
    }
};

KVSCOPE_CORE_TEST(LiveCalibrationTest)
#include "live_calibration_test.moc"
