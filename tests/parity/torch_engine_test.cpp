// What LibTorch's own errors mean: a mistake of the caller, or a call that the CPU engine may repeat.
#include "gpu/engine_factory.h"
#include "tests/parity/torch_offer.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <limits>

using namespace kvscope;

class TorchEngineTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (const QString why = testing::whyNoTorch(); !why.isEmpty()) QSKIP(qPrintable(why));
    }

    void shapesThatDoNotFitAreOurMistake() {
        for (const bool strict : {false, true}) {
            const auto engine = makeEngine({"torch", 1, Arithmetic::Exact, 0, strict});
            const Tensor rows = engine->upload({Shape{2, 5, 4}, std::vector<float>(40, 1)});
            PrincipalAxes axes;
            axes.axes = {Shape{2, 4}, std::vector<float>(8, 1)};
            axes.mean = {Shape{3}, std::vector<float>(3, 1)}; // of another width
            const std::string said = errorMessage([&] { engine->project(rows, 1, axes); });
            QVERIFY2(said.starts_with("project of [2, 5, 4] was given what it cannot compute: mat1 and mat2 shapes"),
                     said.c_str());
            QVERIFY(engine->state().fallbacks.empty() && engine->state().notice.empty());
        }
    }

    /// The decomposition's failure is the library's own; it is no mistake, and no GPU is needed to see it.
    void anIterationWithoutAnEndIsAFailureOfTheDevice() {
        const auto engine = makeEngine({"torch", 1, Arithmetic::Exact, 0, true});
        const Tensor rows =
            engine->upload({Shape{1, 5, 4}, std::vector<float>(20, std::numeric_limits<float>::quiet_NaN())});
        const std::string said = errorMessage([&] { engine->principalAxes(rows, 0, 2, {}); });
        QVERIFY2(said.starts_with("principalAxes of [1, 5, 4] did not run on the device: linalg.eigh"), said.c_str());
    }
};

KVSCOPE_CORE_TEST(TorchEngineTest)
#include "torch_engine_test.moc"
