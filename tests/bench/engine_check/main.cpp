// engine-check: runs every primitive's cases on an engine, against the oracles or against the clock. Needs no window,
// no capture and no display. Engines are strict unless --repeat-on-cpu is given: a call that fails on its device fails
// its case, so that a device on which nothing runs cannot pass.
#include "core/base/error.h"
#include "tests/bench/engine_check/ceilings.h"
#include "tests/bench/engine_check/device_clock.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/bench/engine_check/engines.h"
#include "tests/bench/engine_check/linear_fits.h"
#include "tests/bench/engine_check/parity.h"
#include "tests/bench/engine_check/peers.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace kvscope::check {

namespace {

struct Options {
    std::string engine = "cpu", pattern = "*", reference = "cpu", peers;
    int threads = 0;
    bool repeatOnCpu = false;
    std::vector<std::int64_t> rows = {4096, 16384};
    std::vector<std::int64_t> sizes = {4096, 8192, 16384, 32768, 65536, 131072, 262144};
    double most = 1.15;
};

struct Timed {
    double seconds;
    Outcome outcome;
    double onDevice = 0; ///< of the fastest run by the GPU's clock; 0: there is none
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The fastest of several runs; a test runs once.
Timed timeOf(const std::function<Outcome()>& work, bool bench, const DeviceClock* clock) {
    Timed best{1e30, {}};
    const double start = now();
    int runs = 0;
    do {
        const double before = now();
        const double onDevice = clock ? clock->secondsOf([&] { best.outcome = work(); }) : 0;
        if (!clock) best.outcome = work();
        const double seconds = now() - before;
        if (seconds < best.seconds) best.seconds = seconds, best.onDevice = onDevice;
        ++runs;
    } while (bench && (runs < 3 || now() - start < 0.5) && now() - start < 20);
    return best;
}

std::string rateText(const EngineCase& c, double seconds, const Ceilings& ceilings) {
    const double flops = c.operations / seconds, bytes = c.bytes / seconds;
    std::string text = fmt::format("{:9.3f} ms {:7.2f} GFLOP/s {:7.2f} GB/s", seconds * 1e3, flops / 1e9, bytes / 1e9);
    if (ceilings.doubleFlops > 0)
        text += fmt::format("  {:3.0f} % of FMA {:3.0f} % of copy", 100 * flops / ceilings.doubleFlops,
                            100 * bytes / ceilings.copyBytes);
    return text;
}

std::string targetText(const EngineCase& c, const Engine& engine, const Timed& timed) {
    const double target = engine.arithmetic().starts_with("fast") ? c.fastGpuTarget : c.gpuTarget;
    if (target == 0 || engine.name() != "cuda") return {};
    const double seconds = timed.onDevice > 0 ? timed.onDevice : timed.seconds;
    return fmt::format("  target {:.3f} ms: {}", target * 1e3, seconds <= target ? "met" : "MISSED");
}

/// Calls that did not run on the engine's own device.
std::int64_t callsOnCpu(const Engine& engine) {
    const EngineState state = engine.state();
    std::int64_t calls = 0;
    for (const CallCounts& counts : {state.delegated, state.fallbacks})
        for (const auto& [primitive, count] : counts) calls += count;
    return calls;
}

bool runCase(const EngineCase& c, const Engine& engine, const Ceilings& ceilings, bool bench,
             const DeviceClock* clock) {
    const Timed timed = timeOf(c.prepare(engine), bench, clock);
    std::string verdict = "speed";
    std::string error = "      -";
    bool good = true;
    if (c.naive) {
        const double measured = errorOf(timed.outcome.numbers, c.naive());
        const double allowed = allowedErrorOf(c, engine);
        good = measured <= allowed;
        error = fmt::format("{:7.1e}", measured);
        verdict = good ? "ok" : fmt::format("FAILED, allowed {:.1e}", allowed);
    }
    const std::string margin = timed.outcome.margin < std::numeric_limits<float>::infinity()
                                   ? fmt::format("{:7.1e}", timed.outcome.margin)
                                   : "      -";
    const std::string device = timed.onDevice > 0 ? fmt::format("  {:.3f} ms by its events", timed.onDevice * 1e3) : "";
    fmt::print("{:45} error {}  margin {}  {}  {}{}{}\n", c.name, error, margin, rateText(c, timed.seconds, ceilings),
               verdict, device, bench ? targetText(c, engine, timed) : "");
    std::fflush(stdout);
    return good;
}

std::unique_ptr<Engine> engineOf(const std::string& name, const Options& options) {
    const auto factory = engineFactories().find(name);
    if (factory == engineFactories().end())
        throw Error({"there is no engine \"" + name + "\"", "--engine", "see --help for those of this build", {}});
    return factory->second(options.threads, !options.repeatOnCpu);
}

/// Number of failed cases.
int runAll(const Options& options, bool bench) {
    const auto engine = engineOf(options.engine, options);
    Ceilings ceilings;
    const DeviceClock clock; // the engine has been made: a CUDA runtime is open where it runs on one
    const bool onGpu = engine->name() == "cuda";
    if (bench && !onGpu) { // a GPU has other ceilings: gpu-check bench measures them
        const int threads = options.threads > 0 ? options.threads : int(std::thread::hardware_concurrency());
        ceilings = measureCeilings(threads);
        fmt::print(
            "this machine, {} threads: {:.1f} GFLOP/s double FMA, {:.1f} GFLOP/s float FMA, {:.1f} GB/s copied\n",
            threads, ceilings.doubleFlops / 1e9, ceilings.floatFlops / 1e9, ceilings.copyBytes / 1e9);
    }
    int chosen = 0, failed = 0, onCpu = 0;
    for (const EngineCase& c : allCases()) {
        const bool fits = fnmatch(options.pattern.c_str(), c.name.c_str(), 0) == 0;
        if (!fits || (!bench && !c.naive)) // cases without an oracle are only timed
            continue;
        ++chosen;
        const std::int64_t before = callsOnCpu(*engine);
        try {
            failed += runCase(c, *engine, ceilings, bench, bench && onGpu && clock.runs() ? &clock : nullptr) ? 0 : 1;
        } catch (const Error& error) {
            fmt::print("{:45} FAILED: {}\n", c.name, error.what());
            ++failed;
        }
        if (callsOnCpu(*engine) == before) continue;
        fmt::print("{:45} ran on the CPU engine\n", c.name);
        ++onCpu;
    }
    if (chosen == 0)
        throw Error({"no case matches \"" + options.pattern + "\"", "--case", "try 'topK/*' or leave it away", {}});
    const EngineState state = engine->state();
    if (!state.delegated.empty()) fmt::print("no device code: {}\n", textOf(state.delegated));
    if (!state.fallbacks.empty())
        fmt::print("failed on the device, ran on the CPU engine: {}; the last: {}\n", textOf(state.fallbacks),
                   state.failure);
    fmt::print("{} cases on {}{} ({}), {} of them on the CPU engine, {} failed\n", chosen, options.engine,
               state.device.empty() ? "" : ", " + state.device, engine->arithmetic(), onCpu, failed);
    return failed;
}

int run(int argc, char** argv) {
    CLI::App app{"Checks the engines' primitives against plain oracles and measures them.", "engine-check"};
    Options options;
    std::string names;
    for (const auto& [name, factory] : engineFactories()) names += (names.empty() ? "" : ", ") + name;
    auto* test = app.add_subcommand("test", "run every case once and compare it with its oracle");
    auto* bench = app.add_subcommand("bench", "also time the cases, the large ones included");
    for (CLI::App* command : {test, bench}) {
        command->add_option("--engine", options.engine, "one of: " + names)->capture_default_str();
        command->add_option("--case", options.pattern, "cases whose name matches this pattern")->capture_default_str();
        command->add_option("--threads", options.threads, "0: all cores")
            ->capture_default_str()
            ->check(CLI::Range(0, 1024));
    }
    bench->add_option(
        "--against-peers", options.peers,
        "a Python with PyTorch: print ratios to the formulas of kvpress and BalanceKV instead, on the CPU engine");
    auto* parity = app.add_subcommand("parity", "compare the kept lists of two engines on random heads");
    parity->add_option("--engine", options.engine, "one of: " + names)->capture_default_str();
    parity->add_option("--against", options.reference, "the other engine")->capture_default_str();
    parity->add_option("--rows", options.rows, "tokens per head, like 4096,16384")
        ->delimiter(',')
        ->capture_default_str();
    parity->add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
    auto* fit = app.add_subcommand("fit", "fit the growth of cost with length where theory says linear");
    fit->add_option("--engine", options.engine, "one of: " + names)->capture_default_str();
    fit->add_option("--case", options.pattern, "works whose name matches this pattern")->capture_default_str();
    fit->add_option("--rows", options.sizes, "tokens, at least two lengths of 256 and more")
        ->delimiter(',')
        ->expected(2, 32)
        ->check(CLI::Range(256, 1 << 20))
        ->capture_default_str();
    fit->add_option("--most", options.most, "fail above this exponent")->capture_default_str();
    fit->add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
    for (CLI::App* command : {test, bench, parity, fit})
        command->add_flag("--repeat-on-cpu", options.repeatOnCpu,
                          "let the CPU engine repeat what fails on the device; else that is an error");
    app.require_subcommand(1);
    try {
        app.parse(argc, argv);
        if (parity->parsed())
            return compareLists(*engineOf(options.reference, options), *engineOf(options.engine, options),
                                options.rows) == 0
                       ? 0
                       : 1;
        if (fit->parsed())
            return fitLinearWorks(*engineOf(options.engine, options), options.sizes, options.pattern, options.most) == 0
                       ? 0
                       : 1;
        if (!options.peers.empty())
            return compareWithPeers(options.peers, options.threads, options.pattern) == 0 ? 0 : 1;
        return runAll(options, bench->parsed()) == 0 ? 0 : 1;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const Error& error) {
        fmt::print(stderr, "engine-check: {}\n", error.what());
        return 2;
    }
}

} // namespace

} // namespace kvscope::check

int main(int argc, char** argv) { return kvscope::check::run(argc, argv); }
