// Random numbers written down and replayed: of every policy that draws, also from slots far beyond the others.
#include "core/capture/h5.h"
#include "core/engine/engine.h"
#include "core/lists/selection_file.h"
#include "core/run/random_files.h"
#include "core/run/record_results.h"
#include "core/run/run.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace kvscope;

class RandomFilesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::shared_ptr<const CaptureReader> m_capture = makeRandomCapture(7, 300, 2, 4, 2, 8);

    LayerRunner m_runner{makeCpuEngine(1)};

    std::string path(const std::string& name) const {
        return m_folder.filePath(QString::fromStdString(name)).toStdString();
    }

    Selection run(const std::string& spec, std::uint64_t seed, std::shared_ptr<const RandomSource> random) {
        return runOn(m_capture, spec, seed, std::move(random));
    }

    Selection runOn(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec, std::uint64_t seed,
                    std::shared_ptr<const RandomSource> random) {
        RunRequest request = runRequest(capture, spec, "250");
        request.layer = LayerIndex(1);
        request.seed = seed;
        request.random = std::move(random);
        request.measure = false;
        return m_runner.run(request, {})->selection;
    }

    static std::shared_ptr<RecordingRandom> recordingOf(const CaptureReader& capture) {
        return std::make_shared<RecordingRandom>(std::make_shared<const RandomSource>(), capture.info());
    }

    /// Two layers of a model of four, without its layer 0.
    static std::shared_ptr<const CaptureReader> captureOfLayersOneAndThree() {
        const auto capture = makeRandomCapture(8, 300, 4, 4, 2, 16);
        std::erase_if(capture->captureInfo.layers, [](const LayerInfo& info) { return info.layer.value % 2 == 0; });
        capture->captureInfo.hash += ":odd";
        return capture;
    }

private slots:
    void whatWasDrawnReplays_data() {
        QTest::addColumn<QString>("spec");
        for (const char* spec :
             {"uniform@0.3", "uniform:sign_sort@0.3", "balancekv,sink=4,recent=4,block=32@0.3",
              "balancekv,sink=4,recent=4@0.8", "leverage:sampling@0.3", "subgen@0.3", "balancekv_stream,batch=16@0.3"})
            QTest::newRow(spec) << spec;
    }

    void whatWasDrawnReplays() {
        QFETCH(QString, spec);
        const std::string text = spec.toStdString();
        const auto recording = recordingOf(*m_capture);
        const Selection drawn = run(text, 5, recording);
        recording->write(path("drawn.h5"));
        const auto replayed = replayRandom(path("drawn.h5") + ":/uniforms", {}, m_capture->info());
        QVERIFY(run(text, 99, replayed).sameLists(drawn));
        QVERIFY(!run(text, 99, {}).sameLists(drawn));
    }

    /// Its seed made none of its numbers: the list says so, in every form.
    void aListRemembersWhatWasReplayed() {
        const auto recording = recordingOf(*m_capture);
        (void)run("uniform@0.3", 5, recording);
        recording->write(path("used.h5"));
        RunRequest request = runRequest(m_capture, "uniform", "250", "0.3");
        request.layer = LayerIndex(1);
        request.measure = false;
        const auto listOf = [&] {
            const std::vector results = {m_runner.run(request, {})};
            return recordSelection(results, {});
        };
        QVERIFY(listOf().random.empty());
        request.random = replayRandom(path("used.h5") + ":/uniforms", {}, m_capture->info());
        for (const char* name : {"l.json", "l.csv", "l.h5"}) {
            writeSelection(path(name), listOf(), m_capture->tokens());
            QVERIFY2(readSelection(path(name)).random.find("used.h5:/uniforms and not made from the seed") < 200, name);
        }
    }

    // A second recording on one runner draws anew: a result out of its cache would leave nothing to write down.
    void eachRecordingDraws() {
        for (const char* name : {"first.h5", "second.h5"}) {
            const auto recording = recordingOf(*m_capture);
            (void)run("uniform@0.5", 5, recording);
            QCOMPARE(errorText([&] { recording->write(path(name)); }), QString());
        }
    }

    // Two slots that lie far apart take two columns, and the file names them.
    void slotsAreStoredByName() {
        const auto recording = recordingOf(*m_capture);
        (void)run("balancekv,sink=4,recent=4@0.8", 5, recording);
        recording->write(path("partial.h5"));
        QCOMPARE(errorText([&] { replayRandom(path("partial.h5") + ":/uniforms", {}, m_capture->info()); }), QString());
        const h5::File file = h5::File::openForReading(path("partial.h5"));
        QCOMPARE(file.info("/uniforms").shape.back(), 2);
        QCOMPARE(file.integerListAttribute("/uniforms", "slots"), (std::vector<std::int32_t>{0, 65536}));
    }

    // The sketch that all layers share is that of layer 0. A capture without layer 0 has it in its first place, and a
    // sketch for each layer and head replays from there.
    void sharedSketchOfACaptureWithoutLayerZero() {
        const auto capture = captureOfLayersOneAndThree();
        const std::string gaussian = "compactor:compactor_vllm,sketch_size=8@0.6";
        const auto recording = recordingOf(*capture);
        const Selection drawn = runOn(capture, gaussian, 5, recording);
        recording->write(path("shared.h5"));
        QCOMPARE(h5::File::openForReading(path("shared.h5")).info("/sketch").shape,
                 (std::vector<std::int64_t>{2, 2, 16, 8}));
        const auto replayed = replayRandom({}, path("shared.h5") + ":/sketch", capture->info());
        QCOMPARE(replayed->sketch({.seed = 99}, 16, 8), RandomSource().sketch({.seed = 5}, 16, 8));
        for (const RandomKey& other :
             {RandomKey{.kvHead = 1}, RandomKey{.layer = 3}, RandomKey{.layer = 3, .kvHead = 1}})
            QVERIFY(errorText([&] { (void)replayed->sketch(other, 16, 8); }).contains("is not finite"));
        QVERIFY(runOn(capture, gaussian, 99, replayed).sameLists(drawn));
        QVERIFY(!runOn(capture, gaussian, 99, {}).sameLists(drawn));

        const std::string signs = "compactor:compactor_vllm,sketch_size=8,sketch=srht@0.6";
        const auto uniforms = recordingOf(*capture);
        const Selection bySigns = runOn(capture, signs, 5, uniforms);
        uniforms->write(path("signs.h5"));
        const auto replayedSigns = replayRandom(path("signs.h5") + ":/uniforms", {}, capture->info());
        QVERIFY(runOn(capture, signs, 99, replayedSigns).sameLists(bySigns));
        QVERIFY(!runOn(capture, signs, 99, {}).sameLists(bySigns));
    }

    // A file has one table of sketches. What does not fit into it is refused, not lost.
    void sketchesThatOneTableCannotHoldAreRefused() {
        const auto refusal = [&](const std::shared_ptr<const CaptureReader>& capture, const std::string& spec) {
            return errorText([&] { (void)runOn(capture, spec, 5, recordingOf(*capture)); });
        };
        const std::string sizes =
            refusal(m_capture, "score:leverage[sketch_size=4] + leverage[sketch_size=8]@0.3").toStdString();
        QVERIFY2(sizes.find("sketches of several sizes") != std::string::npos, sizes.c_str());
        QCOMPARE(refusal(m_capture, "score:leverage[sketch_size=4] + leverage[sketch_size=4,centred=true]@0.3"),
                 QString());
        // Without layer 0 its shared sketch has the place of the first layer's own.
        const std::string both = "score:leverage[sketch_size=4] + leverage[sketch_size=4,sketch_scope=all]@0.3";
        QCOMPARE(refusal(m_capture, both), QString());
        const QString place = refusal(captureOfLayersOneAndThree(), both);
        QVERIFY2(place.contains("two different sketches"), qPrintable(place));
    }
};

KVSCOPE_TEST(RandomFilesTest)
#include "random_files_test.moc"
