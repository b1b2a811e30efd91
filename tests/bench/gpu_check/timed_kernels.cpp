// The workload of the speed targets, kernel by kernel: random bfloat16 rows, results not looked at (tests do that).
// These are the launches that the engine makes, without its copies and waits: engine-check bench times the engine's
// calls.
#include "tests/bench/gpu_check/timed_kernels.h"

#include "gpu/kernels/attention_sums.h"
#include "gpu/kernels/attention_tile.h"
#include "gpu/kernels/balancing_walk.h"
#include "gpu/kernels/greedy_centers.h"
#include "gpu/kernels/key_similarity.h"
#include "gpu/kernels/leverage.h"
#include "gpu/kernels/weighted_attention.h"
#include "tests/support/kernel_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope::check {

namespace {

using namespace gpu;

constexpr std::int64_t kWindow = 32, kChunk = 256, kBlock = 256, kCenters = 1024, kPixels = 1000;

Rate rateOf(KernelArithmetic arithmetic) { return arithmetic == KernelArithmetic::Fast ? Rate::Tensor : Rate::Double; }

const char* nameOf(KernelArithmetic arithmetic) { return arithmetic == KernelArithmetic::Fast ? "fast" : "exact"; }

constexpr KernelArithmetic kExact = KernelArithmetic::Exact, kFast = KernelArithmetic::Fast;

/// Keeps everything alive that a work reads and writes.
struct Held {
    std::vector<std::shared_ptr<void>> memory;

    void* bytes(const DeviceMemory& device, std::size_t count) {
        memory.push_back(device.allocate(count));
        return memory.back().get();
    }
    template <class T> T* list(const DeviceMemory& device, std::int64_t count) {
        return static_cast<T*>(bytes(device, static_cast<std::size_t>(count) * sizeof(T)));
    }
    template <class T> const T* copy(const DeviceMemory& device, const std::vector<T>& numbers) {
        T* to = list<T>(device, static_cast<std::int64_t>(numbers.size()));
        device.copyIn(to, numbers.data(), numbers.size() * sizeof(T));
        return to;
    }
};

class Workload {
public:
    Workload(const DeviceMemory& memory, const LayerSize& size) : m_memory(memory), m_size(size) {}

    DeviceRows rows(Held& held, unsigned seed, std::int64_t heads, std::int64_t count) const {
        // One head's numbers for all heads: times do not depend on them, and drawing them takes long.
        const TestRows one(seed, ElementType::BFloat16, 1, count, m_size.width);
        std::vector<unsigned char> all;
        for (std::int64_t h = 0; h < heads; ++h) all.insert(all.end(), one.bytes().begin(), one.bytes().end());
        DeviceRows rows = packedRows(held.copy(m_memory, all), ElementType::BFloat16, heads, count, m_size.width);
        return rows;
    }

    TimedKernel norms(SpeedTarget target) const {
        Held held;
        const DeviceRows keys = rows(held, 1, m_size.kvHeads, m_size.tokens);
        float* out = held.list<float>(m_memory, m_size.kvHeads * m_size.tokens);
        return {"key norms",   keyBytes() + 4 * perToken(),
                2 * numbers(), [held, keys, out](Stream stream) { rowNorms(keys, out, stream); },
                Rate::Double,  target};
    }

    TimedKernel keyDiff(SpeedTarget target) const {
        Held held;
        const DeviceRows keys = rows(held, 2, m_size.kvHeads, m_size.tokens);
        float* out = held.list<float>(m_memory, m_size.kvHeads * m_size.tokens);
        float* anchor = held.list<float>(m_memory, m_size.kvHeads * m_size.width);
        void* scratch = held.bytes(m_memory, anchorScratchBytes(keys));
        return {"KeyDiff (anchor and cosines)",
                2 * keyBytes() + 4 * perToken(),
                7 * numbers(),
                [held, keys, out, anchor, scratch](Stream stream) {
                    meanAnchor(keys, true, scratch, anchor, stream);
                    similarity(keys, anchor, Metric::Cosine, out, stream);
                },
                Rate::Double,
                target};
    }

    /// Both passes over the rows; what the host makes of the Gram matrices in between stands still.
    TimedKernel leverage(std::int64_t columns) const {
        Held held;
        LeverageCall call;
        call.rows = rows(held, 3, m_size.kvHeads, m_size.tokens);
        call.sketches = m_size.kvHeads;
        call.columns = columns;
        const auto entries = static_cast<std::size_t>(m_size.kvHeads * columns);
        call.sketch = held.copy(m_memory, std::vector<float>(entries * static_cast<std::size_t>(m_size.width), 0.1F));
        call.directions = held.copy(m_memory, std::vector<double>(entries * static_cast<std::size_t>(columns), 0.1));
        call.grams = held.list<double>(m_memory, m_size.kvHeads * columns * columns);
        call.scores = held.list<float>(m_memory, m_size.kvHeads * m_size.tokens);
        call.scratch = held.list<double>(m_memory, leverageScratch(call));
        LeverageCall first = call;
        first.directions = nullptr;
        const std::int64_t blocks = leverageBlocks(call.rows);
        const auto k = static_cast<double>(columns);
        return {"leverage, sketch " + std::to_string(columns) + ", Gram matrices and scores",
                2 * keyBytes() + 4 * perToken(),
                4 * numbers() * k + perToken() * k * (k + 1),
                [held, first, call, blocks](Stream stream) {
                    sketchedGrams(first, 0, blocks, stream);
                    leverageScores(call, 0, blocks, stream);
                },
                Rate::Double,
                {}};
    }

    TimedKernel centers() const {
        Held held;
        CentersCall call;
        call.keys = rows(held, 4, m_size.kvHeads, m_size.tokens);
        call.count = static_cast<std::int32_t>(std::min(kCenters, m_size.tokens));
        const std::int64_t places = m_size.kvHeads * call.count, all = m_size.kvHeads * m_size.tokens;
        call.first = held.copy(m_memory, std::vector<std::int32_t>(static_cast<std::size_t>(m_size.kvHeads), 0));
        call.order = held.list<std::int32_t>(m_memory, places);
        call.radius = held.list<double>(m_memory, places);
        call.closest = held.list<double>(m_memory, places);
        call.distances = held.list<double>(m_memory, all);
        call.centre = held.list<std::int32_t>(m_memory, all);
        call.found = held.list<std::int32_t>(m_memory, m_size.kvHeads);
        call.scratch = held.bytes(m_memory, centersScratchBytes(call.keys));
        return {"greedy k-center, " + std::to_string(call.count) + " centres",
                keyBytes() * call.count,
                3 * numbers() * call.count,
                [held, call](Stream stream) { greedyCenters(call, stream); },
                Rate::Double,
                {.seconds = 20e-3}};
    }

    /// T = 2 rounds: the second walks through every other row, as many as survive the first.
    TimedKernel walks(KernelArithmetic arithmetic, SpeedTarget target) const {
        Held held;
        WalksCall first = walkInputs(held);
        first.arithmetic = arithmetic;
        listWalks(held, first, 1);
        WalksCall second = first;
        listWalks(held, second, 2);
        return {std::string("BalanceKV, B = 256, T = 2, ") + nameOf(arithmetic),
                1.5 * 2 * keyBytes(),
                1.5 * 2 * 2 * numbers() * kBlock / 2,
                [held, first, second](Stream stream) {
                    balancingWalks(first, stream);
                    balancingWalks(second, stream);
                },
                rateOf(arithmetic),
                target};
    }

    TimedKernel sums(const std::string& name, std::int64_t window, KernelArithmetic arithmetic, bool chunks,
                     SpeedTarget target) const {
        Held held;
        AttentionSumsCall call{.attention = attention(held, m_size.kvHeads, window, arithmetic)};
        if (chunks) call.attention.mask = {MaskKind::Chunks, 0, kChunk};
        call.normalisers = held.list<SoftmaxNormaliser>(m_memory, m_size.queryHeads * window);
        call.scratch = held.list<OnlineSoftmax<double>>(m_memory, softmaxScratch(call.attention) + 1);
        float* out = held.list<float>(m_memory, m_size.queryHeads * m_size.tokens);
        const auto n = static_cast<double>(m_size.tokens), w = static_cast<double>(window);
        const double seen = chunks ? double(kChunk) : window == m_size.tokens ? n / 2 : n;
        return {name + ", " + nameOf(arithmetic),
                keyBytes() + 2 * w * double(m_size.queryHeads * m_size.width),
                2 * w * seen * double(m_size.queryHeads * m_size.width),
                [held, call, out](Stream stream) {
                    softmaxNormalisers(call, stream);
                    attentionColumnSums(call, out, stream);
                },
                rateOf(arithmetic),
                target};
    }

    /// A budget move: the last queries over half of the tokens, with errors against a reference.
    TimedKernel kept(std::int64_t queries, KernelArithmetic arithmetic) const {
        Held held;
        WeightedAttentionCall call;
        call.attention = attention(held, m_size.kvHeads, queries, arithmetic);
        call.values = rows(held, 10, m_size.kvHeads, m_size.tokens);
        call.reference = rows(held, 11, m_size.queryHeads, queries);
        call.groupCount = m_size.kvHeads;
        call.tail = m_size.tokens - queries;
        call.mostListed = call.tail / 2;
        std::vector<std::int32_t> kvHeads, tokens;
        std::vector<std::int64_t> offsets{0};
        for (std::int64_t kv = 0; kv < m_size.kvHeads; ++kv) {
            kvHeads.push_back(static_cast<std::int32_t>(kv));
            for (std::int64_t i = 0; i < call.mostListed; ++i) tokens.push_back(static_cast<std::int32_t>(2 * i));
            offsets.push_back(static_cast<std::int64_t>(tokens.size()));
        }
        call.kvHeads = held.copy(m_memory, kvHeads);
        call.offsets = held.copy(m_memory, offsets);
        call.tokens = held.copy(m_memory, tokens);
        call.numerator = call.denominator = held.copy(m_memory, std::vector<float>(tokens.size(), 1));
        call.outStride = queries;
        const std::int64_t pairs = m_size.queryHeads * queries;
        call.logDenominator = held.list<float>(m_memory, pairs);
        call.logNorm = held.list<float>(m_memory, pairs);
        call.error = held.list<float>(m_memory, pairs);
        call.scratch = held.list<double>(m_memory, weightedScratch(call));
        return {std::string("kept attention and errors, 256 queries, ") + nameOf(arithmetic),
                keyBytes(),
                2 * double(pairs) * double(m_size.tokens) * double(m_size.width),
                [held, call](Stream stream) { weightedAttention(call, stream); },
                rateOf(arithmetic),
                {}};
    }

    TimedKernel map(SpeedTarget target) const {
        Held held;
        AttentionTileCall call;
        call.attention = attention(held, 1, m_size.tokens, kFast);
        const std::int64_t members = m_size.queryHeads / m_size.kvHeads, pixels = std::min(kPixels, m_size.tokens);
        std::vector<std::int32_t> pixelRows;
        for (std::int64_t r = 0; r < m_size.tokens; ++r)
            pixelRows.push_back(static_cast<std::int32_t>(((r + 1) * pixels - 1) / m_size.tokens));
        call.pixelRows = held.copy(m_memory, pixelRows);
        call.normalisers =
            held.copy(m_memory, std::vector<SoftmaxNormaliser>(static_cast<std::size_t>(members * m_size.tokens),
                                                               {0, 1.0 / double(m_size.tokens)}));
        call.keyEnd = m_size.tokens;
        call.height = call.width = pixels;
        call.cells = held.list<float>(m_memory, pixels * pixels);
        call.columnSums = held.list<float>(m_memory, pixels);
        call.scratch = held.bytes(m_memory, attentionTileScratchBytes(call));
        const auto n = static_cast<double>(m_size.tokens);
        return {"attention map 1000 x 1000 of one KV head, fast",
                2 * 5 * n * double(m_size.width) + 4e6,
                n * n * double(members * m_size.width),
                [held, call](Stream stream) { attentionTile(call, stream); },
                Rate::Tensor,
                target};
    }

private:
    /// Keys and values of the layer.
    WalksCall walkInputs(Held& held) const {
        WalksCall call;
        call.keys = rows(held, 5, m_size.kvHeads, m_size.tokens);
        call.values = rows(held, 6, m_size.kvHeads, m_size.tokens);
        return call;
    }

    /// Walks through blocks of every `step`-th row, and room for their results.
    void listWalks(Held& held, WalksCall& call, std::int64_t step) const {
        std::vector<WalkRule> rules;
        std::vector<std::int32_t> places;
        std::vector<std::int64_t> offsets{0};
        std::vector<double> uniforms;
        std::mt19937 random(7);
        for (std::int64_t head = 0; head < m_size.kvHeads; ++head)
            for (std::int64_t begin = 0; begin + kBlock * step <= m_size.tokens; begin += kBlock * step) {
                rules.push_back({.head = head,
                                 .meanOver = kBlock,
                                 .gamma = 4,
                                 .logScale = 0.1 / std::sqrt(128.0),
                                 .valueConstant = 0.025,
                                 .firstIsPlus = 1});
                for (std::int64_t i = 0; i < kBlock; ++i) {
                    places.push_back(static_cast<std::int32_t>(begin + i * step));
                    uniforms.push_back(std::uniform_real_distribution<double>()(random));
                }
                offsets.push_back(static_cast<std::int64_t>(places.size()));
            }
        call.walks = static_cast<std::int64_t>(rules.size());
        call.entries = offsets.back();
        call.offsets = held.copy(m_memory, offsets);
        call.rules = held.copy(m_memory, rules);
        call.rows = held.copy(m_memory, places);
        call.uniforms = held.copy(m_memory, uniforms);
        call.signs = held.list<std::int8_t>(m_memory, call.entries);
        call.products = held.list<double>(m_memory, call.entries);
        call.diagonal = held.list<double>(m_memory, call.entries);
        call.steps = held.list<std::int64_t>(m_memory, call.walks);
        call.endings = held.list<std::int32_t>(m_memory, call.walks);
        call.margins = held.list<double>(m_memory, call.walks);
        call.scratch = held.list<double>(m_memory, call.entries);
    }

    /// The last `window` queries of the first `kvHeads` KV heads.
    AttentionCall attention(Held& held, std::int64_t kvHeads, std::int64_t window, KernelArithmetic arithmetic) const {
        const std::int64_t members = m_size.queryHeads / m_size.kvHeads;
        std::vector<std::int32_t> heads(static_cast<std::size_t>(kvHeads * members)), groups;
        std::iota(heads.begin(), heads.end(), 0);
        for (std::int64_t kv = 0; kv <= kvHeads; ++kv) groups.push_back(static_cast<std::int32_t>(kv * members));
        AttentionCall call;
        call.queries = rows(held, 8, kvHeads * members, window);
        call.keys = rows(held, 9, kvHeads, m_size.tokens);
        call.heads = held.copy(m_memory, heads);
        call.groups = held.copy(m_memory, groups);
        call.slotCount = kvHeads * members;
        call.largestGroup = static_cast<std::int32_t>(members);
        call.queryCount = window;
        call.firstQuery = m_size.tokens - window;
        call.scaling = 1 / std::sqrt(double(m_size.width));
        call.arithmetic = arithmetic;
        return call;
    }

    double perToken() const { return double(m_size.kvHeads * m_size.tokens); }
    double numbers() const { return perToken() * double(m_size.width); }
    double keyBytes() const { return 2 * numbers(); }

    const DeviceMemory& m_memory;
    LayerSize m_size;
};

} // namespace

std::vector<std::function<TimedKernel()>> timedKernels(const DeviceMemory& memory, const LayerSize& size) {
    const auto work = std::make_shared<Workload>(memory, size);
    const std::int64_t n = size.tokens, w = std::min(kWindow, n);
    return {
        [work] { return work->norms({}); },
        [work] { return work->keyDiff({.seconds = 25e-6}); },
        [work, w] { return work->sums("SnapKV, 32 queries", w, kExact, false, {.seconds = 0.5e-3}); },
        [work, w] { return work->sums("SnapKV, 32 queries", w, kFast, false, {.seconds = 0.1e-3}); },
        [work, n] { return work->sums("chunks of 256", n, kExact, true, {.seconds = 3e-3}); },
        [work, n] { return work->sums("chunks of 256", n, kFast, true, {.seconds = 0.3e-3}); },
        [work, n] { return work->sums("H2O, all causal queries", n, kFast, false, {.flashTimes = 1.5}); },
        [work] { return work->walks(kExact, {.seconds = 3e-3}); },
        [work] { return work->walks(kFast, {.seconds = 0.4e-3}); },
        [work] { return work->leverage(64); },
        [work] { return work->centers(); },
        [work, n] { return work->kept(std::min<std::int64_t>(256, n / 2), kExact); },
        [work, n] { return work->kept(std::min<std::int64_t>(256, n / 2), kFast); },
    };
}

std::vector<std::function<TimedKernel()>> longKernels(const DeviceMemory& memory, const LayerSize& size) {
    const auto work = std::make_shared<Workload>(memory, size);
    return {
        [work] { return work->norms({.copies = 1.25}); },
        [work] { return work->keyDiff({.copies = 1.25}); },
        [work] { return work->map({.seconds = 16e-3}); },
    };
}

} // namespace kvscope::check
