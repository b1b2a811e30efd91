// Arithmetic on score tables against its oracles, and what must hold for any scores: ties, infinities, NaN, z-scores.
#include "core/base/error.h"
#include "core/engine/score_arithmetic.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

using namespace kvscope;
using namespace kvscope::check;

namespace {

const float kNaN = std::nanf("");

TopKHead topOf(const std::vector<float>& scores, std::int64_t count, std::int64_t first = 0, std::int64_t last = 0) {
    return topK({Shape{1, std::ssize(scores)}, scores}, std::vector<std::int64_t>{count}, first, last).front();
}

} // namespace

class ScoreArithmeticTest : public QObject {
    Q_OBJECT

private slots:
    void poolsLikeTheOracle() {
        for (const auto& [kind, width, n] : {std::tuple{PoolKind::Average, 7, 100},
                                             {PoolKind::Max, 5, 33},
                                             {PoolKind::Average, 9, 3},
                                             {PoolKind::Max, 1, 1}}) {
            const naive::Block scores = randomBlock(41, 3, 1, n);
            const HostTensor got = pool(tableOf(scores), kind, width);
            QVERIFY(errorOf(got.data, naive::pool(scores, kind, width)) <= kOneRounding);
        }
    }

    void reducesGroupsLikeTheOracle() {
        const naive::Block scores = randomBlock(42, 6, 1, 77);
        const std::vector<std::int32_t> gqaGroupOf = {2, 0, 1, 0, 2, 1};
        for (const GroupRule rule : {GroupRule::Mean, GroupRule::Sum, GroupRule::Max}) {
            const HostTensor got = reduceGroups(tableOf(scores), gqaGroupOf, 3, rule);
            QVERIFY(got.shape == (Shape{3, 77}));
            QVERIFY(errorOf(got.data, naive::reduceGroups(scores, gqaGroupOf, 3, rule)) <= kOneRounding);
        }
    }

    void computesEntryByEntry() {
        const HostTensor a = tableOf(randomBlock(45, 3, 1, 77)), b = tableOf(randomBlock(46, 3, 1, 77));
        naive::Numbers scaled, blended, multiplied;
        for (std::size_t i = 0; i < a.data.size(); ++i) {
            const double x = double{a.data[i]}, y = double{b.data[i]};
            scaled.push_back(-1 / 3.0 * x);
            blended.push_back(x + 0.3 * y);
            multiplied.push_back(x * y);
        }
        QVERIFY(errorOf(scale(a, -1 / 3.0).data, scaled) <= kOneRounding);
        QVERIFY(!std::signbit(scale({{1, 1}, {0.0F}}, -1).data[0])); // a score of 0 is written as 0
        QVERIFY(errorOf(blend(a, b, 0.3).data, blended) <= kOneRounding);
        QVERIFY(errorOf(multiply(a, b).data, multiplied) <= kOneRounding);
    }

    void standardisesLikeTheOracle() {
        const naive::Block scores = randomBlock(91, 3, 1, 130, 1, 4);
        const auto isRight = [](const naive::Block& x, const Standardisation& how) {
            const double error = errorOf(standardise(tableOf(x), how).data, naive::standardise(x, how));
            return error <= kOneRounding * 4; // the difference to the mean cancels
        };
        QVERIFY(isRight(scores, {}));
        QVERIFY(isRight(scores, {true, 0, true, 1e-6}));
        QVERIFY(isRight(scores, {true, 43, false, 0}));
        QVERIFY(isRight(scores, {false, 0, false, 5}));
        QVERIFY(isRight(naive::Block{2, 1, 50, std::vector<float>(100, 0.98F)}, {}));
        QVERIFY(isRight(randomBlock(92, 2, 1, 1), {false, 0, true, 0}));
    }

    void zScoresHaveMeanZeroAndVarianceOneAndForgetScale() {
        const naive::Block x = randomBlock(118, 2, 1, 400, 3, 7);
        naive::Block other = x;
        for (float& value : other.numbers) value = 4 * value + 16;
        const auto z = standardise(tableOf(x), {}).data;
        const double squares = std::inner_product(z.begin(), z.begin() + 400, z.begin(), 0.0);
        QVERIFY(std::abs(std::accumulate(z.begin(), z.begin() + 400, 0.0)) < 1e-3);
        QVERIFY(std::abs(squares / 400 - 1) < 1e-5);
        const auto same = standardise(tableOf(other), {}).data;
        for (std::size_t i = 0; i < z.size(); ++i) QVERIFY(std::abs(same[i] - z[i]) <= 1e-5F);
    }

    void notANumberStaysOne() {
        QVERIFY(std::isnan(standardise({Shape{1, 3}, {1, kNaN, 2}}, {}).data[1]));
        const HostTensor scores{Shape{2, 2}, {kNaN, 1, 2, 3}};
        QVERIFY(std::isnan(pool(scores, PoolKind::Max, 3).data[1]));
        const std::vector<std::int32_t> oneGroup = {0, 0};
        QVERIFY(std::isnan(reduceGroups(scores, oneGroup, 1, GroupRule::Max).data[0]));
    }

    void keepsTheBestLikeTheOracle_data() {
        QTest::addColumn<bool>("tied");
        QTest::addColumn<QVector<int>>("counts");
        QTest::addColumn<int>("first");
        QTest::addColumn<int>("last");
        QTest::newRow("free") << false << QVector<int>{50, 1, 500} << 0 << 0;
        QTest::newRow("ties") << true << QVector<int>{77, 250, 3} << 0 << 0;
        QTest::newRow("protected") << true << QVector<int>{10, 100, 5} << 4 << 3;
        QTest::newRow("protected more than kept") << false << QVector<int>{2, 5, 6} << 4 << 3;
        QTest::newRow("all and none") << false << QVector<int>{501, 0, 501} << 2 << 2;
    }
    void keepsTheBestLikeTheOracle() {
        QFETCH(bool, tied);
        QFETCH(QVector<int>, counts);
        QFETCH(int, first);
        QFETCH(int, last);
        naive::Block scores = randomBlock(43, 3, 1, 501);
        for (float& x : scores.numbers) x = tied ? std::round(x) : x; // a handful of values, -0 among them
        const auto got = topK(tableOf(scores), std::vector<std::int64_t>(counts.begin(), counts.end()), first, last);
        for (std::size_t h = 0; h < 3; ++h) {
            const naive::Choice expected = naive::topK(scores, std::int64_t(h), counts[qsizetype(h)], first, last);
            QCOMPARE(got[h].kept, expected.kept);
            QVERIFY(errorOf({got[h].margin}, {expected.margin}) <= kOneRounding);
        }
    }

    void tiesGoToTheEarlierRow() {
        QCOMPARE(topOf({1, 2, 2, 0.0F, -0.0F, 2}, 2).kept, (std::vector<TokenIndex>{1, 2}));
        QCOMPARE(topOf({1, 2, 2, -0.0F, 0.0F, 2}, 5).kept, (std::vector<TokenIndex>{0, 1, 2, 3, 5}));
        QCOMPARE(topOf({1, 2, 2}, 1).margin, 0.0F);
    }

    /// More rows than the sample that says where the kept ones end; ties at every end; rows that the sample misses.
    void choosesAmongManyRowsLikeASort() {
        constexpr std::size_t n = 20'000, kStride = n / 2048;
        std::vector<float> scores = tableOf(randomBlock(48, 1, 1, n)).data;
        const auto check = [&] {
            std::vector<TokenIndex> order(n);
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, std::greater<>(), [&](TokenIndex row) { return scores[row]; });
            for (const std::size_t count : {1, 2, 99, 1000, 9999, 19'800, 19'999}) {
                std::vector<TokenIndex> expected(order.begin(), order.begin() + std::ptrdiff_t(count));
                std::ranges::sort(expected);
                const TopKHead got = topOf(scores, std::int64_t(count));
                QCOMPARE(got.kept, expected);
                QCOMPARE(got.margin, scores[order[count - 1]] - scores[order[count]]);
            }
        };
        check();
        for (float& score : scores) score = std::round(score * 4) / 4;
        check();
        for (std::size_t i = 0; i < n; ++i) scores[i] = i % kStride == 0 ? -1 : float(i % 1000);
        check();
    }

    /// Few values, each many times and side by side in the order of numbers: every end of the kept rows falls into
    /// ties.
    void choosesAmongEdgesOfNumbersLikeASort() {
        constexpr float inf = std::numeric_limits<float>::infinity(), least = std::numeric_limits<float>::denorm_min(),
                        normal = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
        const std::vector<float> edges = {0.0F,    -0.0F,          least, -least, normal,
                                          -normal, normal - least, 1.0F,  -1.0F,  std::nextafter(1.0F, 2.0F),
                                          most,    -most,          inf,   -inf};
        for (const std::size_t n : {std::size_t{14}, std::size_t{64}, std::size_t{9001}}) {
            std::vector<float> scores;
            for (const float place : tableOf(randomBlock(49, 1, 1, static_cast<std::int64_t>(n))).data)
                scores.push_back(edges[static_cast<std::size_t>(std::abs(place) * 1e4F) % edges.size()]);
            std::vector<TokenIndex> order(n);
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, std::greater<>(), [&](TokenIndex row) { return scores[row]; });
            std::vector<std::size_t> counts{0, 1, n - 1, n};
            for (std::size_t at = 1; at < n; ++at) // just before, at and behind the end of equal scores
                if (scores[order[at]] != scores[order[at - 1]]) counts.insert(counts.end(), {at - 1, at, at + 1});
            for (const std::size_t count : counts) {
                std::vector<TokenIndex> expected(order.begin(), order.begin() + std::ptrdiff_t(count));
                std::ranges::sort(expected);
                const TopKHead got = topOf(scores, std::int64_t(count));
                QCOMPARE(got.kept, expected);
                const float kept = count > 0 ? scores[order[count - 1]] : inf,
                            evicted = count < n ? scores[order[count]] : -inf;
                QCOMPARE(got.margin, count == 0 || count == n ? inf : kept == evicted ? 0 : kept - evicted);
            }
        }
    }

    void infinitiesAreOrderedAndTheirTieHasMarginZero() {
        const float inf = std::numeric_limits<float>::infinity();
        QCOMPARE(topOf({-inf, 5, inf, -inf}, 3).kept, (std::vector<TokenIndex>{0, 1, 2}));
        QCOMPARE(topOf({-inf, 5, inf, -inf}, 3).margin, 0.0F);
        QCOMPARE(topOf({-inf, 5, inf}, 3).margin, inf); // nothing to choose
    }

    void notANumberIsRefusedByName() {
        QVERIFY(errorText([] { topOf({1, 2, kNaN, 4}, 2); }).contains("token 2 in head 0"));
        QVERIFY_THROWS_EXCEPTION(Error, topOf({kNaN}, 1, 1)); // also where it is protected
    }

    void movesColumns() {
        const HostTensor scores{Shape{2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}};
        QCOMPARE(columnRange(scores, 1, 3).data, (std::vector<float>{1, 2, 5, 6}));
        QCOMPARE(columnRange(scores, 2, 2).data, std::vector<float>());
        QCOMPARE(gatherColumns(scores, {{3, 0}, {1, 1}}).data, (std::vector<float>{3, 0, 5, 5}));
        QCOMPARE(padColumns(columnRange(scores, 1, 3), 1, 4, 9).data, (std::vector<float>{9, 1, 2, 9, 9, 5, 6, 9}));
        QCOMPARE(repeatHead({Shape{1, 2}, {3, 4}}, 2).data, (std::vector<float>{3, 4, 3, 4}));
    }
};

KVSCOPE_TEST(ScoreArithmeticTest)
#include "score_arithmetic_test.moc"
