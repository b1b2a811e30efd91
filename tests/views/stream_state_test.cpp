// What the clustering view works out of SubGen's step log, by hand: bins and chi-square of the value reservoir, and how
// fast clusters are born.
#include <QtTest>

#include "tests/support/test_program.h"
#include "views/clustering/stream_state.h"

#include <algorithm>
#include <cmath>

using namespace kvscope;

class StreamStateTest : public QObject {
    Q_OBJECT

private slots:
    // Norms 1, 1, 1, 3: the last token owns a slot with probability 3/4.
    void samplingByHand() {
        SubgenLog::Head stream;
        stream.mu = 12;
        stream.valueProbability = {1.0 / 12, 1.0 / 12, 1.0 / 12, 9.0 / 12};
        StreamState state;
        state.read = 4;
        state.mu = 12;
        state.valueSlots = {3, 3, 3, 3, 3, 3, 0, 1, 2, 0, 3, 3, 3, 3, -1, 3, 3, 3, 2, 1};
        const Sampling sampling = samplingOf(stream, state);
        QCOMPARE(sampling.drawn, 19);
        double ideal = 0;
        std::int64_t realised = 0, tokens = 0;
        for (const SamplingBin& bin : sampling.bins) ideal += bin.ideal, realised += bin.realised, tokens += bin.tokens;
        QVERIFY(std::abs(ideal - 1) < 1e-12);
        QVERIFY(realised == 19 && tokens == 4);
        QCOMPARE(sampling.bins.size(), std::size_t{1}); // a quarter of 19 is fewer than 5: one bin, nothing to test
        state.valueSlots.assign(48, 3);
        std::fill_n(state.valueSlots.begin(), 8, 1); // tokens 0 and 1 are one bin of 48 / 6 = 8
        const Sampling fair = samplingOf(stream, state);
        QCOMPARE(fair.bins.size(), std::size_t{2});
        QVERIFY(std::abs(fair.chiSquare) < 1e-12);
        std::fill_n(state.valueSlots.begin(), 16, 1); // 16 instead of 8: 8^2 / 8 + 8^2 / 40
        QVERIFY(std::abs(samplingOf(stream, state).chiSquare - 9.6) < 1e-9);
        QCOMPARE(fair.degrees(), 1);
    }

    void growthByHand() {
        SubgenLog::Head stream;
        stream.cluster.assign(64, 0);
        for (TokenIndex t = 0; t < 64; ++t) stream.representatives.push_back(t);
        QVERIFY(std::abs(growthExponent(stream) - 1) < 1e-12); // every token opens one
        stream.representatives = {0, 3, 9};
        QVERIFY(std::abs(growthExponent(stream)) < 1e-12); // none in the second half
        stream.representatives = {0, 5, 40, 50};           // 2 after half, 4 at the end
        QVERIFY(std::abs(growthExponent(stream) - 1) < 1e-12);
    }
};

KVSCOPE_TEST(StreamStateTest)
#include "stream_state_test.moc"
