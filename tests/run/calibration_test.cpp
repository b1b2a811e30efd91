// Triples from files and from attention outputs, the budget that is a quality, and what a run that took its retention
// from a curve says about it.
#include <QtTest>

#include "core/base/atomic_file.h"
#include "core/capture/calibration_rows.h"
#include "core/capture/h5_writer.h"
#include "core/capture/open_capture.h"
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/run/calibrated_budget.h"
#include "core/run/record_results.h"
#include "core/studies/sweep.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>

#include <cmath>

using namespace kvscope;

namespace {

const std::string kSample = kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5";

/// A small capture with losses, two contexts' worth of layers.
std::shared_ptr<MemoryCapture> captureWithLosses(std::uint64_t seed, float loss) {
    auto capture = makeRandomCapture(seed, 120, 2, 4, 2, 8);
    capture->tokenTable.nll.assign(120, loss);
    capture->tokenTable.nll[0] = NAN;
    capture->tokenTable.nll[119] = 99; // after the cut: none of its business
    return capture;
}

RunRequest requestOn(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec) {
    return runRequest(capture, spec, "80");
}

} // namespace

class CalibrationTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    LayerRunner m_runner{std::shared_ptr<const Engine>(makeCpuEngine(2))};

    std::string path(const std::string& name) const { return m_folder.path().toStdString() + "/" + name; }
    std::string file(const std::string& name, const std::string& text) const {
        writeFileAtomically(path(name), text);
        return path(name);
    }
    std::shared_ptr<const RunResult> run(const std::shared_ptr<const CaptureReader>& capture,
                                         const std::string& spec) const {
        return m_runner.run(requestOn(capture, spec), {});
    }

private slots:
    void rowsOfTheSample() {
        const auto all = readCalibration(kSample);
        QCOMPARE(all.size(), std::size_t{7});
        const auto& rows = all.front();
        QCOMPARE(rows.policy, std::string("compactor"));
        QCOMPARE(rows.variant, std::string("kvpress"));
        QCOMPARE(rows.rows.size(), std::size_t{13});
        QCOMPARE(rows.rows[1].retention, 0.05);
        QVERIFY(std::abs(rows.rows[1].compressedNll - 0.441052) < 1e-6);
        QCOMPARE(*rows.cut, 995);
        QVERIFY(readCalibration("random-1-100.memory").empty() && readCalibration(file("k.npz", "no HDF5")).empty());
    }

    void brokenRowsAreNamed() {
        const auto write = [&](const std::vector<double>& numbers, std::int64_t columns) {
            h5::Writer writer(path("rows.h5"));
            writer.put("/calibration/snapkv/paper", numbers, {std::ssize(numbers) / columns, columns});
            writer.close();
            return errorText([&] { readCalibration(path("rows.h5")); });
        };
        QCOMPARE(write({0.5, 2, 1, 2, 0}, 5), QString());
        QVERIFY(write({0.5, 2, 1, 2}, 4).contains("shape [1, 4]"));
        QVERIFY(write({0.5, 2, 1, 2, 0, 1.5, 2, 1, 2, 0}, 5).contains("row 1"));
        QVERIFY(write({0.5, NAN, 1, 2, 0}, 5).contains("row 0"));
        QVERIFY(write({0.5, 2, 1, 0, 0}, 5).contains("calibration/snapkv/paper"));
    }

    void measuredTriplesOfTheSample() {
        const auto capture = openCapture(kSample);
        const CalibrationData data = measuredTriples(*capture, PolicySpec::parse("snapkv:kvpress"), 995);
        QCOMPARE(data.triples.size(), std::size_t{13});
        QVERIFY(!data.proxy);
        QCOMPARE(data.notes.size(), std::size_t{1}); // the answer's loss is 0.0005 nats
        QVERIFY2(data.notes[0].find("a quality is a ratio to it") != std::string::npos, data.notes[0].c_str());
        QCOMPARE(data.triples.back().quality, 1.0);
        QVERIFY(std::abs(data.triples[0].contextNll - contextNllOf(*capture, 995)) < 1e-3);
        const CalibrationData other = measuredTriples(*capture, PolicySpec::parse("snapkv:kvpress"), 900);
        QVERIFY(QString::fromStdString(other.notes.at(0)).contains("cut 995, this cut is 900"));
        const QString missing = errorText([&] { measuredTriples(*capture, PolicySpec::parse("snapkv"), 995); });
        QVERIFY2(missing.contains("snapkv:kvpress") && missing.contains("proxy"), qPrintable(missing));
    }

    void tableOfTriples() {
        const std::string table =
            file("t.csv",
                 "\xEF\xBB\xBF# a note\nvariant,policy,context,retention,nll_context,nll_full,nll_compressed,more\r\n"
                 "paper,snapkv,\"a, b\",0.5,2.5,1,2,x\npaper,keydiff,c,0.5,2.5,1,2,x\n\npaper,snapkv,d,0.25,,1,4,x\n");
        const CalibrationData data = readTriplesCsv(table, "snapkv", "paper");
        QCOMPARE(data.triples.size(), std::size_t{2});
        QCOMPARE(data.triples[0].context, std::string("a, b"));
        QCOMPARE(data.triples[0].contextNll, 2.5);
        QCOMPARE(data.triples[1].quality, 0.25);
        QVERIFY(std::isnan(data.triples[1].contextNll));
        QVERIFY(!data.proxy);
        QVERIFY(errorText([&] { readTriplesCsv(table, "tova", "paper"); }).contains("no triples of tova:paper"));
    }

    void tablesThatAreWrongNameTheLine() {
        const auto read = [&](const std::string& text) {
            return errorText([&] { readTriplesCsv(file("w.csv", text), "snapkv", "paper"); });
        };
        QVERIFY(read("retention,nll_full\n0.5,1\n").contains("line 1"));
        QVERIFY(read("retention,quality,quality\n").contains("twice"));
        QVERIFY(read("retention,quality\n0.5,1\n0.5\n").contains("line 3"));
        QVERIFY(read("retention,quality\n0.5,yes\n").contains("'yes' in column quality"));
        QVERIFY(read("retention,quality\n1.5,1\n").contains("retention 1.5"));
        QVERIFY(read("retention,quality\n0.5,-1\n").contains("quality -1"));
        QVERIFY(read("retention,nll_full,nll_compressed\n0.5,0,1\n").contains("not positive"));
        QVERIFY(read("").contains("no triples"));
        QVERIFY(errorText([&] { readTriplesCsv(path("gone.csv"), "snapkv", "paper"); }).contains("gone.csv"));
    }

    void lossOfTheContextIsThatBeforeTheCut() {
        QCOMPARE(contextNllOf(*captureWithLosses(1, 2.5F), 80), 2.5);
        QVERIFY(std::isnan(contextNllOf(*makeRandomCapture(1, 120, 1, 2, 1, 8), 80)));
    }

    // Values of zero give outputs of zero, of which no error is relative to anything. A layer like that is left out of
    // the mean; where all layers are, there is no triple, and none of quality 0.
    void aPointWithoutAnErrorMakesNoTriple() {
        const auto triples = [](std::initializer_list<int> silentLayers) {
            const auto capture = captureWithLosses(4, 2);
            for (const int layer : silentLayers) {
                auto& values = capture->tensors.at({LayerIndex(layer), TensorRole::Values}).data;
                std::fill(values.begin(), values.end(), 0.0F);
            }
            const LayerRunner runner(std::shared_ptr<const Engine>(makeCpuEngine(2))); // remembers no other capture
            return proxyTriples(runner, {{capture}, PolicySpec::parse("snapkv"), "80", 0, {}}, {}).triples;
        };
        RunRequest plain = requestOn(captureWithLosses(4, 2), "snapkv@0.4");
        plain.layer = LayerIndex(1);
        double error = 0;
        for (const double e : m_runner.run(plain, {})->fidelity->meanOutputError) error += e / 4;
        QVERIFY(std::abs(triples({0}).at(6).quality - std::max(1e-6, 1 - error)) < 1e-12);
        QVERIFY(triples({0, 1}).empty());
    }

    // A capture that failed its self-check says so wherever its numbers go: in the notes of JSON and CSV.
    void calibrationsOfAFailedCaptureSaySo() {
        const auto capture = captureWithLosses(4, 2);
        const ProxyRequest request{{capture}, PolicySpec::parse("snapkv"), "80", 0, {}};
        QVERIFY(proxyTriples(m_runner, request, {}).notes.empty());
        capture->captureInfo.checks = {{"loss", "failed", 2, 1e-3, "nat per token", 99, ""}};
        const Calibration made = calibrate(request.policy, proxyTriples(m_runner, request, {}), 0.9, 5, 0);
        const QString note = QString::fromStdString(capture->info().fileName + ": " + capture->info().checkWarning());
        QVERIFY(note.contains("failed its self-check (loss)"));
        for (const char* name : {"failed.json", "failed.csv"}) {
            writeCalibration(path(name), made);
            QFile written(QString::fromStdString(path(name)));
            QVERIFY(written.open(QIODevice::ReadOnly) && QString::fromUtf8(written.readAll()).contains(note));
        }
    }

    // The proxy recomputed from plain runs: mean error over heads, then layers, at the realised retention.
    void proxyIsTheMeanOutputError() {
        const auto capture = captureWithLosses(4, 2);
        ProxyRequest request{{capture}, PolicySpec::parse("snapkv"), "80", 0, {}};
        const CalibrationData data = proxyTriples(m_runner, request, {});
        QVERIFY(data.proxy);
        QVERIFY(data.origin.starts_with("proxy"));
        QCOMPARE(data.triples.size(), proxyBudgetGrid().size());
        const std::size_t gridPoint = 6;
        double error = 0, kept = 0;
        for (const int layer : {0, 1}) {
            RunRequest plain = requestOn(capture, "snapkv@0.4");
            QCOMPARE(proxyBudgetGrid()[gridPoint], 0.4);
            plain.layer = LayerIndex(layer);
            const auto result = m_runner.run(plain, {});
            for (const double e : result->fidelity->meanOutputError) error += e / 8;
            kept += static_cast<double>(result->selection.heads[1].kept.size()) / 80 / 2;
        }
        QVERIFY(std::abs(data.triples[gridPoint].quality - std::max(1e-6, 1 - error)) < 1e-12);
        QVERIFY(std::abs(data.triples[gridPoint].retention - kept) < 1e-12);
        QCOMPARE(data.triples[gridPoint].contextNll, 2.0);
        QVERIFY(errorText([&] {
                    ProxyRequest exact{{capture}, PolicySpec::parse("exact"), "80", 0, {}};
                    proxyTriples(m_runner, exact, {});
                }).contains("takes no budget"));
        for (const char* spec : {"subgen", "balancekv,sink=4,recent=4,rounds=2"})
            QVERIFY(errorText([&] {
                        proxyTriples(m_runner, {{capture}, PolicySpec::parse(spec), "80", 0, {}}, {});
                    }).contains("keeps the same tokens at every budget"));
    }

    void budgetTextReadsBack() {
        for (const char* text : {"tau=0.95", "tau=0.9:proxy", "tau=0.5:k=-5", "tau=1:a folder/fit@1,2.json"})
            QCOMPARE(Budget::parse(text).text(), std::string(text));
        QCOMPARE(PolicySpec::parse("snapkv,window=16@tau=0.9:proxy").text(),
                 std::string("snapkv,window=16@tau=0.9:proxy"));
        QVERIFY(errorText([] { Budget::parse("tau=1.2"); }).contains("no quality"));
        QVERIFY(errorText([] { Budget::parse("tau=0"); }).contains("no quality"));
        QVERIFY(errorText([] { Budget::parse("tau=x"); }).contains("not a number"));
        QVERIFY(errorText([] { Budget::parse("tau=0.9:"); }).contains("no curve after the colon"));
        QVERIFY(
            errorText([] { resolveBudget(Budget::parse("tau=0.9"), 10, Rounding::Ceil); }).contains("is a quality"));
    }

    void givenCurvature() {
        const auto capture = captureWithLosses(5, 2);
        const auto result = run(capture, "keydiff@tau=0.95:k=-10");
        QVERIFY(std::abs(result->calibrated->retention - 0.2995) < 5e-5);
        QCOMPARE(result->requested, 24); // ceil(0.2995 * 80)
        QCOMPARE(result->selection.heads[0].kept.size(), std::size_t{24});
        QVERIFY(result->request.budget.unit == Budget::Unit::Fraction);
        QVERIFY(!result->calibrated->proxy);
        QVERIFY(result->notes.front() == result->calibrated->text());
        QVERIFY(result->fidelity);
        QCOMPARE(askedBudget(*result).text(), std::string("tau=0.95:k=-10"));
        const auto plain = run(capture, "keydiff@24t");
        QVERIFY(plain->selection.sameLists(result->selection));
        QVERIFY(!plain->calibrated);
        QVERIFY(errorText([&] { run(capture, "keydiff@tau=0.95:k=much"); }).contains("no number after k="));
        QVERIFY(errorText([&] { run(capture, "keydiff@tau=0.95:poxy"); }).contains("names no curve"));
    }

    void policyWithoutBudgetIgnoresTheQuality() {
        const auto result = run(captureWithLosses(5, 2), "exact@tau=0.9:k=-5");
        QCOMPARE(result->requested, 80);
        QVERIFY(!result->calibrated);
    }

    // The word proxy stands in the result, the list in each format, and the table.
    void proxyIsNamedEverywhere() {
        const auto capture = captureWithLosses(6, 2);
        bool partialMarked = false;
        const auto result = m_runner.run(requestOn(capture, "tova@tau=0.6:proxy"), {},
                                         [&](const auto& partial) { partialMarked = partial->calibrated != nullptr; });
        QVERIFY(partialMarked);
        QVERIFY(result->calibrated->proxy);
        const double own = [&] {
            ProxyRequest request{{capture}, PolicySpec::parse("tova"), "80", 0, {}};
            return retentionNeeded(fitCalibration(proxyTriples(m_runner, request, {}).triples, kCalibrationWeight).beta,
                                   0.6);
        }();
        QCOMPARE(result->calibrated->retention, own);
        const std::vector<std::shared_ptr<const RunResult>> results = {result};
        const RecordedSelection list = recordSelection(results, {{}, true, "command"});
        QCOMPARE(list.budgetRequested, std::string("tau=0.6:proxy"));
        for (const char* name : {"l.json", "l.csv", "l.h5"}) {
            writeSelection(path(name), list, capture->tokenTable);
            const RecordedSelection read = readSelection(path(name));
            QVERIFY2(read.budgetOrigin.find("by proxy") != std::string::npos, name);
            QCOMPARE(read.budgetOrigin, list.budgetOrigin);
        }
        SweepRequest sweep;
        sweep.captures = {capture};
        sweep.policies = {PolicySpec::parse("tova@tau=0.6:proxy")};
        sweep.cut = "80";
        sweep.layers = {0};
        int rows = 0;
        runSweep(m_runner, sweep, {}, [&](const SweepRow& row) {
            ++rows;
            const std::vector<std::string> fields = sweepFields(sweep, row);
            QCOMPARE(fields[5], std::string("tova@tau=0.6:proxy"));
            QVERIFY(fields.back().find("by proxy: k = ") != std::string::npos);
        });
        QCOMPARE(rows, 1);
    }

    void measuredBudgetOfTheSample() {
        const auto capture = openCapture(kSample);
        RunRequest request = requestOn(capture, "compactor:kvpress@tau=0.9");
        request.cut = Cut::resolve("default", *capture);
        request.measure = false;
        const auto result = m_runner.run(request, {});
        const auto data = measuredTriples(*capture, request.policy, 995);
        const CalibrationFit fit = fitCalibration(data.triples, kCalibrationWeight);
        QCOMPARE(result->calibrated->retention, retentionNeeded(fit.beta, 0.9));
        QVERIFY(QString::fromStdString(result->calibrated->origin)
                    .contains("calibration/compactor/kvpress of needle-1k.h5"));
        request.policy = PolicySpec::parse("compactor");
        QVERIFY(errorText([&] { m_runner.run(request, {}); }).contains("compactor:kvpress"));
    }

    // A curve of other parameters is another curve, and a note says so.
    void otherParametersAreNamed() {
        const std::shared_ptr<const CaptureReader> sample = openCapture(kSample);
        const auto noteOf = [&](const std::string& spec, const std::string& budget) {
            RunRequest request = requestOn(sample, spec + "@" + budget);
            request.cut = Cut::resolve("995", *sample);
            request.measure = false;
            return m_runner.run(request, {})->notes.front();
        };
        // The sample's rows name no parameters.
        QVERIFY(noteOf("snapkv:kvpress,window=16", "tau=0.9").find("does not say with which parameters") !=
                std::string::npos);
        QVERIFY(noteOf("snapkv:kvpress", "tau=0.9").find("does not say") == std::string::npos);
        h5::Writer writer(path("stated.h5"));
        writer.put("/calibration/snapkv/paper", std::vector<double>{0.5, 2, 1, 2, 0}, {1, 5});
        writer.attribute("/calibration/snapkv/paper", "parameters",
                         std::string(R"({"window": "16", "pool": "average"})"));
        writer.close();
        const auto stated = captureWithLosses(4, 2);
        stated->captureInfo.path = path("stated.h5");
        const auto notesFor = [&](const char* spec) {
            return measuredTriples(*stated, PolicySpec::parse(spec), 80).notes;
        };
        QCOMPARE(notesFor("snapkv:paper,window=16"), std::vector<std::string>());
        QVERIFY(notesFor("snapkv:paper,window=8,pool=max")
                    .at(0)
                    .find("measured with window=16, pool=average, this run has window=8, pool=max") !=
                std::string::npos);
        const PolicySpec measured = PolicySpec::parse("snapkv:kvpress,window=32");
        writeCalibration(path("other.json"),
                         calibrate(measured,
                                   proxyTriples(m_runner, {{captureWithLosses(3, 2)}, measured, "80", 0, {}}, {}), 0.9,
                                   1, 0));
        QVERIFY(noteOf("snapkv:kvpress", "tau=0.9:" + path("other.json"))
                    .find("measured with window=32, this run has window=64") != std::string::npos);
        const std::string table = file("t.csv", "retention,quality\n0.2,0.7\n0.5,0.9\n");
        QVERIFY(noteOf("snapkv:kvpress,window=16", "tau=0.9:" + table).find("does not say with which parameters") !=
                std::string::npos);
        QVERIFY(noteOf("snapkv:kvpress", "tau=0.9:" + table).find("does not say") == std::string::npos);
    }

    // Section 5 keeps ceil(r* N), whatever the variant's code does with a fraction.
    void theRetentionIsRoundedUp() {
        const auto capture = captureWithLosses(1, 2);
        for (const char* policy : {"keydiff", "keydiff:kvpress", "snapkv:compactor_vllm,window=8"}) {
            const auto result = run(capture, std::string(policy) + "@tau=0.9:k=-6");
            const double needed = result->calibrated->retention * 80;
            QCOMPARE(result->requested, static_cast<std::int64_t>(std::ceil(needed - 1e-9)));
            QVERIFY(needed - std::floor(needed) > 0.01 && needed - std::floor(needed) < 0.5); // all three would differ
        }
    }

    void filesAreReadBackAndUsed() {
        const std::string table = file("two.csv", "context,retention,quality,nll_context\na,0.5,0.9,1\na,0.2,0.7,1\n"
                                                  "b,0.5,0.6,3\nb,0.2,0.3,3\n");
        Calibration made = calibrate(PolicySpec::parse("snapkv"), readTriplesCsv(table, "snapkv", "paper"), 0.9, 2, 50);
        made.command = "kvscope calibrate";
        writeCalibration(path("two.json"), made);
        const Calibration read = readCalibrationFile(path("two.json"));
        QCOMPARE(read.fit.alpha, made.fit.alpha);
        QCOMPARE(read.fit.weight, 2.0);
        QCOMPARE(read.contexts.size(), std::size_t{2});
        QCOMPARE(read.contexts[1].band.high, made.contexts[1].band.high);
        QCOMPARE(read.data.triples.size(), std::size_t{4});
        QVERIFY(read.fit.slopeKnown && !read.data.proxy);
        std::string text = readWholeFile(path("two.json"));
        text.replace(text.find("\"name\": \"a\""), 11, "\"name\": \"c\"");
        QVERIFY(errorText([&] { readCalibrationFile(file("c.json", text)); }).contains("lack 'a' of a triple"));
        const auto capture = captureWithLosses(7, 2); // between the two contexts
        const auto result = run(capture, "snapkv@tau=0.9:" + path("two.json"));
        QCOMPARE(result->calibrated->k, made.fit.k(2));
        QVERIFY(result->calibrated->origin.find("alpha") != std::string::npos);
        QVERIFY(errorText([&] {
                    run(capture, "tova@tau=0.9:" + path("two.json"));
                }).contains("the calibration is of snapkv"));
        const auto without = makeRandomCapture(7, 120, 1, 2, 1, 8);
        QVERIFY(errorText([&] { run(without, "snapkv@tau=0.9:" + path("two.json")); }).contains("NLL(c)"));
        // the table is one of triples
        writeCalibration(path("again.csv"), made);
        const CalibrationData again = readTriplesCsv(path("again.csv"), "snapkv", "paper");
        QCOMPARE(fitCalibration(again.triples, 2).beta, made.fit.beta);
        const auto byTable = run(capture, "snapkv@tau=0.9:" + path("again.csv"));
        QVERIFY(byTable->calibrated->k != result->calibrated->k); // the default weight, not 2
    }

    void aProxyStaysOneInATable() {
        CalibrationData data{{{"a", 0.5, 2, 0.8}}, true, "proxy: by hand", {}};
        writeCalibration(path("p.csv"), calibrate(PolicySpec::parse("snapkv"), data, 0.9, 5, 0));
        const CalibrationData read = readTriplesCsv(path("p.csv"), "snapkv", "paper");
        QVERIFY(read.proxy);
        QVERIFY(read.origin.starts_with("proxy"));
    }

    void brokenCalibrationsAreRefused() {
        const auto read = [&](const std::string& text) {
            return errorText([&] { readCalibrationFile(file("c.json", text)); });
        };
        QVERIFY(read("{").contains("not a kvscope-calibration"));
        QVERIFY(read("{\"format\":\"kvscope-selection\"}").contains("not a kvscope-calibration"));
        QVERIFY(read("{\"format\":\"kvscope-calibration\",\"version\":9}").contains("version 9"));
        QVERIFY(read("{\"format\":\"kvscope-calibration\",\"version\":1}").contains("contradicts"));
    }

    void numbersBeyondAllAreWrittenAndReadBack() {
        QVERIFY(errorText([] { calibrationOfK(PolicySpec::parse("snapkv"), INFINITY, 0.9); }).startsWith("k = inf is"));
        const CalibrationData data{{{"a", 0.3, 2, 1e308}, {"a", 0.6, 2, 1e-308}}, false, "by hand", {}};
        writeCalibration(path("far.json"), calibrate(PolicySpec::parse("snapkv"), data, 0.9, 5, 0));
        QVERIFY(std::isnan(readCalibrationFile(path("far.json")).fit.loss));
    }

    void aChangedFileIsReadAgain() {
        const auto capture = captureWithLosses(8, 2);
        const std::string spec = "snapkv@tau=0.9:" + path("changing.csv");
        file("changing.csv", "retention,quality\n0.5,0.9\n");
        const double first = run(capture, spec)->calibrated->retention;
        file("changing.csv", "retention,quality\n0.5,0.60\n");
        QVERIFY(run(capture, spec)->calibrated->retention > first);
    }
};

KVSCOPE_CORE_TEST(CalibrationTest)
#include "calibration_test.moc"
