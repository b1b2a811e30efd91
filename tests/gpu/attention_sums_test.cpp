// Column sums of attention against the CPU engine: windows, full causal attention, sliding windows, keys with gaps,
// groups of any size, chunks with a short end, in exact and in fast arithmetic. Exact sums agree to the one rounding to
// float: only the order of additions differs.
#include "core/engine/engine.h"
#include "gpu/kernels/attention_rows.h"
#include "gpu/kernels/attention_sums.h"
#include "tests/gpu/attention_data.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

/// Two roundings of the same double sum to float may fall on neighbouring numbers.
constexpr double kOneStep = 0x1.0p-23 * 1.001;
/// Float sums of some hundred products around 1, then e^x.
constexpr double kFastError = 2e-5;

struct Case {
    const char* name;
    std::vector<std::int32_t> gqaGroupOf;
    std::int64_t kvHeads, w, m, d;
    ElementType type = ElementType::Float32;
    double softcap = 0;
    std::int64_t slidingWindow = 0;
    std::int64_t positionStep = 1; ///< key r is at position r * step
    std::int64_t firstQuery = -1;  ///< -1: the last w positions
};

std::vector<std::int32_t> groupsOf(std::int64_t kvHeads, std::int64_t members) {
    std::vector<std::int32_t> gqaGroupOf;
    for (std::int64_t h = 0; h < kvHeads * members; ++h) gqaGroupOf.push_back(static_cast<std::int32_t>(h / members));
    return gqaGroupOf;
}

std::vector<Case> cases() {
    return {
        {"one query, one key", {0}, 1, 1, 1, 1},
        {"window over several splits", groupsOf(2, 4), 2, 32, 1100, 16, ElementType::BFloat16},
        {"last query alone", groupsOf(2, 2), 2, 1, 130, 33},
        {"all causal, heads not in order", {0, 1, 2, 2, 1, 0}, 3, 150, 150, 40},
        {"groups of three", groupsOf(1, 3), 1, 70, 129, 8, ElementType::Float16},
        {"groups of different sizes", {0, 1, 0, 0, 1}, 2, 40, 100, 8},
        {"a group of fifteen", groupsOf(1, 15), 1, 9, 70, 5},
        {"a group of sixteen, half", groupsOf(2, 16), 2, 21, 150, 40, ElementType::Float16},
        {"softcap", {0, 0}, 1, 20, 90, 16, ElementType::Float32, 0.8},
        {"sliding window", {0, 0}, 1, 150, 200, 8, ElementType::Float32, 0, 37},
        {"gaps between keys", {0, 0}, 1, 60, 90, 8, ElementType::Float32, 0, 0, 3, 200},
        {"gaps and a sliding window", {0}, 1, 100, 90, 8, ElementType::Float32, 0, 9, 7, 300},
        {"queries before all keys but one", {0}, 1, 70, 66, 8, ElementType::Float32, 0, 0, 50, 0},
        {"so many rows that keys are not shared out", groupsOf(64, 1), 64, 256, 256, 3},
        {"wider than a tensor tile", {0, 0}, 1, 33, 70, 150, ElementType::BFloat16},
        {"many tiles of queries on few keys", groupsOf(1, 8), 1, 300, 90, 8, ElementType::BFloat16, 0, 0, 1, 60},
        {"groups of two of different sizes", {0, 1, 1, 0, 2}, 3, 70, 130, 24, ElementType::Float16},
    };
}

class AttentionSumsTest : public QObject {
    Q_OBJECT

private slots:
    /// Groups that do not divide 64 leave rows of a tile empty: tiles below the diagonal are still taken without a
    /// mask.
    void tilesOfAnyGroupAreWhole() {
        for (std::int32_t members = 1; members <= 9; ++members) {
            const std::vector<std::int32_t> groups{0, members};
            AttentionCall call;
            call.keys.rows = call.queryCount = 1000;
            call.groups = groups.data();
            call.largestGroup = members;
            const std::int64_t low = 5 * kTile / queriesPerTile(call) + 1; // begins behind the keys of tile 3
            QVERIFY2(isWhole(call, 0, low, 3), qPrintable(QString::number(members)));
            QVERIFY(!isWhole(call, 0, 0, 3)); // above the diagonal
            QVERIFY(!isWhole(call, 0, rowTilesOf(call) - 1, 3) || 1000 % queriesPerTile(call) == 0);
            QVERIFY(!isWhole(call, 0, rowTilesOf(call) - 1, keyTilesOf(call) - 1));
        }
    }

    /// Every query and head has one place, and a thread's columns k and k + 4 have the same head.
    void placesOfAnyGroup() {
        for (std::int32_t members = 1; members <= 32; ++members) {
            AttentionCall call;
            call.largestGroup = members;
            const PlaceRule rule(call);
            for (std::int32_t place = 0; place < kTile; ++place) {
                const PlacedQuery at = rule.at(place);
                QVERIFY(at.member < 1 << rule.bits && at.query < queriesPerTile(call));
                QCOMPARE(rule.placeOf(at), place);
                if (rule.bits < 5) QCOMPARE(rule.at(place % 16).member, at.member);
            }
        }
    }

    void runningSumsMergeInAnyOrder() {
        const std::vector<double> logits = {-3, 700, 2, -800, 699};
        OnlineSoftmax<double> whole, first, second, nothing;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            whole.updateMax(logits[i]);
            whole.add(logits[i]);
            OnlineSoftmax<double>& part = i < 2 ? first : second;
            part.updateMax(logits[i]);
            part.add(logits[i]);
        }
        nothing.merge(nothing);
        QCOMPARE(nothing.rowSum, 0.0);
        nothing.merge(second);
        nothing.merge(first);
        QCOMPARE(whole.rowMax, 700.0);
        QVERIFY(std::abs(whole.rowSum - (1 + std::exp(-1.0))) < 1e-15);
        QVERIFY(std::abs(nothing.rowSum - whole.rowSum) < 1e-15);
        QCOMPARE(normaliserOf(OnlineSoftmax<double>{}).inverseSum, 0.0);
        QCOMPARE(normaliserOf(whole).inverseSum, 1 / whole.rowSum);
        whole.add(std::nan(""));
        QVERIFY(std::isnan(normaliserOf(whole).inverseSum));
    }

    /// The spans of tiles never hide a pair that a query sees, and `allSeen` never claims too much.
    void spansAgreeWithPairs() {
        std::mt19937 random(3);
        for (int i = 0; i < 3000; ++i) {
            AttentionMask mask;
            mask.kind = static_cast<MaskKind>(random() % 3);
            mask.slidingWindow = random() % 4 * 5;
            mask.chunk = 1 + random() % 20;
            const std::int64_t q = random() % 40, k = random() % 40;
            const PositionSpan queries{q, q + std::int64_t(random() % 12)}, keys{k, k + std::int64_t(random() % 12)};
            bool any = false, all = true;
            for (std::int64_t a = queries.first; a <= queries.last; ++a)
                for (std::int64_t b = keys.first; b <= keys.last; ++b) {
                    any |= sees(mask, a, b);
                    all &= sees(mask, a, b);
                }
            const PositionSpan seen = keysSeenBy(mask, queries), seeing = queriesThatSee(mask, keys);
            QCOMPARE(seen.first <= keys.last && keys.first <= seen.last, any);
            QCOMPARE(seeing.first <= queries.last && queries.first <= seeing.last, any);
            QCOMPARE(allSeen(mask, queries, keys), all);
        }
    }

    void columnsOfTheCpuEngine_data() { nameCases(); }
    void columnsOfTheCpuEngine() {
        QFETCH(int, index);
        const Case c = cases()[static_cast<std::size_t>(index)];
        const Setting setting(c, *m_engine);
        inEveryOrder([&] {
            const std::vector<float> got = setting.columns(KernelArithmetic::Exact);
            QVERIFY2(largestError(got, setting.expected, 1e-12) <= kOneStep, c.name);
        });
    }

    void fastColumnsAreNear_data() { nameCases(); }
    void fastColumnsAreNear() {
        QFETCH(int, index);
        const Case c = cases()[static_cast<std::size_t>(index)];
        const Setting setting(c, *m_engine);
        const std::vector<float> got = setting.columns(KernelArithmetic::Fast);
        const double error = largestError(got, setting.expected, 1e-3);
        QVERIFY2(error <= kFastError, qPrintable(QString("%1: %2").arg(c.name).arg(error)));
        inEveryOrder([&] { QVERIFY(sameBits(got, setting.columns(KernelArithmetic::Fast))); });
    }

    void chunks_data() {
        QTest::addColumn<int>("chunk");
        QTest::addColumn<int>("zeroKeys");
        QTest::addColumn<int>("uniformRows");
        QTest::addColumn<int>("window");
        QTest::newRow("chunks that fill tiles") << 64 << 0 << 0 << 0;
        QTest::newRow("chunks across tiles, a padded end") << 48 << 14 << 14 << 0;
        QTest::newRow("chunks larger than tiles") << 100 << 3 << 9 << 0;
        QTest::newRow("one chunk") << 500 << 0 << 2 << 0;
        QTest::newRow("a sliding window inside chunks") << 100 << 3 << 9 << 21;
        QTest::newRow("a sliding window across tiles of one chunk") << 500 << 0 << 0 << 70;
        QTest::newRow("chunks of one") << 1 << 0 << 0 << 0;
    }
    void chunks() {
        QFETCH(int, chunk);
        QFETCH(int, zeroKeys);
        QFETCH(int, uniformRows);
        QFETCH(int, window);
        const std::vector<std::int32_t> gqaGroupOf = {0, 1, 1, 0};
        const TestRows queries(31, ElementType::BFloat16, 4, 130, 24), keys(32, ElementType::BFloat16, 2, 130, 24, 8);
        const AttentionRule rule{0.4, 0, window, gqaGroupOf};
        const Tensor q = m_engine->upload({{4, 130, 24}, queries.wide()}),
                     k = m_engine->upload({{2, 130, 24}, keys.wide()});
        const auto expected = m_engine->attentionChunkSums({q, k, rule, chunk, zeroKeys, uniformRows}, {}).data;
        const SlotLists lists(gqaGroupOf, 2);
        AttentionSumsCall call{callOf(queries, keys, lists, rule, 0)};
        call.attention.mask = {MaskKind::Chunks, window, chunk};
        call.zeroKeys = zeroKeys;
        call.uniformRows = uniformRows;
        inEveryOrder([&] { QVERIFY(largestError(sumsOf(call), expected, 1e-12) <= kOneStep); });
        call.attention.arithmetic = KernelArithmetic::Fast;
        QVERIFY(largestError(sumsOf(call), expected, 1e-3) <= kFastError);
    }

    /// Tiles one by one, as a long layer is cut: the same bits as in one launch, the splits of few rows too.
    void slicesDoNotShow() {
        const std::vector<std::int32_t> gqaGroupOf = {0, 1, 1, 2, 0};
        const SlotLists lists(gqaGroupOf, 3);
        for (const int window : {150, 9}) {
            const TestRows queries(51, ElementType::BFloat16, 5, window, 16),
                keys(52, ElementType::BFloat16, 3, 150, 16);
            for (const auto arithmetic : {KernelArithmetic::Exact, KernelArithmetic::Fast}) {
                AttentionSumsCall call{callOf(queries, keys, lists, {0.4, 0, 0, gqaGroupOf}, 150 - window)};
                call.attention.arithmetic = arithmetic;
                QVERIFY(sameBits(sumsOf(call, true), sumsOf(call)));
            }
        }
    }

    /// A NaN in a key reaches the sums of the heads that read it, so that a choice is refused; others stay clean.
    void notANumberIsSeen() {
        TestRows queries(1, ElementType::Float32, 2, 10, 4), keys(2, ElementType::Float32, 2, 70, 4);
        keys.set(0, 5, 1, std::nanf(""));
        const SlotLists lists({0, 1}, 2);
        const AttentionSumsCall call{callOf(queries, keys, lists, {1, 0, 0, {}}, 60)};
        const std::vector<float> sums = sumsOf(call);
        QVERIFY(std::isnan(sums[5]) && std::isnan(sums[0]));
        QVERIFY(std::none_of(sums.begin() + 70, sums.end(), [](float x) { return std::isnan(x); }));
    }

private:
    /// Runs both launches with buffers that end where they should; `inSlices`: tile by tile.
    static std::vector<float> sumsOf(AttentionSumsCall call, bool inSlices = false) {
        const AttentionCall& a = call.attention;
        std::vector<SoftmaxNormaliser> normalisers(static_cast<std::size_t>(a.slotCount * a.queryCount), {NAN, NAN});
        std::vector<OnlineSoftmax<double>> scratch(static_cast<std::size_t>(softmaxScratch(a)), {NAN, NAN});
        std::vector<float> sums(static_cast<std::size_t>(a.queries.heads * a.keys.rows), -1);
        call.normalisers = normalisers.data();
        call.scratch = scratch.data();
        const std::int64_t rows = softmaxTiles(a), columns = columnTiles(a);
        for (std::int64_t tile = 0; tile < (inSlices ? rows : 1); ++tile)
            softmaxNormalisers(call, nullptr, tile, inSlices ? tile + 1 : INT64_MAX);
        for (std::int64_t tile = 0; tile < (inSlices ? columns : 1); ++tile)
            attentionColumnSums(call, sums.data(), nullptr, tile, inSlices ? tile + 1 : INT64_MAX);
        return sums;
    }

    struct Setting {
        AttentionRule rule;
        TestRows queries, keys;
        SlotLists lists;
        std::vector<std::int32_t> positions;
        std::int64_t firstQuery;
        std::vector<float> expected;

        Setting(const Case& c, const Engine& engine)
            : rule{1 / std::sqrt(double(c.d)), c.softcap, c.slidingWindow, c.gqaGroupOf},
              queries(41, c.type, static_cast<std::int64_t>(c.gqaGroupOf.size()), c.w, c.d, 8),
              keys(42, c.type, c.kvHeads, c.m, c.d, 0, 1, 0.2), lists(c.gqaGroupOf, c.kvHeads),
              firstQuery(c.firstQuery >= 0 ? c.firstQuery : c.m - c.w) {
            AttentionInput input{engine.upload({{queries.device().heads, c.w, c.d}, queries.wide()}),
                                 engine.upload({{c.kvHeads, c.m, c.d}, keys.wide()}),
                                 TokenIndex(firstQuery),
                                 {},
                                 rule};
            if (c.positionStep > 1) {
                std::vector<TokenIndex> list;
                for (std::int64_t r = 0; r < c.m; ++r) list.push_back(static_cast<TokenIndex>(r * c.positionStep));
                input.keyPositions.assign(static_cast<std::size_t>(c.kvHeads), list);
                for (std::int64_t kv = 0; kv < c.kvHeads; ++kv)
                    positions.insert(positions.end(), list.begin(), list.end());
            }
            expected = engine.attentionColumnSums(input, {}).data;
        }

        AttentionCall call(KernelArithmetic arithmetic) const {
            AttentionCall call = callOf(queries, keys, lists, rule, firstQuery);
            call.arithmetic = arithmetic;
            call.keyPositions = positions.empty() ? nullptr : positions.data();
            return call;
        }

        std::vector<float> columns(KernelArithmetic arithmetic) const { return sumsOf({call(arithmetic)}); }
    };

    static void nameCases() {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const Case& c : cases()) QTest::newRow(c.name) << index++;
    }

    std::unique_ptr<Engine> m_engine = makeCpuEngine(1);
};

} // namespace

KVSCOPE_TEST(AttentionSumsTest)
#include "attention_sums_test.moc"
