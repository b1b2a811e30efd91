// Sums over kept sets that are updated by the difference of the sets: right by the oracle, and the same bits as from
// nothing, whatever sets came before.
#include "core/base/error.h"
#include "core/engine/recent_sums.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/same_bits.h"
#include "tests/support/test_program.h"

#include <QRandomGenerator>
#include <QtTest>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <random>

using namespace kvscope;
using namespace kvscope::check;

namespace {

/// 4 query heads on 2 KV heads, 40 queries (two blocks) after 500 tokens.
naive::Weighted cacheOf(double spread) {
    naive::Weighted in{randomBlock(71, 4, 40, 16, spread),
                       randomBlock(72, 2, 540, 16),
                       randomBlock(73, 2, 540, 24, 1, 0.2),
                       500,
                       500,
                       {},
                       {}};
    in.rule.scaling = 0.25;
    in.rule.gqaGroupOf = {1, 0, 0, 1};
    return in;
}

std::vector<WeightedSet> randomSets(std::size_t count, unsigned percent, std::mt19937& generator) {
    std::vector<WeightedSet> sets(count);
    for (WeightedSet& set : sets)
        for (TokenIndex token = 0; token < 500; ++token)
            if (generator() % 100 < percent) set.numerator.push_back(token);
    return sets;
}

struct Layer {
    naive::Weighted in;
    const Engine& engine;
    WeightedAttentionInput input{uploadRows(engine, in.queries),
                                 uploadRows(engine, in.keys),
                                 uploadRows(engine, in.values),
                                 TokenIndex(in.firstQuery),
                                 TokenIndex(in.cut),
                                 in.rule,
                                 {}};
    HostTensor logSumExps = engine.weightedAttention(input, {}).logDenominator;

    std::vector<float> numbers(const std::vector<WeightedSet>& kept, RecentSums& recent,
                               const Checkpoint& checkpoint = {}) const {
        WeightedAttentionInput now = input;
        now.kept = kept;
        now.recent = &recent;
        const WeightedAttention result = engine.weightedAttention(now, checkpoint);
        std::vector<float> all = result.output.data;
        all.insert(all.end(), result.logDenominator.data.begin(), result.logDenominator.data.end());
        all.insert(all.end(), result.logNorm.data.begin(), result.logNorm.data.end());
        return all;
    }
    std::vector<float> fromNothing(const std::vector<WeightedSet>& kept) const {
        RecentSums recent(logSumExps);
        return numbers(kept, recent);
    }
    /// The sums themselves: floats would hide a trace in the last bits.
    bool sameSums(const std::vector<WeightedSet>& kept, const RecentSums& recent) const {
        RecentSums fresh(logSumExps);
        (void)numbers(kept, fresh);
        const auto a = recent.nearest(kept, 1), b = fresh.nearest(kept, 1);
        return a && b && sameBits(a->sums, b->sums);
    }
};

/// Sink, window and softcap; sharp and flat attention; a set for each query head.
std::vector<std::pair<std::string, naive::Weighted>> layers() {
    std::vector<std::pair<std::string, naive::Weighted>> all{{"flat", cacheOf(0.3)}, {"sharp", cacheOf(8)}};
    all.emplace_back("window, softcap and sinks", cacheOf(2));
    all.back().second.rule.slidingWindow = 300;
    all.back().second.rule.softcap = 4;
    all.back().second.rule.sinks = {0.5F, 3, -40, 1};
    all.emplace_back("seen queries", cacheOf(1));
    all.back().second.cut = 540;
    return all;
}

} // namespace

class KeptSumsTest : public QObject {
    Q_OBJECT

private slots:
    void sumsAreRight() {
        const auto engine = makeCpuEngine(2);
        std::mt19937 generator(5);
        for (auto [name, in] : layers())
            for (const std::size_t sets : {2, 4})
                for (const unsigned percent : {0U, 1U, 30U, 90U, 100U}) {
                    const Layer layer{in, *engine};
                    in.kept = randomSets(sets, percent, generator);
                    const double error = errorOf(layer.fromNothing(in.kept), naive::weightedAttention(in));
                    QVERIFY2(error <= kOneRounding,
                             qPrintable(QString("%1, %2 %: %3").arg(name.c_str()).arg(percent).arg(error)));
                }
    }

    /// One thread computes blocks two at a time and widens their keys and values once, many threads one by one.
    void blocksAtOnceSumAsAlone() {
        std::mt19937 generator(6);
        const auto together = makeCpuEngine(1), alone = makeCpuEngine(8);
        for (const auto& [name, in] : layers())
            for (const std::size_t sets : {2, 4}) {
                const Layer a{in, *together}, b{in, *alone};
                RecentSums ofA(a.logSumExps), ofB(b.logSumExps);
                for (const unsigned percent : {40U, 60U}) {
                    const auto kept = randomSets(sets, percent, generator);
                    QVERIFY2(sameBits(a.numbers(kept, ofA), b.numbers(kept, ofB)), name.c_str());
                }
            }
    }

    /// Tokens come and go, in small and large steps, on every instruction set.
    void noSetLeavesATrace() {
        const unsigned seed = QRandomGenerator::global()->generate();
        qInfo("seed %u", seed);
        for (const auto& [name, in] : layers()) {
            std::vector<std::vector<float>> first;
            for (const std::string& set : testing::availableSets()) {
                const auto engine = makeCpuEngine(2, set);
                std::mt19937 generator(seed);
                const Layer layer{in, *engine};
                RecentSums recent(layer.logSumExps);
                std::vector<WeightedSet> kept = randomSets(2, 50, generator);
                for (std::size_t step = 0; step < 40; ++step) {
                    const unsigned changes = step % 10 == 9 ? 200 : 1 + generator() % 20;
                    for (unsigned change = 0; change < changes; ++change) {
                        auto& tokens = kept[generator() % 2].numerator;
                        const auto token = TokenIndex(generator() % 500);
                        const auto at = std::ranges::lower_bound(tokens, token);
                        if (at != tokens.end() && *at == token)
                            tokens.erase(at);
                        else
                            tokens.insert(at, token);
                    }
                    const std::vector<float> now = layer.numbers(kept, recent);
                    QVERIFY2(layer.sameSums(kept, recent),
                             qPrintable(QString("%1, %2, step %3").arg(name.c_str()).arg(set.c_str()).arg(step)));
                    QVERIFY2(sameBits(now, layer.fromNothing(kept)),
                             qPrintable(QString("%1, %2, step %3").arg(name.c_str()).arg(set.c_str()).arg(step)));
                    if (first.size() <= step) first.push_back(now);
                    QVERIFY2(sameBits(now, first[step]), set.c_str());
                }
            }
        }
    }

    void onlyTheDifferenceIsComputed() {
        const auto engine = makeCpuEngine(1);
        const Layer layer{cacheOf(0.3), *engine};
        RecentSums recent(layer.logSumExps);
        const auto workOf = [&](const std::vector<WeightedSet>& kept) {
            double work = 0;
            (void)layer.numbers(kept, recent, Checkpoint({}, [&](double, double total) { work = total; }));
            return work;
        };
        std::mt19937 generator(6);
        std::vector<WeightedSet> kept = randomSets(2, 50, generator);
        const double tokens = double(kept[0].numerator.size() + kept[1].numerator.size());
        QCOMPARE(workOf(kept), 2 * 40 * (tokens + 2 * 40)); // two query heads for each KV head, 40 tokens after the cut
        kept[1].numerator.erase(kept[1].numerator.begin() + 3);
        QCOMPARE(workOf(kept), 2.0 * 40);
        kept[0].numeratorWeights.assign(kept[0].numerator.size(), 1); // weights are summed from nothing, as ever
        QCOMPARE(workOf(kept), 2 * 40 * (tokens - 1 + 2 * 40));
    }

    void aCancelledCallLeavesNothingBehind() {
        const auto engine = makeCpuEngine(1);
        const Layer layer{cacheOf(1), *engine};
        RecentSums recent(layer.logSumExps);
        std::mt19937 generator(7);
        const auto before = randomSets(2, 50, generator), after = randomSets(2, 55, generator);
        (void)layer.numbers(before, recent);
        std::stop_source stop;
        const Checkpoint stopping(stop.get_token(), [&](double, double) { stop.request_stop(); });
        QVERIFY_THROWS_EXCEPTION(Cancelled, layer.numbers(after, recent, stopping));
        QCOMPARE(std::fegetround(), FE_TONEAREST);
        QVERIFY(sameBits(layer.numbers(after, recent), layer.fromNothing(after)));
    }

    /// The last token's, which only the last query sees: the quantum is that of the largest value of a head.
    void anOutlierAmongTheValues() {
        const auto engine = makeCpuEngine(1);
        std::mt19937 generator(9);
        for (const float outlier : {1e4F, 1e6F, 1e9F, 1e12F, 1e16F}) {
            naive::Weighted in = cacheOf(0.3);
            for (std::int64_t head = 0; head < 2; ++head)
                in.values.numbers[static_cast<std::size_t>((head * 540 + 539) * 24 + 5)] = outlier;
            in.kept = randomSets(2, 60, generator);
            const Layer layer{in, *engine};
            const std::vector<float> got = layer.fromNothing(in.kept);
            const naive::Numbers expected = naive::weightedAttention(in);
            for (std::int64_t query = 0; query < 4 * 40; ++query) {
                const auto partOf = [query](const auto& of) {
                    return std::vector(of.begin() + query * 24, of.begin() + (query + 1) * 24);
                };
                const double error = errorOf(partOf(got), partOf(expected));
                QVERIFY2(error <= kOneRounding,
                         qPrintable(QString("%1, query %2: %3").arg(outlier).arg(query).arg(error)));
            }
        }
    }

    /// A float as large as that is rounded by more than a logit may be.
    void largeLogSumExpsAreNotUsed() {
        const auto engine = makeCpuEngine(1);
        std::mt19937 generator(10);
        const Layer layer{cacheOf(1), *engine};
        const auto kept = randomSets(2, 50, generator);
        for (const float far : {-2.5e8F, 2.5e8F, -70'000.0F, 70'000.0F}) {
            HostTensor logSumExps = layer.logSumExps;
            logSumExps.data.back() = far;
            RecentSums recent(logSumExps);
            (void)layer.numbers(kept, recent);
            QVERIFY2(!recent.nearest(kept, 1), qPrintable(QString::number(far)));
        }
    }

    /// Values that are no numbers have no quantum; huge ones have a large one.
    void unusualValues() {
        const auto engine = makeCpuEngine(1);
        std::mt19937 generator(8);
        for (const float factor : {1e30F, 1e-40F, 0.0F, std::numeric_limits<float>::infinity()}) {
            naive::Weighted in = cacheOf(0.3);
            for (std::size_t i = 0; i < in.values.numbers.size(); i += 7) in.values.numbers[i] *= factor;
            const Layer layer{in, *engine};
            const auto kept = randomSets(2, 60, generator);
            WeightedAttentionInput plain = layer.input;
            plain.kept = kept;
            const std::vector<float> expected = engine->weightedAttention(plain, {}).output.data,
                                     got = layer.fromNothing(kept);
            for (std::size_t i = 0; i < expected.size(); ++i)
                QVERIFY2(std::isnan(expected[i]) ? std::isnan(got[i])
                                                 : got[i] == expected[i] || std::abs(got[i] - expected[i]) <=
                                                                                1e-6F * std::abs(factor) + 1e-6F,
                         qPrintable(QString("%1: %2, not %3").arg(factor).arg(got[i]).arg(expected[i])));
        }
    }
};

KVSCOPE_TEST(KeptSumsTest)
#include "kept_sums_test.moc"
