// The emulated device finds what it is for: each check is shown a kernel that lacks one thing.
#include "tests/bench/gpu_check/kernel_cases.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/emulation/wrong_kernels.h"
#include "tests/support/host_engine.h"
#include "tests/support/kernel_engine.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <set>

using namespace kvscope;
using namespace kvscope::gpu;
using namespace kvscope::gpu::emulation;

namespace {

class EmulatedDeviceTest : public QObject {
    Q_OBJECT

private slots:
    void init() {
        if (!checkRaces(true)) QSKIP("a sanitizer build: kernels are not compiled for the race check");
    }
    void cleanup() {
        checkRaces(false);
        setOrder(Order::Forward);
    }

    void aRightKernelPasses() {
        for (const Order order : {Order::Forward, Order::Backward, Order::Shuffled, Order::Warps}) {
            setOrder(order, 3);
            std::vector<float> sums(2);
            launchWrongKernel(Wrong::Nothing, sums.data());
            QCOMPARE(sums, (std::vector<float>{2016, 2016}));
        }
    }

    void racesAreFound_data() {
        QTest::addColumn<int>("wrong");
        QTest::newRow("no __syncthreads") << int(Wrong::NoBlockBarrier);
        QTest::newRow("no __syncwarp") << int(Wrong::NoWarpBarrier);
        QTest::newRow("two blocks write one element") << int(Wrong::BlocksShareAnElement);
    }
    /// In every order, also in those whose result is right by chance.
    void racesAreFound() {
        QFETCH(int, wrong);
        for (const Order order : {Order::Forward, Order::Backward, Order::Shuffled, Order::Warps}) {
            setOrder(order, 3);
            std::vector<float> sums(2);
            QVERIFY_THROWS_EXCEPTION(Race, launchWrongKernel(static_cast<Wrong>(wrong), sums.data()));
        }
    }

    /// One case of every primitive, in 16 bits.
    void kernelsHaveNoRaces_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("arithmetic");
        std::set<std::string> seen;
        for (const check::EngineCase& c : check::kernelCases())
            if (c.name.ends_with("-bf16") && seen.insert(c.name.substr(0, c.name.find('/'))).second)
                for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast})
                    QTest::addRow("%s, %s", c.name.c_str(), arithmetic == Arithmetic::Fast ? "fast" : "exact")
                        << QString::fromStdString(c.name) << int(arithmetic);
        QCOMPARE(seen.size(), std::size_t{10});
    }
    void kernelsHaveNoRaces() {
        QFETCH(QString, name);
        QFETCH(int, arithmetic);
        setOrder(Order::Warps, 7);
        const auto engine =
            makeKernelEngine(std::make_shared<HostMemory>(), std::shared_ptr<const Engine>(makeHostEngine()),
                             static_cast<Arithmetic>(arithmetic));
        for (const check::EngineCase& c : check::kernelCases())
            if (c.name == name.toStdString()) {
                try {
                    c.prepare (*engine)();
                } catch (const Race& race) {
                    QFAIL(race.text.c_str());
                }
            }
    }

    /// Without the race check a wrong order still shows: warps run any number of barriers apart.
    void randomWarpsChangeAWrongResult() {
        checkRaces(false);
        bool differs = false;
        for (unsigned seed = 0; seed < 20; ++seed) {
            setOrder(Order::Warps, seed);
            std::vector<float> sums(2);
            launchWrongKernel(Wrong::NoBlockBarrier, sums.data());
            differs |= sums[0] != 2016;
        }
        QVERIFY(differs);
    }
};

} // namespace

KVSCOPE_TEST(EmulatedDeviceTest)
#include "emulated_device_test.moc"
