// The source of random numbers that policies draw from: the same numbers as the generator's, named entry by entry.
#include "core/base/random.h"
#include "core/base/random_source.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

class RandomSourceTest : public QObject {
    Q_OBJECT

private slots:
    void drawsWhatTheGeneratorDraws() {
        RandomKey key{.seed = 7, .layer = 2, .kvHead = 1, .round = 3, .token = 40, .slot = 5};
        QCOMPARE(drawnRandom().uniform(key), uniformAt(key));
        key.token = 41;
        QVERIFY(drawnRandom().uniform(key) != uniformAt({.seed = 7, .layer = 2, .kvHead = 1, .round = 3, .token = 40}));
        QCOMPARE(drawnRandom().id(), std::string());
    }

    // A wider sketch begins with the columns of a narrower one: entry (i, j) does not know the shape.
    void sketchEntriesAreNamedByRowAndColumn() {
        const RandomKey key{.seed = 3, .layer = 1, .kvHead = 4};
        const std::vector<double> narrow = drawnRandom().sketch(key, 5, 2), wide = drawnRandom().sketch(key, 5, 7);
        QCOMPARE(wide.size(), std::size_t{35});
        for (std::size_t i = 0; i < 5; ++i)
            for (std::size_t j = 0; j < 2; ++j) QCOMPARE(narrow[2 * i + j], wide[7 * i + j]);
        const RandomKey entry{.seed = 3, .layer = 1, .kvHead = 4, .token = 4, .slot = 6};
        QCOMPARE(wide.back(), gaussianAt(entry));
    }

    // 128 * 64 entries: the mean of standard normals lies within 5 / sqrt(8192) = 0.055 of 0 but once in 1.7 million
    // seeds, their variance within 5 sqrt(2 / 8192) = 0.078 of 1.
    void sketchEntriesAreStandardNormal() {
        const std::vector<double> entries = drawnRandom().sketch({.seed = 11}, 128, 64);
        double sum = 0, squares = 0;
        for (const double entry : entries) {
            sum += entry;
            squares += entry * entry;
        }
        const double count = static_cast<double>(entries.size());
        QVERIFY(std::abs(sum / count) < 5 / std::sqrt(count));
        QVERIFY(std::abs(squares / count - 1) < 5 * std::sqrt(2 / count));
    }
};

KVSCOPE_TEST(RandomSourceTest)
#include "random_source_test.moc"
