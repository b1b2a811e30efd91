// The parts of gpu-check that need no device, on the emulated one: kept lists of kernels and CPU engine agree, and
// every timed workload runs on inputs of its size.
#include "tests/bench/gpu_check/kernel_parity.h"
#include "tests/bench/gpu_check/speed_table.h"
#include "tests/bench/gpu_check/timed_kernels.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/kernel_engine.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::check;
using gpu::HostMemory;

namespace {

class GpuCheckTest : public QObject {
    Q_OBJECT

private slots:
    void kernelsKeepWhatTheCpuEngineKeeps() {
        const auto kernels = gpu::makeKernelEngine(std::make_shared<HostMemory>(),
                                                   std::shared_ptr<const Engine>(makeCpuEngine(1)), Arithmetic::Exact);
        const auto cpu = makeCpuEngine(1);
        int lists = 0;
        for (const ParityRow& row : kernelParity(*kernels, *cpu, 180)) {
            QVERIFY2(row.differing == 0, row.name.c_str());
            QVERIFY(row.smallestMargin >= 0 && row.smallestMargin < 1);
            lists += row.lists;
        }
        QCOMPARE(lists, 3 * (3 * 4 * 15 + 4 + 4));
    }

    void timedWorkloadsRun() {
        const HostMemory memory;
        const LayerSize size{512, 1, 2, 16};
        auto kernels = timedKernels(memory, size);
        QCOMPARE(kernels.size(), std::size_t{13});
        for (auto& make : longKernels(memory, size)) kernels.push_back(std::move(make));
        QCOMPARE(kernels.size(), std::size_t{16});
        for (const auto& make : kernels) {
            const TimedKernel kernel = make();
            const std::int64_t before = gpu::emulation::launches();
            kernel.work(nullptr);
            QVERIFY2(gpu::emulation::launches() > before, kernel.name.c_str());
            QVERIFY(kernel.bytes > 0 && kernel.operations > 0);
        }
    }

    void aLineSaysWhetherTheTargetIsMet() {
        SpeedScale scale{2e12, 5e14, 3e13, 6e13, 0, true};
        TimedKernel kernel{"walks", 1e9, 3e9, {}, Rate::Double, {.seconds = 1e-3}};
        const auto has = [&](double seconds, const char* text) {
            return speedLine(kernel, seconds, scale).find(text) != std::string::npos;
        };
        QVERIFY(has(1e-3, "1.0000 ms: met"));
        QVERIFY(has(1.01e-3, "1.0000 ms: MISSED"));
        QVERIFY(has(1e-3, "1000.0     50 %") && has(1e-3, "10 % fp64")); // a thousand GB/s, 3 TFLOP/s
        kernel.rate = Rate::Float;
        QVERIFY(has(1e-3, "5 % fp32"));
        kernel.target = {.copies = 1.25};
        QVERIFY(has(0.62e-3, "0.6250 ms: met") && has(0.63e-3, "MISSED"));
        kernel.target = {.flashTimes = 1.5};
        QVERIFY(has(1e-3, "not measured"));
        scale.flashSeconds = 1e-3;
        QVERIFY(has(1.4e-3, "met") && has(1.6e-3, "MISSED"));
        scale.isTargetSize = false;
        QVERIFY(!has(1e-3, "met") && !has(1e-3, "MISSED"));
    }
};

} // namespace

KVSCOPE_TEST(GpuCheckTest)
#include "gpu_check_test.moc"
