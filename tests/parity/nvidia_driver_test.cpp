// What the program says of a driver or a GPU that is too old, and that it says nothing of those that fit.
#include "gpu/engine_factory.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class NvidiaDriverTest : public QObject {
    Q_OBJECT

private slots:
    void fitsAreNotRefused() {
        QVERIFY(refusalOf({true, 13000, 8, 0, "NVIDIA A100"}).sentence.empty());
        QVERIFY(refusalOf({true, 13020, 9, 0, "NVIDIA H200"}).sentence.empty());
        QVERIFY(refusalOf({true, 13000, 12, 0, "NVIDIA GeForce RTX 5090"}).sentence.empty());
        QVERIFY(refusalOf({true, 0, 0, 0, ""}).sentence.empty()); // the driver does not say: LibTorch will
    }

    void anOldDriverIsNamedWithBothLimits() {
        const std::string sentence = refusalOf({true, 12040, 9, 0, "NVIDIA H100"}).sentence;
        for (const char* part : {"too old", "CUDA 12.4", "580", "CUDA 13.0", "compute capability 8.0"})
            QVERIFY2(sentence.find(part) != std::string::npos, part);
    }

    void anOldGpuIsNamedWithBothLimits() {
        const DriverRefusal refusal = refusalOf({true, 13000, 7, 5, "NVIDIA T4"});
        for (const char* part : {"NVIDIA T4 is too old", "7.5", "580", "compute capability 8.0"})
            QVERIFY2(refusal.sentence.find(part) != std::string::npos, part);
        QVERIFY(refusal.remedy.find("--engine cpu") != std::string::npos);
    }

    void noDriverIsNoCrash() {
        QCOMPARE(refusalOf({}).sentence, std::string("this machine has no NVIDIA driver"));
        QCOMPARE(readNvidiaDriver().found, readNvidiaDriverVersion().found);
    }
};

KVSCOPE_CORE_TEST(NvidiaDriverTest)
#include "nvidia_driver_test.moc"
