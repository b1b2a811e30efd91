// Each round times the peer, then both arithmetics of our engine, so that all see the same load of the machine.
#include "tests/bench/engine_check/peers.h"

#include "core/base/error.h"
#include "tests/bench/engine_check/engine_case.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace kvscope::check {

namespace {

constexpr std::int64_t kKvHeads = 8, kQueryHeads = 32, kTokens = 16384, kWidth = 128; // as in peers.py
constexpr std::int64_t kWindow = 32, kH2oTokens = 4096, kSketch = 64, kBlock = 256;
constexpr int kRounds = 5;

struct Measured {
    double cpu, clock, sum;
};

/// A Python process that answers names of works.
class Peer {
public:
    Peer(const std::string& python, const std::string& folder, int threads) {
        std::array<int, 2> in{}, out{};
        std::signal(SIGPIPE, SIG_IGN); // a peer that ended is said, not died of
        if (pipe(in.data()) != 0 || pipe(out.data()) != 0) fail("no pipe could be made");
        m_process = fork();
        if (m_process == 0) {
            dup2(in[0], STDIN_FILENO), dup2(out[1], STDOUT_FILENO);
            for (const int file : {in[0], in[1], out[0], out[1]}) close(file);
            const std::string script = KVSCOPE_PEERS, count = std::to_string(threads);
            execlp(python.c_str(), python.c_str(), script.c_str(), folder.c_str(), count.c_str(), nullptr);
            _exit(127);
        }
        close(in[0]), close(out[1]);
        m_to = fdopen(in[1], "w"), m_from = fdopen(out[0], "r");
        m_name = answer();
    }
    ~Peer() {
        fclose(m_to), fclose(m_from);
        waitpid(m_process, nullptr, 0);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    const std::string& name() const { return m_name; }
    Measured measure(const std::string& work) {
        fmt::print(m_to, "{}\n", work);
        std::fflush(m_to);
        Measured measured{};
        if (std::sscanf(answer().c_str(), "%lf %lf %lf", &measured.cpu, &measured.clock, &measured.sum) != 3)
            fail("its answer is not three numbers");
        return measured;
    }

private:
    [[noreturn]] static void fail(const std::string& what) {
        throw Error({"the peer does not answer: " + what, "--against-peers", "name a Python that has PyTorch", {}});
    }
    std::string answer() {
        std::array<char, 256> line{};
        if (!std::fgets(line.data(), line.size(), m_from)) fail("it ended");
        return std::string(line.data()).substr(0, std::string(line.data()).find('\n'));
    }

    pid_t m_process;
    FILE *m_to = nullptr, *m_from = nullptr;
    std::string m_name;
};

struct Rows {
    Tensor queries, keys, values;
};

using Work = std::function<HostTensor(const Engine&, const Rows&)>;

AttentionRule attentionRule() {
    AttentionRule rule{1 / std::sqrt(double(kWidth)), 0, 0, {}};
    for (std::int32_t h = 0; h < kQueryHeads; ++h) rule.gqaGroupOf.push_back(h / 4);
    return rule;
}

HostTensor causalSums(const Engine& e, const Rows& r, std::int64_t n, std::int64_t w) {
    return e.attentionColumnSums(
        {e.rows(r.queries, n - w, n), e.rows(r.keys, 0, n), TokenIndex(n - w), {}, attentionRule()}, {});
}

/// As kvpress: centred keys, a ridge, a sketch of its own for each head. The peer draws another sketch; only sums of
/// scores are compared, which hardly depend on it.
HostTensor leverage(const Engine& e, const Tensor& keys) {
    static const HostTensor sketch{Shape{kKvHeads, kWidth, kSketch},
                                   randomBlock(83, kKvHeads, kWidth, kSketch, 0.125).numbers};
    return e
        .leverage({.rows = keys,
                   .sketch = sketch,
                   .route = LeverageRoute::Cholesky,
                   .centred = true,
                   .regulariser = Regulariser::Ridge,
                   .strength = 1e-2,
                   .wantsSpectrum = false},
                  {})
        .scores;
}

/// (sign + 1) u of each row, of one round in blocks. Signs that follow u alone give half the sum.
HostTensor balance(const Engine& e, const Rows& rows) {
    BalancingWalks input{rows.keys, rows.values, {}, {}};
    input.signsOnly = true;
    BalancingWalk walk{.rows = {},
                       .uniforms = {},
                       .weights = {},
                       .silent = {},
                       .meanOver = kBlock,
                       .gamma = 4,
                       .logScale = 0.1 / std::sqrt(double(kWidth)),
                       .valueConstant = 0.025,
                       .firstIsPlus = true};
    for (std::int64_t i = 1; i <= kBlock; ++i) walk.uniforms.push_back(std::fmod(double(i) * 0.618033988749895, 1.0));
    walk.rows.resize(kBlock);
    for (walk.head = 0; walk.head < kKvHeads; ++walk.head)
        for (std::int64_t begin = 0; begin < kTokens; begin += kBlock) {
            std::iota(walk.rows.begin(), walk.rows.end(), TokenIndex(begin));
            input.walks.push_back(walk);
        }
    HostTensor weighed;
    for (const BalancingSteps& steps : e.balancingWalks(input, {}))
        std::ranges::transform(steps.signs, walk.uniforms, std::back_inserter(weighed.data),
                               [](int sign, double u) { return float((sign + 1) * u); });
    return weighed;
}

std::vector<std::pair<std::string, Work>> works() {
    return {{"key-norm", [](const Engine& e, const Rows& r) { return e.rowNorms(r.keys, {}); }},
            {"keydiff",
             [](const Engine& e, const Rows& r) {
                 const HostTensor anchor = e.anchor(r.keys, AnchorKind::NormalisedMean, {});
                 return e.similarity(r.keys, anchor, SimilarityMetric::Cosine, {});
             }},
            {"snapkv", [](const Engine& e, const Rows& r) { return causalSums(e, r, kTokens, kWindow); }},
            {"h2o-4k", [](const Engine& e, const Rows& r) { return causalSums(e, r, kH2oTokens, kH2oTokens); }},
            {"chunks-256",
             [](const Engine& e, const Rows& r) {
                 return e.attentionChunkSums({r.queries, r.keys, attentionRule()}, {});
             }},
            {"leverage-64", [](const Engine& e, const Rows& r) { return leverage(e, r.keys); }},
            {"balance-256", balance}};
}

template <class Call> Measured timed(const Call& call) {
    const std::clock_t cpu = std::clock(); // of all threads
    const auto clock = std::chrono::steady_clock::now();
    const HostTensor scores = call();
    Measured measured{double(std::clock() - cpu) / CLOCKS_PER_SEC,
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - clock).count(), 0};
    measured.sum = std::accumulate(scores.data.begin(), scores.data.end(), 0.0);
    return measured;
}

double median(std::vector<double> numbers) {
    std::ranges::sort(numbers);
    return numbers[numbers.size() / 2];
}

/// A folder of its own, removed at the end.
struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("kvscope-peers-{}", ::getpid());
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    naive::Block write(const char* name, unsigned seed, std::int64_t heads) const {
        naive::Block block = randomBlock(seed, heads, kTokens, kWidth, 1, 0.1);
        std::ofstream(path / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(block.numbers.data()), std::ssize(block.numbers) * 4);
        return block;
    }
};

} // namespace

int compareWithPeers(const std::string& python, int threads, const std::string& pattern) {
    const Folder folder;
    const auto exact = makeCpuEngine(threads), fast = makeCpuEngine(threads, {}, Arithmetic::Fast);
    const Rows rows{uploadRows(*exact, folder.write("queries.f32", 81, kQueryHeads)),
                    uploadRows(*exact, folder.write("keys.f32", 82, kKvHeads)),
                    uploadRows(*exact, folder.write("values.f32", 84, kKvHeads))};
    Peer peer(python, folder.path.string(), threads);
    fmt::print(
        "against {}, {} rounds in turn; times the peer's, by CPU time (by the clock)\n{:12} {:>12} {:>18} {:>18}\n",
        peer.name(), kRounds, "score", "peer", "exact", "fast");
    int wrong = 0;
    for (const auto& [name, work] : works()) {
        if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
        std::vector<double> seconds;
        std::array<std::vector<double>, 4> ratios; // exact and fast by CPU time, exact and fast by the clock
        double difference = 0;
        for (int round = -1; round < kRounds; ++round) { // the first warms up
            const Measured theirs = peer.measure(name);
            const std::array ours{timed([&] { return work(*exact, rows); }), timed([&] { return work(*fast, rows); })};
            if (round < 0) continue;
            seconds.push_back(theirs.cpu);
            for (std::size_t i = 0; i < ours.size(); ++i) {
                ratios[i].push_back(theirs.cpu / ours[i].cpu), ratios[2 + i].push_back(theirs.clock / ours[i].clock);
                difference = std::max(difference, std::abs(ours[i].sum - theirs.sum) / std::abs(theirs.sum));
            }
        }
        const bool same = difference < 1e-3; // float32 sums of the peer
        wrong += same ? 0 : 1;
        fmt::print("{:12} {:9.1f} ms {:7.1f}x ({:5.1f}x) {:7.1f}x ({:5.1f}x){}\n", name, median(seconds) * 1e3,
                   median(ratios[0]), median(ratios[2]), median(ratios[1]), median(ratios[3]),
                   same ? "" : fmt::format("  SUMS DIFFER by {:.1e}", difference));
        std::fflush(stdout);
    }
    return wrong;
}

} // namespace kvscope::check
