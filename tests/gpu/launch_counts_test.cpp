// What a user's action costs in launches, copies and waits, as a golden table: copies of pageable memory wait, so the
// sum of the last three is the number of synchronisations. And the stop word: set, it ends every long kernel at once.
#include "gpu/kernels/attention_sums.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"
#include "tests/gpu/attention_data.h"
#include "tests/support/kernel_engine.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <numeric>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

class CountingMemory final : public DeviceMemory {
public:
    std::shared_ptr<void> allocate(std::size_t bytes) const override { return m_host.allocate(bytes); }
    std::shared_ptr<void> allocateShared(std::size_t bytes) const override { return m_host.allocateShared(bytes); }
    void copyIn(void* to, const void* from, std::size_t bytes) const override {
        ++copiesIn;
        m_host.copyIn(to, from, bytes);
    }
    void copyOut(void* to, const void* from, std::size_t bytes) const override {
        ++copiesOut;
        m_host.copyOut(to, from, bytes);
    }
    void finish() const override { ++waits; }
    bool isIdle() const override { return --busyQuestions < 0; }
    Stream stream() const override { return nullptr; }

    mutable int copiesIn = 0, copiesOut = 0, waits = 0, busyQuestions = 0;

private:
    HostMemory m_host;
};

constexpr std::int64_t kTokens = 600, kQueries = 32, kWidth = 16;
const std::vector<std::int32_t> kGroups = {0, 0, 1, 1};

class LaunchCountsTest : public QObject {
    Q_OBJECT

private slots:
    void actions_data() {
        QTest::addColumn<int>("action");
        QTest::addColumn<int>("launches");
        QTest::addColumn<int>("copiesIn");
        QTest::addColumn<int>("copiesOut");
        QTest::newRow("budget move: kept attention and errors") << 0 << 2 << 1 << 1;
        QTest::newRow("exact attention, once per cut") << 1 << 2 << 1 << 1;
        QTest::newRow("key norms") << 2 << 1 << 0 << 1;
        QTest::newRow("KeyDiff: anchor and cosines") << 3 << 3 << 1 << 2;
        QTest::newRow("SnapKV: the window's attention") << 4 << 3 << 1 << 1;
        QTest::newRow("Compactor: attention in chunks") << 5 << 3 << 1 << 1;
        QTest::newRow("BalanceKV: one round") << 6 << 1 << 1 << 1;
        QTest::newRow("k-center: 20 centres") << 7 << 21 << 1 << 1;
        QTest::newRow("map: first picture") << 8 << 5 << 2 << 2;
        QTest::newRow("map: pan over known rows") << 9 << 3 << 1 << 1;
        QTest::newRow("Compactor: sketched leverage") << 10 << 5 << 2 << 2;
        QTest::newRow("Compactor: sketched, centred leverage") << 11 << 8 << 2 << 2;
    }

    void actions() {
        QFETCH(int, action);
        QFETCH(int, launches);
        QFETCH(int, copiesIn);
        QFETCH(int, copiesOut);
        const CountingMemory memory;
        const std::int64_t before = emulation::launches();
        run(action, memory);
        QCOMPARE(emulation::launches() - before, std::int64_t{launches});
        QCOMPARE(memory.copiesIn, copiesIn);
        QCOMPARE(memory.copiesOut, copiesOut);
        QCOMPARE(memory.waits, 0);
    }

    /// With the word set, blocks leave before they write anything; the first one says which piece of work began. It
    /// looks at the host's word, the others at what it has seen.
    void aSetStopWordEndsAKernel() {
        const SlotLists lists(kGroups, 2);
        AttentionSumsCall call{callOf(m_queries, m_keys, lists, m_rule, kTokens - kQueries)};
        std::vector<std::int32_t> words{1, 0};
        unsigned seen = 0;
        call.attention.stop = {words.data(), &seen, 7};
        std::vector<float> sums(static_cast<std::size_t>(4 * kTokens), -1);
        std::vector<SoftmaxNormaliser> normalisers(4 * kQueries, {0, 0});
        call.normalisers = normalisers.data();
        const auto areUntouched = [&] { return std::ranges::all_of(sums, [](float x) { return x == -1; }); };
        attentionColumnSums(call, sums.data(), nullptr);
        QVERIFY(areUntouched());
        QCOMPARE(words[1], 7);
        QCOMPARE(seen, 1U);
        words[0] = 0;
        inEveryOrder([&] { attentionColumnSums(call, sums.data(), nullptr); });
        QVERIFY(areUntouched());
        seen = 0;
        attentionColumnSums(call, sums.data(), nullptr);
        QVERIFY(std::ranges::none_of(sums, [](float x) { return x == -1; }));
    }

    /// Long work: pieces of at most 1e11 operations, progress while the device is busy, a stop that sets the word and
    /// waits until nothing uses the call's memory.
    void longWorkReportsAndStops() {
        std::stop_source stop;
        std::vector<double> reports;
        const Checkpoint checkpoint(stop.get_token(), [&](double done, double) {
            reports.push_back(done);
            if (reports.size() == 3) stop.request_stop();
        });
        CountingMemory memory;
        memory.busyQuestions = 100;
        std::int32_t* words = nullptr;
        std::vector<std::int64_t> pieces;
        const auto waitUntilStopped = [&] {
            LongWork work(memory, checkpoint, 4e11);
            work.each(4, 1e11, [&](std::int64_t begin, std::int64_t end, const StopWord& word) {
                words = word.words;
                pieces.push_back(end - begin);
                if (begin == 1) words[1] = word.piece; // as its first block would
            });
            work.wait();
        };
        QVERIFY_THROWS_EXCEPTION(Cancelled, waitUntilStopped());
        QCOMPARE(pieces, (std::vector<std::int64_t>{1, 1, 1, 1}));
        QCOMPARE(reports, (std::vector<double>{0, 1e11, 1e11}));
        QCOMPARE(memory.waits, 1);
    }

private:
    void run(int action, const CountingMemory& memory) const {
        const DeviceRows q = m_queries.device(), k = m_keys.device(), v = m_values.device();
        const auto empty = [&](std::int64_t heads, std::int64_t rows) {
            return Tensor(Shape{heads, rows, kWidth}, nullptr); // primitives take all but shapes from elsewhere
        };
        const Arithmetic exact = Arithmetic::Exact;
        WeightedAttentionInput attention{empty(4, kQueries),
                                         empty(2, kTokens),
                                         empty(2, kTokens),
                                         kTokens - kQueries,
                                         kTokens - kQueries,
                                         m_rule,
                                         {}};
        std::vector<WeightedSet> kept(2);
        for (WeightedSet& set : kept) set.numerator = {1, 5, 9};
        AttentionMapInput map;
        map.queries = empty(4, kQueries);
        map.keys = empty(2, kTokens);
        map.firstQuery = kTokens - kQueries;
        map.rule = m_rule;
        map.queryHeads = {0, 1};
        map.rowBegin = map.firstQuery, map.rowEnd = map.keyEnd = kTokens;
        map.height = map.width = 8;
        BalancingWalks walks{empty(2, kTokens), {}, {}, std::vector<BalancingWalk>(2)};
        for (BalancingWalk& walk : walks.walks) {
            walk.rows.resize(40);
            std::iota(walk.rows.begin(), walk.rows.end(), 0);
            walk.uniforms.assign(40, 0.5);
        }
        CentersRequest centers;
        centers.count = 20;
        centers.first = {0, 0};
        switch (action) {
        case 0:
            attention.kept = kept;
            gpu::weightedAttention(memory, q, k, v, m_reference.device(), attention, exact, {});
            return;
        case 1: gpu::weightedAttention(memory, q, k, v, {}, attention, exact, {}); return;
        case 2: gpu::rowNorms(memory, k); return;
        case 3:
            gpu::similarity(memory, k, gpu::meanAnchor(memory, k, AnchorKind::NormalisedMean),
                            SimilarityMetric::Cosine);
            return;
        case 4:
            gpu::attentionColumnSums(memory, q, k, {{}, {}, TokenIndex(kTokens - kQueries), {}, m_rule}, exact, {});
            return;
        case 5: gpu::attentionChunkSums(memory, m_allQueries.device(), k, {{}, {}, m_rule, 100}, exact, {}); return;
        case 6: gpu::balancingWalks(memory, k, v, walks, exact, {}); return;
        case 7: gpu::greedyCenters(memory, k, centers, {}); return;
        case 10:
        case 11: {
            LeverageRequest leverage{
                {}, {{2, kWidth, 4}, std::vector<float>(2 * kWidth * 4)}, LeverageRoute::Cholesky, action == 11};
            for (std::size_t i = 0; i < leverage.sketch.data.size(); ++i) leverage.sketch.data[i] = float(i % 7);
            gpu::leverage(memory, k, leverage, whiteningsOf, {});
            return;
        }
        case 9: map.rowLogSumExps = {{2, kQueries}, std::vector<float>(2 * kQueries, 3)}; [[fallthrough]];
        default: gpu::attentionMap(memory, q, k, map, exact, {});
        }
    }

    AttentionRule m_rule{0.25, 0, 0, kGroups};
    TestRows m_queries{1, ElementType::BFloat16, 4, kQueries, kWidth},
        m_keys{2, ElementType::BFloat16, 2, kTokens, kWidth}, m_values{3, ElementType::BFloat16, 2, kTokens, kWidth},
        m_reference{4, ElementType::Float32, 4, kQueries, kWidth},
        m_allQueries{5, ElementType::BFloat16, 4, kTokens, kWidth};
};

} // namespace

KVSCOPE_TEST(LaunchCountsTest)
#include "launch_counts_test.moc"
