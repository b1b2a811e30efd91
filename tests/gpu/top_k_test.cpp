// The radix selection against the CPU engine's choice: the same rows and margins with ties, signed zeros, infinities,
// protected rows and lengths around the block of threads.
#include "core/engine/engine.h"
#include "gpu/kernels/rank_steps.h"
#include "gpu/kernels/top_k.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <limits>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Result {
    std::vector<TopKHead> heads;
    std::vector<std::int64_t> nanRows;
};

Result onDevice(const std::vector<float>& scores, std::int64_t heads, const std::vector<std::int64_t>& counts,
                std::int64_t first, std::int64_t last) {
    const auto m = static_cast<std::int64_t>(scores.size()) / heads;
    const std::int64_t most = *std::max_element(counts.begin(), counts.end());
    std::vector<std::int32_t> kept(static_cast<std::size_t>(heads * most), -5);
    std::vector<float> margins(static_cast<std::size_t>(heads), -5);
    Result result{{}, std::vector<std::int64_t>(static_cast<std::size_t>(heads), -5)};
    topK({.scores = scores.data(),
          .heads = heads,
          .rows = m,
          .counts = counts.data(),
          .protectFirst = first,
          .protectLast = last,
          .kept = kept.data(),
          .keptStride = most,
          .margins = margins.data(),
          .nanRows = result.nanRows.data()},
         nullptr);
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto from = kept.begin() + h * most;
        const auto head = static_cast<std::size_t>(h);
        result.heads.push_back({{from, from + counts[head]}, margins[head]});
    }
    return result;
}

class TopKTest : public QObject {
    Q_OBJECT

private slots:
    void ranksOrderScores() {
        const std::vector<float> ascending = {-kInfinity, -3e38F, -1.5F, -1e-45F,    0,
                                              1e-45F,     2e-38F, 1,     1.0000001F, kInfinity};
        for (std::size_t i = 0; i < ascending.size(); ++i) {
            QCOMPARE(scoreOfRank(rankBits(ascending[i])), ascending[i]);
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY(rankBits(ascending[i]) < rankBits(ascending[j]));
        }
        QCOMPARE(rankBits(-0.0F), rankBits(0.0F));
        QCOMPARE(marginOf(rankBits(kInfinity), rankBits(kInfinity)), 0.0F);
        QCOMPARE(marginOf(rankBits(3), rankBits(1)), 2.0F);
    }

    void shareOutTheCount() {
        const auto shares = [](std::int64_t n, std::int64_t count, std::int64_t first, std::int64_t last) {
            const KeptShares s = keptShares(n, count, first, last);
            return std::vector<std::int64_t>{s.first, s.last, s.free};
        };
        QCOMPARE(shares(10, 6, 2, 3), (std::vector<std::int64_t>{2, 3, 1}));
        QCOMPARE(shares(10, 4, 2, 3), (std::vector<std::int64_t>{2, 2, 0}));
        QCOMPARE(shares(10, 1, 2, 3), (std::vector<std::int64_t>{1, 0, 0}));
        QCOMPARE(shares(3, 3, 2, 3), (std::vector<std::int64_t>{2, 1, 0}));
    }

    void choosesWhatTheCpuEngineChooses() {
        for (unsigned seed = 1; seed <= 30; ++seed) {
            std::mt19937 random(seed);
            const std::int64_t heads = 1 + seed % 3;
            const std::int64_t m = std::vector<std::int64_t>{1, 31, 1023, 1024, 1025, 3000}[seed % 6];
            const auto levels = std::vector<std::uint32_t>{2, 40, 1U << 30}[seed / 2 % 3]; // few levels: many ties
            std::vector<float> scores;
            for (std::int64_t i = 0; i < heads * m; ++i)
                scores.push_back((static_cast<float>(random() % levels) - static_cast<float>(levels / 2)) * 0.25F);
            for (int i = 0; i < 12; ++i) {
                scores[random() % scores.size()] = -0.0F;
                scores[random() % scores.size()] = i % 2 ? kInfinity : -kInfinity;
            }
            std::vector<std::int64_t> counts;
            for (std::int64_t h = 0; h < heads; ++h)
                counts.push_back(seed < 8 ? (seed % 2 ? 0 : m) : random() % static_cast<std::uint32_t>(m + 1));
            const std::int64_t first = random() % 3 * 4, last = random() % 3 * 33;
            compare(scores, heads, counts, first, last, seed);
        }
    }

    void namesTheFirstNaN() {
        std::vector<float> scores(5000, 1.0F);
        scores[4321] = scores[4400] = std::numeric_limits<float>::quiet_NaN();
        const Result result = onDevice(scores, 2, {3, 3}, 0, 0);
        QCOMPARE(result.nanRows, (std::vector<std::int64_t>{-1, 1821}));
        QCOMPARE(result.heads[0].kept, (std::vector<TokenIndex>{0, 1, 2}));
        QCOMPARE(result.heads[0].margin, 0.0F);
    }

private:
    void compare(const std::vector<float>& scores, std::int64_t heads, const std::vector<std::int64_t>& counts,
                 std::int64_t first, std::int64_t last, unsigned seed) {
        const auto m = static_cast<std::int64_t>(scores.size()) / heads;
        const auto expected = m_engine->topK({m_engine->upload({{heads, m}, scores}), counts, first, last});
        inEveryOrder([&] {
            const Result got = onDevice(scores, heads, counts, first, last);
            for (std::size_t h = 0; h < expected.size(); ++h) {
                QVERIFY2(got.heads[h].kept == expected[h].kept, qPrintable(QString("seed %1").arg(seed)));
                QCOMPARE(got.heads[h].margin, expected[h].margin);
                QCOMPARE(got.nanRows[h], std::int64_t{-1});
            }
        });
    }

    std::unique_ptr<Engine> m_engine = makeCpuEngine(1);
};

} // namespace

KVSCOPE_TEST(TopKTest)
#include "top_k_test.moc"
