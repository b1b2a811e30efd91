// Opens the sample captures that live in the repository and holds what the reader says against what the files state.
#include "core/capture/capture.h"
#include "core/capture/open_capture.h"
#include "tests/support/larger_error.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace kvscope;

class SamplesTest : public QObject {
    Q_OBJECT

private slots:
    void samplesOpenWithTheirShapes_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("tokens");
        QTest::addColumn<int>("queries");
        QTest::newRow("needle") << "needle-1k.h5" << 1028 << 1028;
        QTest::newRow("story") << "story-2k.h5" << 2048 << 256;
        QTest::newRow("records") << "records-2k.h5" << 2009 << 256;
        QTest::newRow("few-shot") << "fewshot-1k.h5" << 992 << 256;
    }

    void samplesOpenWithTheirShapes() {
        QFETCH(QString, name);
        QFETCH(int, tokens);
        QFETCH(int, queries);
        const auto capture =
            openCapture((QString::fromStdString(kvscope::testing::sourceDir()) + "/sample_data/" + name).toStdString());
        QCOMPARE(capture->info().numTokens, std::int64_t(tokens));
        QCOMPARE(capture->info().layers.size(), std::size_t(6));
        for (const LayerInfo& layer : capture->info().layers) {
            QCOMPARE(layer.queryCount, std::int64_t(queries));
            QCOMPARE(layer.scaling, 0.125);
        }
        const HostTensor q = capture->read(LayerIndex(5), TensorRole::Queries, {});
        QCOMPARE(q.shape, (Shape{8, queries, 64}));
        std::vector<double> done; // in equal steps, also over many small data sets
        const Checkpoint checkpoint({}, [&](double part, double whole) { done.push_back(part / whole); });
        QCOMPARE(capture->computeHash(checkpoint), capture->info().hash);
        for (std::size_t i = 1; i < done.size(); ++i)
            QVERIFY2(done[i] - done[i - 1] < 0.1, qPrintable(QString::number(done[i])));
        QVERIFY(done.size() > 10 && done.front() < 0.1 && done.back() > 0.9);
    }

    // Written over in place while the old one is open, as copying a new capture there does: HDF5 must not mix the two.
    void aFileWrittenOverIsReadAnew() {
        const QTemporaryDir folder;
        const QString path = folder.filePath("capture.h5");
        std::vector<std::shared_ptr<const CaptureReader>>
            still; // a window holds the old one until the new one is there
        for (const char* sample : {"needle-1k.h5", "fewshot-1k.h5", "needle-1k.h5", "fewshot-1k.h5"}) {
            QFile from(QString::fromStdString(kvscope::testing::sourceDir()) + "/sample_data/" + sample), to(path);
            QVERIFY(from.open(QIODevice::ReadOnly) &&
                    to.open(QIODevice::WriteOnly | QIODevice::Truncate)); // the same inode
            const QByteArray bytes = from.readAll();
            QCOMPARE(to.write(bytes), bytes.size());
            to.close();
            still.push_back(openCapture(path.toStdString()));
            if (still.size() > 1) still.erase(still.begin());
            const auto& capture = still.back();
            QCOMPARE(capture->info().numTokens, std::int64_t(sample == std::string("needle-1k.h5") ? 1028 : 992));
            QVERIFY(!capture->read(LayerIndex(3), TensorRole::Keys, {}).data.empty());
            QCOMPARE(capture->computeHash({}),
                     openCapture(kvscope::testing::sourceDir() + "/sample_data/" + sample)->info().hash);
        }
    }

    void equalTokensHaveEqualKeysBeforeRopeInLayerZero() {
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        const HostTensor pre = capture->read(LayerIndex(0), TensorRole::KeysPreRope, {});
        const auto& ids = capture->tokens().ids;
        double worst = 0, largest = 0;
        for (std::size_t a = 1; a < 400; ++a)
            for (std::size_t b = a + 1; b < 400; ++b)
                for (std::size_t c = 0; ids[a] == ids[b] && c < 64; ++c) {
                    worst = testing::larger(worst, std::fabs(double(pre.data[a * 64 + c]) - pre.data[b * 64 + c]));
                    largest = std::max(largest, std::fabs(double(pre.data[a * 64 + c])));
                }
        // The rotated keys were rounded to 8 significant bits, so two copies differ by up to that of the pair's length.
        QVERIFY2(worst > 0 && worst < largest * 0.02, qPrintable(QString("%1 of %2").arg(worst).arg(largest)));
    }
};

KVSCOPE_TEST(SamplesTest)
#include "samples_test.moc"
