// The map at screen resolution against the CPU engine's: every mask, head rule and value, rectangles that cut tiles,
// pixels of one key and of hundreds, sampled rows, and rows of pixels that nothing is seen from.
#include "core/engine/engine.h"
#include "gpu/kernels/attention_sums.h"
#include "gpu/kernels/attention_tile.h"
#include "gpu/kernels/map_steps.h"
#include "tests/gpu/attention_data.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <numeric>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

constexpr double kOneStep = 0x1.0p-23 * 1.001; // two roundings of one double sum
constexpr double kFastError = 2e-5;

struct Case {
    const char* name;
    std::int64_t heads, n, d;
    std::int64_t rowBegin, rowEnd, keyBegin, keyEnd, height, width;
    MapMask mask = MapMask::Causal;
    GroupRule combine = GroupRule::Mean;
    MapValue value = MapValue::Weight;
    std::int64_t rowsPerPixel = 0, window = 0, chunk = 48;
    ElementType type = ElementType::Float32;
};

std::vector<Case> cases() {
    return {
        {"whole causal map", 1, 150, 8, 0, 150, 0, 150, 30, 20},
        {"a pixel per cell", 4, 70, 8, 0, 70, 0, 70, 70, 70, MapMask::Causal, GroupRule::Sum},
        {"pixels of a tile and more", 1, 300, 4, 10, 290, 3, 297, 3, 2},
        {"a corner, largest head", 3, 200, 16, 150, 190, 70, 181, 11, 40, MapMask::Causal, GroupRule::Max},
        {"rows above the rectangle see nothing", 2, 140, 8, 0, 140, 100, 140, 14, 4},
        {"sliding window", 2, 200, 8, 20, 200, 0, 160, 18, 9, MapMask::Causal, GroupRule::Mean, MapValue::Weight, 0,
         25},
        {"everything seen", 2, 100, 8, 0, 100, 0, 100, 10, 25, MapMask::All, GroupRule::Mean, MapValue::Weight},
        {"chunks", 2, 130, 8, 0, 130, 0, 130, 13, 13, MapMask::Chunks, GroupRule::Mean, MapValue::Weight},
        {"sliding window inside chunks", 2, 130, 8, 0, 130, 10, 110, 13, 10, MapMask::Chunks, GroupRule::Mean,
         MapValue::Weight, 0, 9},
        {"logits", 2, 90, 8, 5, 90, 0, 90, 17, 9, MapMask::Causal, GroupRule::Mean, MapValue::Logit},
        {"sampled rows", 4, 200, 8, 0, 200, 0, 200, 10, 10, MapMask::Causal, GroupRule::Mean, MapValue::Weight, 3},
        {"sampled rows of chunks", 4, 200, 8, 0, 200, 0, 200, 10, 10, MapMask::Chunks, GroupRule::Mean,
         MapValue::Weight, 2},
        {"thirty-two heads, bfloat16", 32, 80, 24, 0, 80, 0, 80, 8, 8, MapMask::Causal, GroupRule::Mean,
         MapValue::Weight, 0, 0, 48, ElementType::BFloat16},
        {"largest head of chunks, half", 3, 150, 70, 0, 150, 0, 150, 15, 10, MapMask::Chunks, GroupRule::Max,
         MapValue::Weight, 0, 0, 48, ElementType::Float16},
        {"logits, bfloat16", 2, 90, 40, 5, 90, 0, 90, 17, 9, MapMask::Causal, GroupRule::Mean, MapValue::Logit, 0, 0,
         48, ElementType::BFloat16},
    };
}

/// Rows that the CPU engine looks at for the pixels, and their pixel rows.
void listRows(const Case& c, std::vector<std::int32_t>& rows, std::vector<std::int32_t>& pixels) {
    const std::int64_t length = c.rowEnd - c.rowBegin;
    for (std::int64_t y = 0; y < c.height; ++y) {
        const std::int64_t begin = pieceBegin(length, c.height, y), count = pieceBegin(length, c.height, y + 1) - begin;
        const std::int64_t taken = c.rowsPerPixel > 0 ? std::min(c.rowsPerPixel, count) : count;
        for (std::int64_t i = 0; i < taken; ++i) {
            rows.push_back(static_cast<std::int32_t>(c.rowBegin + begin + pieceBegin(count, taken, i)));
            pixels.push_back(static_cast<std::int32_t>(y));
        }
    }
}

struct Map {
    std::vector<float> cells, columnSums;
};

class AttentionTileTest : public QObject {
    Q_OBJECT

private slots:
    void pixelBitsOrderNumbers() {
        const std::vector<float> ascending = {-INFINITY, -2, -1e-40F, 0, 1e-40F, 3, INFINITY};
        for (std::size_t i = 0; i < ascending.size(); ++i) {
            QCOMPARE(valueOfPixel(pixelBits(ascending[i])), ascending[i]);
            QVERIFY(pixelBits(ascending[i]) > (i > 0 ? pixelBits(ascending[i - 1]) : 0U));
        }
        QVERIFY(std::isnan(valueOfPixel(0)) && std::isnan(valueOfPixel(pixelBits(NAN))));
    }

    void piecesCoverEveryKeyOnce() {
        for (std::int64_t length = 1; length < 40; ++length)
            for (std::int64_t pieces = 1; pieces <= length; ++pieces)
                for (std::int64_t i = 0; i < length; ++i) {
                    const std::int64_t piece = pieceOf(length, pieces, i);
                    QVERIFY(pieceBegin(length, pieces, piece) <= i && i < pieceBegin(length, pieces, piece + 1));
                }
    }

    void mapOfTheCpuEngine_data() {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const Case& c : cases()) QTest::newRow(c.name) << index++;
    }

    void mapOfTheCpuEngine() {
        QFETCH(int, index);
        const Case c = cases()[static_cast<std::size_t>(index)];
        const TestRows queries(51, c.type, c.heads, c.n, c.d), keys(52, c.type, 1, c.n, c.d, 0, 1, 0.2);
        AttentionMapInput input;
        input.queries = m_engine->upload({{c.heads, c.n, c.d}, queries.wide()});
        input.keys = m_engine->upload({{1, c.n, c.d}, keys.wide()});
        input.rule = {1 / std::sqrt(double(c.d)), 0, c.window,
                      std::vector<std::int32_t>(static_cast<std::size_t>(c.heads), 0)};
        input.queryHeads.resize(static_cast<std::size_t>(c.heads));
        std::iota(input.queryHeads.begin(), input.queryHeads.end(), 0);
        input.combine = c.combine;
        input.mask = c.mask;
        input.chunk = c.chunk;
        input.value = c.value;
        input.rowBegin = c.rowBegin, input.rowEnd = c.rowEnd, input.keyBegin = c.keyBegin, input.keyEnd = c.keyEnd;
        input.height = c.height, input.width = c.width, input.rowsPerPixel = c.rowsPerPixel;
        const AttentionMap expected = m_engine->attentionMap(input, {});
        inEveryOrder(
            [&] { compare(mapOf(c, input.rule, queries, keys, KernelArithmetic::Exact), expected, kOneStep, 1e-12); });
        compare(mapOf(c, input.rule, queries, keys, KernelArithmetic::Fast), expected, kFastError, 1e-2);
    }

private:
    static Map mapOf(const Case& c, const AttentionRule& rule, const TestRows& queries, const TestRows& keys,
                     KernelArithmetic arithmetic) {
        const SlotLists lists(rule.gqaGroupOf, 1);
        std::vector<std::int32_t> rows, pixels;
        listRows(c, rows, pixels);
        AttentionTileCall call;
        call.attention = callOf(queries, keys, lists, rule, 0);
        call.attention.queryRows = rows.data();
        call.attention.queryCount = static_cast<std::int64_t>(rows.size());
        call.attention.mask = {static_cast<MaskKind>(c.mask), c.window, c.chunk};
        call.attention.arithmetic = arithmetic;
        call.combine = static_cast<HeadRule>(c.combine);
        call.pixelRows = pixels.data();
        call.keyBegin = c.keyBegin, call.keyEnd = c.keyEnd, call.height = c.height, call.width = c.width;
        std::vector<SoftmaxNormaliser> normalisers(
            static_cast<std::size_t>(call.attention.slotCount * call.attention.queryCount));
        std::vector<OnlineSoftmax<double>> sums(static_cast<std::size_t>(softmaxScratch(call.attention)));
        softmaxNormalisers({call.attention, normalisers.data(), 0, 0, sums.data()}, nullptr);
        call.normalisers = c.value == MapValue::Weight ? normalisers.data() : nullptr;
        Map map{std::vector<float>(static_cast<std::size_t>(c.height * c.width), -1),
                std::vector<float>(static_cast<std::size_t>(c.width), -1)};
        std::vector<double> scratch((attentionTileScratchBytes(call) + 7) / 8, NAN);
        call.cells = map.cells.data(), call.columnSums = map.columnSums.data(), call.scratch = scratch.data();
        attentionTile(call, nullptr);
        return map;
    }

    /// NaN pixels must be the same ones; the others within `bound`.
    static void compare(const Map& got, const AttentionMap& expected, double bound, double share) {
        std::vector<float> a, b;
        for (std::size_t i = 0; i < got.cells.size(); ++i) {
            QCOMPARE(std::isnan(got.cells[i]), std::isnan(expected.cells.data[i]));
            a.push_back(std::isnan(got.cells[i]) ? 0 : got.cells[i]);
            b.push_back(std::isnan(got.cells[i]) ? 0 : expected.cells.data[i]);
        }
        const double cells = largestError(a, b, share),
                     sums = largestError(got.columnSums, expected.columnSums.data, share);
        QVERIFY2(cells <= bound && sums <= bound, qPrintable(QString("cells %1, sums %2").arg(cells).arg(sums)));
    }

    static_assert(int(MaskKind::All) == int(MapMask::All) && int(MaskKind::Chunks) == int(MapMask::Chunks));
    static_assert(int(HeadRule::Sum) == int(GroupRule::Sum) && int(HeadRule::Max) == int(GroupRule::Max));

    std::unique_ptr<Engine> m_engine = makeCpuEngine(1);
};

} // namespace

KVSCOPE_TEST(AttentionTileTest)
#include "attention_tile_test.moc"
