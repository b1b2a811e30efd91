// gpu-check: the CUDA kernels on a real device, against the engines' oracles, against the CPU engine, and against the
// clock. Needs no LibTorch, window or capture. Exit code: 0 good, 1 a check failed, 2 wrong usage, 77 no CUDA device.
#include "core/base/error.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/bench/gpu_check/cuda_memory.h"
#include "tests/bench/gpu_check/kernel_parity.h"
#include "tests/bench/gpu_check/timed_kernels.h"
#include "tests/support/kernel_engine.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace kvscope::check {

namespace {

constexpr int kGood = 0, kFailed = 1, kUsage = 2, kNoDevice = 77;

/// Cases of the engines by kernels, rows as floats and, where nothing is lost, as bfloat16. Number of failures.
int testCases(const std::shared_ptr<const gpu::DeviceMemory>& memory) {
    int failed = 0, run = 0;
    for (const auto type : {gpu::ElementType::Float32, gpu::ElementType::BFloat16}) {
        const auto engine = gpu::makeKernelEngine(memory, Arithmetic::Exact, type);
        for (const EngineCase& c : allCases()) {
            if (!c.naive)
                continue;
            const double error = errorOf(c.prepare(*engine)().numbers, c.naive());
            ++run;
            if (error > c.allowedError) {
                ++failed;
                fmt::print("{:50} error {:.1e}, allowed {:.1e}  FAILED\n", c.name, error, c.allowedError);
            }
        }
    }
    fmt::print("{} cases, {} failed\n", run, failed);
    return failed;
}

int parity(const std::shared_ptr<const gpu::DeviceMemory>& memory, const std::vector<std::int64_t>& tokens) {
    const auto kernels = gpu::makeKernelEngine(memory, Arithmetic::Exact, gpu::ElementType::BFloat16);
    const auto cpu = makeCpuEngine();
    int wrong = 0;
    for (const std::int64_t n : tokens)
        for (const ParityRow& row : kernelParity(*kernels, *cpu, n)) {
            fmt::print("{:7} tokens  {:24} {:5} lists, {:3} differ, smallest margin {:.1e}\n", n, row.name, row.lists,
                       row.differing, row.smallestMargin);
            wrong += row.differing;
        }
    return wrong;
}

void bench(const std::shared_ptr<const gpu::DeviceMemory>& memory, const LayerSize& size) {
    const double copy = copyBandwidth();
    fmt::print("copies inside the device: {:.0f} GB/s read and written\n", copy / 1e9);
    fmt::print("{} tokens, {} KV heads, {} query heads, {} elements, bfloat16, cold caches\n", size.tokens,
               size.kvHeads, size.queryHeads, size.width);
    for (const auto& make : timedKernels(*memory, size)) {
        const TimedKernel kernel = make();
        memory->finish();
        const double seconds = secondsOf(kernel.work);
        fmt::print("{:48} {:10.4f} ms {:8.1f} GB/s {:4.0f} % of copy {:10.1f} GFLOP/s\n", kernel.name, seconds * 1e3,
                   kernel.bytes / seconds / 1e9, 100 * kernel.bytes / seconds / copy,
                   kernel.operations / seconds / 1e9);
        std::fflush(stdout);
    }
}

int run(int argc, char** argv) {
    CLI::App app{"Checks the CUDA kernels on this machine's GPU and measures them.", "gpu-check"};
    LayerSize size;
    std::vector<std::int64_t> tokens = {4096, 16384, 65536};
    app.add_subcommand("device", "say which CUDA device would be used");
    app.add_subcommand("test", "run the engines' cases by kernels against their oracles");
    CLI::App* lists = app.add_subcommand("parity", "count kept lists that differ from the CPU engine's");
    lists->add_option("--tokens", tokens, "lengths of random layers")->check(CLI::Range(64, 1 << 20));
    CLI::App* speed = app.add_subcommand("bench", "time the kernels");
    speed->add_option("--tokens", size.tokens, "length of the layer")
        ->check(CLI::Range(512, 1 << 20))
        ->capture_default_str();
    speed->add_option("--kv-heads", size.kvHeads)->check(CLI::Range(1, 64))->capture_default_str();
    speed->add_option("--query-heads", size.queryHeads, "a multiple of the KV heads, at most 32 times as many")
        ->check(CLI::Range(1, 2048))
        ->capture_default_str();
    app.require_subcommand(1);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kGood : kUsage;
    }
    if (size.queryHeads % size.kvHeads != 0 || size.queryHeads / size.kvHeads > 32) {
        fmt::print(stderr, "gpu-check: --query-heads must be a multiple of --kv-heads, at most 32 times as many\n");
        return kUsage;
    }
    if (const auto missing = missingDevice()) {
        fmt::print("no CUDA device: {}\n", *missing);
        return kNoDevice;
    }
    try {
        fmt::print("{}\n", describeDevice());
        const auto memory = makeCudaMemory();
        if (app.got_subcommand("test"))
            return testCases(memory) == 0 ? kGood : kFailed;
        if (app.got_subcommand("parity"))
            return parity(memory, tokens) == 0 ? kGood : kFailed;
        if (app.got_subcommand("bench"))
            bench(memory, size);
        return kGood;
    } catch (const Error& error) {
        fmt::print(stderr, "gpu-check: {}\n", error.what());
        return kFailed;
    }
}

} // namespace

} // namespace kvscope::check

int main(int argc, char** argv) {
    return kvscope::check::run(argc, argv);
}
