// Means over query heads: which heads read a KV head is asked of the capture, and heads without a number do not count.
#include "core/capture/open_capture.h"
#include "core/run/head_means.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

class HeadMeansTest : public QObject {
    Q_OBJECT

    static LayerInfo interleaved() {
        LayerInfo layer;
        layer.gqaGroupOf = {0, 1, 0, 1};
        return layer;
    }

private slots:
    void aKvHeadIsTheMeanOfItsReaders() {
        const std::vector<double> perQueryHead = {1, 10, 3, 30};
        QCOMPARE(meanOverHeads(perQueryHead, interleaved(), KvHeadIndex(0)), 2.0);
        QCOMPARE(meanOverHeads(perQueryHead, interleaved(), KvHeadIndex(1)), 20.0);
        QCOMPARE(meanOverHeads(perQueryHead, interleaved(), std::nullopt), 11.0);
    }

    void headsWithoutANumberDoNotCount() {
        const std::vector<double> perQueryHead = {NAN, NAN, 3, 30};
        QCOMPARE(meanOverHeads(perQueryHead, interleaved(), KvHeadIndex(0)), 3.0);
        QCOMPARE(meanOverHeads(perQueryHead, interleaved(), std::nullopt), 16.5);
        const std::vector<double> none = {NAN, 1, NAN, 1};
        QVERIFY(std::isnan(meanOverHeads(none, interleaved(), KvHeadIndex(0))));
    }

    void nothingMeasuredIsNoNumber() {
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        QVERIFY(std::isnan(meanErrorOf(RunResult{}, *capture, KvHeadIndex(0))) &&
                std::isnan(meanMassOf(RunResult{}, *capture, KvHeadIndex(0))));
    }
};

KVSCOPE_TEST(HeadMeansTest)
#include "head_means_test.moc"
