// gpu-check: the CUDA kernels on a real device, against the engines' oracles, against the CPU engine, and against the
// clock. Needs no LibTorch, window or capture, and of the CPU engine only what `parity` compares with: it builds where
// there is nothing but nvcc. Exit code: 0 good, 1 a check failed, 2 wrong usage, 77 no CUDA device.
#include "core/base/error.h"
#include "tests/bench/gpu_check/cuda_memory.h"
#include "tests/bench/gpu_check/kernel_cases.h"
#include "tests/bench/gpu_check/kernel_parity.h"
#include "tests/bench/gpu_check/speed_table.h"
#include "tests/support/host_engine.h"
#include "tests/support/kernel_engine.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace kvscope::check {

namespace {

constexpr int kGood = 0, kFailed = 1, kUsage = 2, kNoDevice = 77;
constexpr std::int64_t kLongTokens = 131072;

constexpr const char* kHelp = R"(Checks the CUDA kernels on this machine's GPU and measures them.
Usage: gpu-check COMMAND [OPTIONS]
  device                     say which CUDA device would be used
  test                       run the engines' cases by kernels, exact and fast, against their oracles
  parity                     count kept lists that differ from the CPU engine's
    --tokens N[,N...]        lengths of random layers (4096,16384,65536)
  bench                      time the kernels
    --tokens N               length of the layer (16384)
    --long-tokens N          length where targets are set for a long layer (131072)
    --kv-heads N, --query-heads N   (8, 32) query heads: a multiple of the KV heads, at most 32 times as many
    --flash-ms T             what PyTorch's flash attention forward took in this run, for H2O's target
    --only TEXT              kernels whose name contains TEXT
    --once                   run each once and measure nothing, for a profiler
)";

using Memory = std::shared_ptr<const gpu::DeviceMemory>;

struct Options {
    std::string command;
    std::vector<std::int64_t> tokens;
    std::int64_t longTokens = kLongTokens, kvHeads = 8, queryHeads = 32;
    double flashMilliseconds = 0;
    std::string only;
    bool once = false;
};

/// The engines' cases by kernels in exact and in fast arithmetic. Number of failures.
int testCases() {
    const std::shared_ptr<const Engine> host = makeHostEngine();
    int failed = 0, run = 0;
    for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast}) {
        const auto engine = gpu::makeKernelEngine(makeCudaMemory(), host, arithmetic);
        for (const EngineCase& c : kernelCases()) {
            if (arithmetic == Arithmetic::Fast && c.fastError == 0) continue;
            const CaseResult result = resultOf(c, *engine);
            ++run;
            if (result.good()) continue;
            ++failed;
            std::printf("%-50s %s error %.1e, allowed %.1e  FAILED\n", result.name.c_str(),
                        engine->arithmetic().c_str(), result.error, result.allowed);
            std::fflush(stdout);
        }
    }
    std::printf("%d cases, %d failed\n", run, failed);
    return failed;
}

#if KVSCOPE_HAS_CPU_ENGINE
int parity(const std::vector<std::int64_t>& tokens) {
    const std::shared_ptr<const Engine> cpu = makeCpuEngine();
    int wrong = 0;
    const auto kernels = gpu::makeKernelEngine(makeCudaMemory(), cpu, Arithmetic::Exact);
    for (const std::int64_t n : tokens)
        for (const ParityRow& row : kernelParity(*kernels, *cpu, n)) {
            std::printf("%7lld tokens  %-24s %5d lists, %3d differ, smallest margin %.1e\n", static_cast<long long>(n),
                        row.name.c_str(), row.lists, row.differing, row.smallestMargin);
            wrong += row.differing;
        }
    return wrong;
}
#else
int parity(const std::vector<std::int64_t>&) {
    throw Error({"this build has no CPU engine to compare with",
                 "gpu-check",
                 "install libeigen3-dev, libspectra-dev, libtbb-dev and libfmt-dev, and build again",
                 {}});
}
#endif

void benchTable(const Memory& memory, const std::vector<std::function<TimedKernel()>>& kernels, const SpeedScale& scale,
                const Options& options) {
    std::printf("%s\n", speedHeading().c_str());
    for (const auto& make : kernels) {
        const TimedKernel kernel = make();
        memory->finish();
        if (kernel.name.find(options.only) == std::string::npos) continue;
        if (options.once) {
            kernel.work(memory->stream());
            memory->finish();
            continue;
        }
        const double seconds = secondsOf(kernel.work);
        std::printf("%s\n", speedLine(kernel, seconds, scale).c_str());
        std::fflush(stdout);
    }
}

/// What the device is like.
void printRates(const DeviceRates& rates) {
    std::printf(
        "this device: copies %.0f GB/s (read and written), bfloat16 matrices %.0f GFLOP/s (mma.sync), double %.0f "
        "GFLOP/s, float %.0f GFLOP/s\n",
        rates.copyBytes / 1e9, rates.tensorFlops / 1e9, rates.doubleFlops / 1e9, rates.floatFlops / 1e9);
}

void bench(const Memory& memory, const Options& options) {
    const DeviceRates rates = options.once ? DeviceRates{1, 1, 1, 1} : measureRates();
    if (!options.once) printRates(rates);
    const LayerSize target;
    LayerSize size{options.tokens.front(), options.kvHeads, options.queryHeads};
    SpeedScale scale{rates.copyBytes, rates.tensorFlops, rates.doubleFlops, rates.floatFlops,
                     options.flashMilliseconds / 1e3};
    const auto table = [&](const auto& kernels, std::int64_t targetTokens) {
        scale.isTargetSize =
            size.tokens == targetTokens && size.kvHeads == target.kvHeads && size.queryHeads == target.queryHeads;
        std::printf("\n%lld tokens, %lld KV heads, %lld query heads, %lld elements, bfloat16, cold caches\n",
                    static_cast<long long>(size.tokens), static_cast<long long>(size.kvHeads),
                    static_cast<long long>(size.queryHeads), static_cast<long long>(size.width));
        benchTable(memory, kernels(*memory, size), scale, options);
    };
    table(timedKernels, target.tokens);
    size.tokens = options.longTokens;
    table(longKernels, kLongTokens);
}

std::int64_t numberIn(const char* text, std::int64_t least, std::int64_t most) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
    if (error != std::errc() || *end != '\0' || number < least || number > most)
        throw Error(
            {"\"" + std::string(text) + "\" is no number from " + std::to_string(least) + " to " + std::to_string(most),
             "gpu-check",
             "see --help",
             {}});
    return number;
}

std::vector<std::int64_t> numbersIn(std::string text) {
    std::vector<std::int64_t> numbers;
    for (char* piece = std::strtok(text.data(), ","); piece; piece = std::strtok(nullptr, ","))
        numbers.push_back(numberIn(piece, 512, 1 << 20));
    return numbers;
}

/// Throws Error for what cannot be meant.
Options optionsOf(int argc, char** argv) {
    static const option names[] = {{"tokens", required_argument, nullptr, 't'},
                                   {"long-tokens", required_argument, nullptr, 'l'},
                                   {"kv-heads", required_argument, nullptr, 'k'},
                                   {"query-heads", required_argument, nullptr, 'q'},
                                   {"flash-ms", required_argument, nullptr, 'f'},
                                   {"only", required_argument, nullptr, 'o'},
                                   {"once", no_argument, nullptr, 'n'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found = 0; (found = getopt_long(argc, argv, "h", names, nullptr)) != -1;) {
        switch (found) {
        case 't': options.tokens = numbersIn(optarg); break;
        case 'l': options.longTokens = numberIn(optarg, 512, 1 << 20); break;
        case 'k': options.kvHeads = numberIn(optarg, 1, 64); break;
        case 'q': options.queryHeads = numberIn(optarg, 1, 2048); break;
        case 'f': options.flashMilliseconds = std::strtod(optarg, nullptr); break;
        case 'o': options.only = optarg; break;
        case 'n': options.once = true; break;
        case 'h': options.command = "help"; return options;
        default: throw Error({"this option is not known or lacks its number", "gpu-check", "see --help", {}});
        }
    }
    if (optind + 1 != argc)
        throw Error({"one command is needed: device, test, parity or bench", "gpu-check", "see --help", {}});
    options.command = argv[optind];
    if (options.tokens.empty())
        options.tokens = options.command == "parity" ? std::vector<std::int64_t>{4096, 16384, 65536}
                                                     : std::vector<std::int64_t>{LayerSize{}.tokens};
    if (options.queryHeads % options.kvHeads != 0 || options.queryHeads / options.kvHeads > 32)
        throw Error({"--query-heads must be a multiple of --kv-heads, at most 32 times as many",
                     "gpu-check",
                     "see --help",
                     {}});
    return options;
}

int runCommand(const Options& options) {
    if (const auto missing = missingDevice()) {
        std::printf("no CUDA device: %s\n", missing->c_str());
        return kNoDevice;
    }
    std::printf("%s\n", describeDevice().c_str());
    if (options.command == "test") return testCases() == 0 ? kGood : kFailed;
    if (options.command == "parity") return parity(options.tokens) == 0 ? kGood : kFailed;
    if (options.command == "bench") bench(makeCudaMemory(), options);
    return kGood;
}

int run(int argc, char** argv) {
    Options options;
    try {
        options = optionsOf(argc, argv);
    } catch (const Error& error) {
        std::fprintf(stderr, "gpu-check: %s\n", error.what());
        return kUsage;
    }
    const auto is = [&](const char* command) { return options.command == command; };
    if (is("help") || !(is("device") || is("test") || is("parity") || is("bench"))) {
        std::fputs(kHelp, is("help") ? stdout : stderr);
        return is("help") ? kGood : kUsage;
    }
    try {
        return runCommand(options);
    } catch (const Error& error) {
        std::fprintf(stderr, "gpu-check: %s\n", error.what());
        return kFailed;
    }
}

} // namespace

} // namespace kvscope::check

int main(int argc, char** argv) { return kvscope::check::run(argc, argv); }
