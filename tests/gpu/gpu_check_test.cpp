// The parts of gpu-check that need no device, on the emulated one: kept lists of kernels and CPU engine agree, and
// every timed workload runs on inputs of its size.
#include "tests/bench/gpu_check/kernel_parity.h"
#include "tests/bench/gpu_check/timed_kernels.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/kernel_engine.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::check;
using gpu::HostMemory;

namespace {

class GpuCheckTest : public QObject {
    Q_OBJECT

private slots:
    void kernelsKeepWhatTheCpuEngineKeeps() {
        const auto kernels =
            gpu::makeKernelEngine(std::make_shared<HostMemory>(), std::shared_ptr<const Engine>(makeCpuEngine(1)),
                                  Arithmetic::Exact, gpu::ElementType::BFloat16);
        const auto cpu = makeCpuEngine(1);
        int lists = 0;
        for (const ParityRow& row : kernelParity(*kernels, *cpu, 180)) {
            QVERIFY2(row.differing == 0, row.name.c_str());
            QVERIFY(row.smallestMargin >= 0 && row.smallestMargin < 1);
            lists += row.lists;
        }
        QCOMPARE(lists, 3 * 4 * 15 + 4 + 4);
    }

    void timedWorkloadsRun() {
        const HostMemory memory;
        const auto kernels = timedKernels(memory, {512, 1, 2, 16});
        QCOMPARE(kernels.size(), std::size_t{11});
        for (const auto& make : kernels) {
            const TimedKernel kernel = make();
            const std::int64_t before = gpu::emulation::launches();
            kernel.work(nullptr);
            QVERIFY2(gpu::emulation::launches() > before, kernel.name.c_str());
            QVERIFY(kernel.bytes > 0 && kernel.operations > 0);
        }
    }
};

} // namespace

QTEST_APPLESS_MAIN(GpuCheckTest)
#include "gpu_check_test.moc"
