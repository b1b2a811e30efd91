// What failures of the device mean: which leave it usable, and which only another engine survives.
#include "gpu/kernels/device_error.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::gpu;
using Cause = DeviceError::Cause;

class DeviceErrorTest : public QObject {
    Q_OBJECT

private slots:
    void codesOfCuda_data() {
        QTest::addColumn<QList<int>>("codes");
        QTest::addColumn<int>("cause");
        QTest::newRow("memory") << QList<int>{2} << int(Cause::OutOfMemory);
        QTest::newRow("no device or driver")
            << QList<int>{3, 34, 35, 36, 100, 101, 200, 209, 218, 221, 222, 223, 304, 802, 803, 804}
            << int(Cause::NoDevice);
        QTest::newRow("a kernel that went wrong")
            << QList<int>{700, 702, 710, 714, 715, 716, 717, 718, 719, 721} << int(Cause::Lost);
        QTest::newRow("a device that went away") << QList<int>{46, 214, 220, 226, 709, 999} << int(Cause::Lost);
        QTest::newRow("a launch that was refused")
            << QList<int>{1, 9, 98, 400, 701, 720, 801, 901, 912} << int(Cause::Other);
        QTest::newRow("codes of later versions of CUDA") << QList<int>{722, 850, 950, 12345} << int(Cause::Lost);
    }

    void codesOfCuda() {
        QFETCH(QList<int>, codes);
        QFETCH(int, cause);
        for (const int code : codes) QVERIFY2(int(causeOfCode(code)) == cause, qPrintable(QString::number(code)));
    }

    void whatLibrariesSay() {
        QCOMPARE(causeOfText("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
                 Cause::OutOfMemory);
        QCOMPARE(causeOfText("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`"),
                 Cause::OutOfMemory);
        QCOMPARE(causeOfText("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"), Cause::OutOfMemory);
        QCOMPARE(causeOfText("CUDA error: out of memory"), Cause::OutOfMemory);
        QCOMPARE(causeOfText("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasDgemm`"), Cause::Lost);
        QCOMPARE(causeOfText("CUDA error: unspecified launch failure"), Cause::Lost);
        QCOMPARE(causeOfText("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnDpotrf`"),
                 Cause::Other);
        // Mistakes of the caller, which no other engine could compute either.
        for (const char* text :
             {"mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)",
              "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
              "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
              "index out of range in self"})
            QVERIFY2(causeOfText(text) == Cause::Ours, text);
    }

    void theErrorSaysWhatAndWhatToDo() {
        const DeviceError error(2, "out of memory", "key norms");
        QCOMPARE(error.cause(), Cause::OutOfMemory);
        QVERIFY(std::string(error.what()).find("key norms") != std::string::npos);
        QVERIFY(error.parts().remedy.find("--engine cpu") != std::string::npos);
    }
};

KVSCOPE_TEST(DeviceErrorTest)
#include "device_error_test.moc"
