// Random numbers written down and replayed: of every policy that draws, also from slots far beyond the others.
#include "core/capture/h5.h"
#include "core/engine/engine.h"
#include "core/run/random_files.h"
#include "core/run/run.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
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
        RunRequest request;
        request.capture = m_capture;
        request.layer = LayerIndex(1);
        request.policy = PolicySpec::parse(spec);
        request.budget = *request.policy.budget;
        request.cut = Cut::resolve("250", *m_capture);
        request.seed = seed;
        request.random = std::move(random);
        request.measure = false;
        return m_runner.run(request, {})->selection;
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
        const auto recording =
            std::make_shared<const RecordingRandom>(std::make_shared<const RandomSource>(), m_capture->info());
        const Selection drawn = run(text, 5, recording);
        recording->write(path("drawn.h5"));
        const auto replayed = replayRandom(path("drawn.h5") + ":/uniforms", {}, m_capture->info());
        QVERIFY(run(text, 99, replayed).sameLists(drawn));
        QVERIFY(!run(text, 99, {}).sameLists(drawn));
    }

    // A second recording on one runner draws anew: a result out of its cache would leave nothing to write down.
    void eachRecordingDraws() {
        for (const char* name : {"first.h5", "second.h5"}) {
            const auto recording =
                std::make_shared<const RecordingRandom>(std::make_shared<const RandomSource>(), m_capture->info());
            (void)run("uniform@0.5", 5, recording);
            QCOMPARE(errorText([&] { recording->write(path(name)); }), QString());
        }
    }

    // Two slots that lie far apart take two columns, and the file names them.
    void slotsAreStoredByName() {
        const auto recording =
            std::make_shared<const RecordingRandom>(std::make_shared<const RandomSource>(), m_capture->info());
        (void)run("balancekv,sink=4,recent=4@0.8", 5, recording);
        recording->write(path("partial.h5"));
        QCOMPARE(errorText([&] { replayRandom(path("partial.h5") + ":/uniforms", {}, m_capture->info()); }), QString());
        const h5::File file = h5::File::openForReading(path("partial.h5"));
        QCOMPARE(file.info("/uniforms").shape.back(), 2);
        QCOMPARE(file.integerListAttribute("/uniforms", "slots"), (std::vector<std::int32_t>{0, 65536}));
    }
};

KVSCOPE_TEST(RandomFilesTest)
#include "random_files_test.moc"
