// Averages level by level, on numbers small enough to be computed by hand.
#include "core/metrics/averages.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

namespace {

Sample at(std::int64_t seed, std::int64_t head, std::int64_t layer, std::int64_t capture, double value) {
    return {{seed, head, layer, capture}, value};
}

bool near(double a, double b) { return std::abs(a - b) < 1e-12; }

} // namespace

class AveragesTest : public QObject {
    Q_OBJECT

private slots:
    // Layer 0 has three seeds that agree, layer 1 three that do not, layer 2 was run once. Each layer counts once:
    // (1 + 4 + 7) / 3 = 4, with deviation sqrt((9 + 0 + 9) / 2) = 3. Pooled it would be (3 + 12 + 7) / 7, or
    // (1 + 12 + 7) / 5 where seeds that agree count once.
    void layersCountOnceWhateverTheirSeeds() {
        const LevelledMean mean =
            meanByLevels({at(0, 0, 0, 0, 1), at(1, 0, 0, 0, 1), at(2, 0, 0, 0, 1), at(0, 0, 1, 0, 3), at(1, 0, 1, 0, 4),
                          at(2, 0, 1, 0, 5), at(0, 0, 2, 0, 7)});
        QCOMPARE(mean.over, std::optional(SampleLevel::Layers));
        QCOMPARE(mean.summary.count, 3);
        QVERIFY(near(mean.summary.mean, 4) && near(mean.summary.deviation, 3));
        // Student's t with two degrees of freedom, by a table: 4.302653 * 3 / sqrt(3).
        QVERIFY(std::abs(mean.summary.halfInterval() - 7.452413) < 1e-3);
    }

    // The same layers over seeds: each seed's mean over its layers, (1 + 2) / 2, (1 + 4) / 2 and (1 + 6) / 2.
    void theSpreadOverSeedsLeavesOutThatOfLayers() {
        const std::vector<Sample> samples = {at(0, 0, 0, 0, 1), at(1, 0, 0, 0, 1), at(2, 0, 0, 0, 1),
                                             at(0, 0, 1, 0, 2), at(1, 0, 1, 0, 4), at(2, 0, 1, 0, 6)};
        const LevelledMean mean = meanByLevels(samples, SampleLevel::Seeds);
        QCOMPARE(mean.over, std::optional(SampleLevel::Seeds));
        QCOMPARE(mean.summary.count, 3);
        QVERIFY(near(mean.summary.mean, 2.5) && near(mean.summary.deviation, 1));
        QVERIFY(near(meanByLevels(samples).summary.mean, 2.5)); // over layers: 1 and 4
        QVERIFY(near(meanByLevels(samples).summary.deviation, std::sqrt(4.5)));
    }

    // Capture 0 has layers of (1 + 3) / 2 = 2 and 6, so 4; capture 1 has one layer of two heads: (10 + 20) / 2 = 15.
    void capturesAreOutermost() {
        const LevelledMean mean = meanByLevels(
            {at(0, 0, 0, 0, 1), at(0, 1, 0, 0, 3), at(0, 0, 1, 0, 6), at(0, 0, 0, 1, 10), at(0, 1, 0, 1, 20)});
        QCOMPARE(mean.over, std::optional(SampleLevel::Captures));
        QCOMPARE(mean.summary.count, 2);
        QVERIFY(near(mean.summary.mean, 9.5) && near(mean.summary.deviation, std::sqrt(2 * 5.5 * 5.5)));
    }

    void headsOfOneLayer() {
        const LevelledMean mean = meanByLevels({at(0, 0, 4, 0, 1), at(1, 0, 4, 0, 3), at(0, 1, 4, 0, 8)});
        QCOMPARE(mean.over, std::optional(SampleLevel::Heads)); // seeds are averaged before them: 2 and 8
        QVERIFY(near(mean.summary.mean, 5) && mean.summary.count == 2);
    }

    // One number has no spread, at whatever level it is asked for.
    void oneNumberHasNoSpread() {
        for (const auto over : {std::optional<SampleLevel>(), std::optional(SampleLevel::Seeds)}) {
            const LevelledMean mean = meanByLevels({at(0, 2, 3, 0, 7)}, over);
            QVERIFY(!mean.over && near(mean.summary.mean, 7) && mean.summary.count == 1);
            QVERIFY(std::isnan(mean.summary.halfInterval()));
        }
        QVERIFY(std::isnan(meanByLevels({}).summary.mean));
        // Several layers of a policy without random numbers: no spread over seeds.
        QVERIFY(!meanByLevels({at(0, 0, 0, 0, 1), at(0, 0, 1, 0, 2)}, SampleLevel::Seeds).over);
    }

    // A layer without a number is left out; one seed without a number leaves the other.
    void missingNumbersAreLeftOut() {
        const LevelledMean mean =
            meanByLevels({at(0, 0, 0, 0, NAN), at(1, 0, 0, 0, 2), at(0, 0, 1, 0, NAN), at(0, 0, 2, 0, 4)});
        QVERIFY(near(mean.summary.mean, 3) && mean.summary.count == 2);
    }

    void levelsHaveNames() { QCOMPARE(std::string(levelName(SampleLevel::Heads)), std::string("heads")); }
};

KVSCOPE_TEST(AveragesTest)
#include "averages_test.moc"
