// What a calibration says about its making, in results and files: whose losses it takes, at which cut, with which
// parameters and arithmetic it was measured.
#include <QtTest>

#include "core/base/atomic_file.h"
#include "core/capture/h5_writer.h"
#include "core/engine/engine.h"
#include "core/run/calibrated_budget.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

using namespace kvscope;

namespace {

std::shared_ptr<MemoryCapture> captureWithLosses(std::uint64_t seed, float loss) {
    auto capture = makeRandomCapture(seed, 120, 1, 4, 2, 8);
    capture->tokenTable.nll.assign(120, loss);
    return capture;
}

bool says(const std::vector<std::string>& notes, const std::string& words) {
    return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

} // namespace

class CalibrationMarksTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    LayerRunner m_runner{std::shared_ptr<const Engine>(makeCpuEngine(2))};

    std::string path(const std::string& name) const { return m_folder.path().toStdString() + "/" + name; }

    std::shared_ptr<const RunResult> run(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec,
                                         const std::string& cut = "80") const {
        RunRequest request = runRequest(capture, spec, cut);
        request.measure = false;
        return m_runner.run(request, {});
    }
    CalibrationData proxyOf(const LayerRunner& runner, const std::string& spec, const std::string& cut) const {
        return proxyTriples(runner, {{captureWithLosses(4, 2)}, PolicySpec::parse(spec), cut, 0, {}}, {});
    }

private slots:
    // The curve of an earlier capture of the same name, or of the same capture at another cut, has another loss.
    void theLossIsThatOfTheRun() {
        const auto capture = captureWithLosses(7, 2);
        const std::string name = capture->info().fileName;
        const CalibrationData data{
            {{name, 0.2, 1, 0.7}, {name, 0.5, 1, 0.9}, {"b", 0.2, 3, 0.3}, {"b", 0.5, 3, 0.6}}, false, "by hand", {}};
        const Calibration made = calibrate(PolicySpec::parse("snapkv"), data, 0.9, 2, 0);
        writeCalibration(path("two.json"), made);
        const std::string spec = "snapkv@tau=0.9:" + path("two.json");
        QVERIFY(made.fit.slopeKnown);
        QCOMPARE(run(capture, spec)->calibrated->k, made.fit.k(2));
        const auto without = makeRandomCapture(7, 120, 1, 4, 2, 8); // then the file knows best
        QCOMPARE(run(without, spec)->calibrated->k, made.fit.k(1));
    }

    void capturesOfOneNameAreTwoContexts() {
        const auto first = captureWithLosses(1, 2), second = captureWithLosses(2, 3), third = captureWithLosses(3, 3);
        first->captureInfo.fileName = second->captureInfo.fileName = "x.h5";
        first->captureInfo.path = "d1/x.h5";
        second->captureInfo.path = "d2/x.h5";
        const CalibrationData data =
            proxyTriples(m_runner, {{first, second, third}, PolicySpec::parse("snapkv"), "80", 0, {}}, {});
        std::set<std::string> names;
        for (const CalibrationTriple& triple : data.triples) names.insert(triple.context);
        QCOMPARE(names, (std::set<std::string>{"d1/x.h5", "d2/x.h5", third->info().fileName}));
    }

    void anotherCutIsNamed_data() {
        QTest::addColumn<QString>("file");
        for (const char* name : {"cut.json", "cut.csv"}) QTest::addRow("%s", name) << name;
    }

    void anotherCutIsNamed() {
        QFETCH(QString, file);
        writeCalibration(path(file.toStdString()),
                         calibrate(PolicySpec::parse("snapkv"), proxyOf(m_runner, "snapkv", "80"), 0.6, 1, 0));
        const std::string spec = "snapkv@tau=0.6:" + path(file.toStdString());
        const std::string words = "was measured with the cut 80, this cut is 60";
        QVERIFY(says(run(captureWithLosses(4, 2), spec, "60")->notes, words));
        QVERIFY(!says(run(captureWithLosses(4, 2), spec, "80")->notes, words));
        QVERIFY(!says(run(captureWithLosses(5, 2), spec, "60")->notes, words)); // another capture has its own cut
    }

    void howAProxyWasMeasuredIsSaid() {
        const CalibrationData plain = proxyOf(m_runner, "snapkv", "80"), seen = proxyOf(m_runner, "snapkv", "none"),
                              simulated = proxyOf(m_runner, "snapkv,prompt_block=25", "80");
        QVERIFY(plain.origin.ends_with("by the queries after the cut") && plain.notes.empty());
        QVERIFY2(seen.origin.ends_with("by queries that the policy saw (cut none)"), seen.origin.c_str());
        QCOMPARE(simulated.notes, std::vector<std::string>({"simulated on full-attention tensors"}));
        const LayerRunner fast(std::shared_ptr<const Engine>(makeCpuEngine(2, {}, Arithmetic::Fast)));
        QVERIFY(says(proxyOf(fast, "snapkv", "80").notes, "measured with fast float"));
        for (const char* name : {"seen.json", "seen.csv"}) {
            writeCalibration(path(name), calibrate(PolicySpec::parse("snapkv"), seen, 0.6, 1, 0));
            QVERIFY2(says(run(captureWithLosses(4, 2), "snapkv@tau=0.6:" + path(name))->notes, "the policy saw"), name);
        }
        const std::string text = readWholeFile(path("seen.json"));
        for (const char* words : {"\"cut_token\": 120", "\"seen_queries\": true", "\"simulated\": false",
                                  "\"arithmetic\": \"exact index contract\""})
            QVERIFY2(text.find(words) != std::string::npos, words);
    }

    // The curve is asked which budget to give: draws may keep fewer tokens than that, layers left whole more.
    void aProxyStandsAtTheAskedRetentions() {
        const CalibrationData data = proxyOf(m_runner, "leverage:sampling", "80");
        const std::vector<double>& grid = proxyBudgetGrid();
        QCOMPARE(data.triples.size(), grid.size());
        for (std::size_t i = 0; i < grid.size(); ++i)
            QCOMPARE(data.triples[i].retention, std::ceil(80 * grid[i] - 1e-9) / 80);
    }

    void theCurveFollowsTheScoresItIsMadeFrom() {
        const auto capture = captureWithLosses(4, 2);
        const auto start = std::filesystem::file_time_type::clock::now();
        int written = 0;
        const auto write = [&](float sign) {
            std::vector<float> scores(2 * 120);
            for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = sign * static_cast<float>(i % 120);
            h5::Writer file(path("s.h5"));
            file.put("x", std::span<const float>(scores), {1, 2, 120});
            file.close();
            std::filesystem::last_write_time(path("s.h5"), start + std::chrono::seconds(++written));
        };
        const auto kept = [&] {
            return run(capture, "imported,file=" + path("s.h5") + ":/x@tau=0.7:proxy")->calibrated->retention;
        };
        write(1);
        const double latest = kept();
        write(-1);
        QVERIFY(kept() != latest);
        write(1);
        QCOMPARE(kept(), latest);
    }

    void storedRowsSayHowTheyWereMeasured() {
        h5::Writer writer(path("rows.h5"));
        const std::string place = "/calibration/snapkv/paper";
        writer.put(place, std::vector<double>{0.5, 2, 1, 2, 0}, {1, 5});
        writer.attribute(place, "simulated", std::int64_t{1});
        writer.attribute(place, "arithmetic", std::string("fast float"));
        writer.close();
        const auto capture = captureWithLosses(4, 2);
        capture->captureInfo.path = path("rows.h5");
        const CalibrationData data = measuredTriples(*capture, PolicySpec::parse("snapkv"), 80);
        QVERIFY(says(data.notes, "simulated on full-attention tensors") &&
                says(data.notes, "measured with fast float"));
        QVERIFY(data.simulated);
        QCOMPARE(data.arithmetic, std::string("fast float"));
        writeCalibration(path("rows.json"), calibrate(PolicySpec::parse("snapkv"), data, 0.6, 1, 0));
        QVERIFY(readWholeFile(path("rows.json")).find("\"simulated\": true") != std::string::npos);
        writeCalibration(path("rows.csv"), calibrate(PolicySpec::parse("snapkv"), data, 0.6, 1, 0));
        const CalibrationData again = readTriplesCsv(path("rows.csv"), "snapkv", "paper");
        QVERIFY(again.simulated);
        QCOMPARE(again.arithmetic, data.arithmetic);
        QCOMPARE(again.notes.size(), std::size_t{1}); // the calibration's notes, and none twice
    }

    void importedScoresAreOfOneCapture() {
        const ProxyRequest request{{captureWithLosses(4, 2), captureWithLosses(5, 2)},
                                   PolicySpec::parse("imported,file=x.h5:/x"),
                                   "80",
                                   0,
                                   {}};
        QVERIFY(errorText([&] { proxyTriples(m_runner, request, {}); }).startsWith("imported scores belong to one"));
    }

    void aCutOfOneOfSeveralContextsIsNamed() {
        const auto capture = captureWithLosses(4, 2);
        CalibrationData data;
        data.cuts = {{capture->info().fileName + "#3", 80}, {"other.h5#3", 80}};
        noteOtherCut(data, *capture, 60);
        QCOMPARE(data.notes.size(), std::size_t{1});
        QVERIFY(says(data.notes, "#3 was measured with the cut 80, this cut is 60"));
    }

    // How its rows were measured is said; notes about single runs are not about the curve.
    void aTableOfRunsSaysHowTheyWereMade() {
        writeFileAtomically(path("runs.csv"), "retention,quality,notes,simulated,arithmetic\n"
                                              "0.2,0.5,layer 0 keeps 16,true,fast float\n"
                                              "0.5,0.9,layer 0 keeps 40,true,fast float\n");
        const CalibrationData data = readTriplesCsv(path("runs.csv"), "snapkv", "paper");
        QCOMPARE(data.notes,
                 std::vector<std::string>({"simulated on full-attention tensors", "measured with fast float"}));
        QVERIFY(data.simulated);
        QCOMPARE(data.arithmetic, std::string("fast float"));
    }

    // A table that kvscope wrote names the parameters of its rows, and what there is to say about them.
    void aTableStatesItsParameters() {
        CalibrationData data = proxyOf(m_runner, "snapkv,window=16", "80");
        data.notes.push_back("a note of theirs");
        writeCalibration(path("t.csv"), calibrate(PolicySpec::parse("snapkv,window=16"), data, 0.6, 1, 0));
        const auto notesOf = [&](const std::string& spec) {
            return run(captureWithLosses(4, 2), spec + "@tau=0.6:" + path("t.csv"))->notes;
        };
        QVERIFY(says(notesOf("snapkv,window=8"), "measured with window=16, this run has window=8"));
        QVERIFY(says(notesOf("snapkv,window=8"), "a note of theirs"));
        QVERIFY(!says(notesOf("snapkv,window=16"), "measured with window"));
        QVERIFY(!says(notesOf("snapkv,window=16"), "does not say with which parameters"));
    }
};

KVSCOPE_CORE_TEST(CalibrationMarksTest)
#include "calibration_marks_test.moc"
