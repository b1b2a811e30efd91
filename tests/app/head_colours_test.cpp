// The colours of the head picker and the numbers under them, without a window.
#include <QTest>

#include "app/window/panels/head_picker.h"
#include "tests/support/test_program.h"
#include "views/common/measure_options.h"

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

bool same(Colour a, Colour b) { return a.r == b.r && a.g == b.g && a.b == b.b; }

} // namespace

class HeadColoursTest : public QObject {
    Q_OBJECT

private slots:
    void coloursOfTheErrorMeanTheSameWhateverElseIsThere() {
        const MeasureCard& error = measureById("output_error");
        const HeadColours few(error, {0.2, 0.3}), many(error, {0.001, 0.2, 5}), none(error, {});
        for (const double value : {0.001, 0.05, 0.2, 0.9, 5.0}) {
            QVERIFY(same(few.colourOf(value), many.colourOf(value)));
            QVERIFY(same(few.colourOf(value), none.colourOf(value)));
        }
        QVERIFY(same(few.colourOf(0.03), few.colourAt(0)) && same(few.colourOf(1), few.colourAt(1)));
        QVERIFY(same(few.colourOf(std::sqrt(0.03)), few.colourAt(0.5))); // half way by its logarithm
        QVERIFY(none.hasRange());
    }

    void otherMeasuresRunOverWhatIsThere() {
        const HeadColours entropy(measureById("entropy"), {2, NAN, 4, 3});
        QVERIFY(same(entropy.colourOf(2), entropy.colourAt(0)) && same(entropy.colourOf(4), entropy.colourAt(1)));
        QVERIFY(same(entropy.colourOf(3), entropy.colourAt(0.5)));
        const std::vector<HeadColours::Number> numbers = entropy.numbers();
        QCOMPARE(numbers[0].text, QString("2"));
        QCOMPARE(numbers[1].text, QString("4"));
        QVERIFY(!HeadColours(measureById("entropy"), {NAN}).hasRange());
        QVERIFY(HeadColours(measureById("entropy"), {NAN}).numbers().empty());
    }

    void headsThatAreAlikeHaveOneNumber() {
        const std::vector<HeadColours::Number> numbers = HeadColours(measureById("entropy"), {3, NAN, 3}).numbers();
        QCOMPARE(numbers.size(), std::size_t{1});
        QCOMPARE(numbers[0].text, QString("3"));
        QCOMPARE(numbers[0].place, 0.0);
    }

    void signedMeasuresHaveZeroInTheMiddle() {
        const HeadColours cosine(measureById("cos_means"), {-0.1, 0.4});
        QVERIFY(same(cosine.colourOf(0), cosine.colourAt(0.5)) && same(cosine.colourOf(-0.4), cosine.colourAt(0)));
        QVERIFY(!same(cosine.colourOf(-0.1), cosine.colourOf(0.1)));
        QCOMPARE(cosine.numbers()[0].text, QString::fromUtf8("−0.4"));
        QCOMPARE(cosine.numbers()[2].text, QString("0"));
    }

    /// Letters of any width: numbers stay inside the bar, and apart; the ends are there as soon as both fit.
    void numbersNeverOverlap() {
        std::mt19937_64 random(7);
        const auto between = [&](double low, double high) {
            return std::uniform_real_distribution<>(low, high)(random);
        };
        for (int round = 0; round < 3000; ++round) {
            const std::vector<ParameterChoice> choices = measureChoices();
            const MeasureCard& card = measureById(choices[random() % choices.size()].id);
            const double size = std::pow(10, between(-9, 9)), gap = between(0, 12), bar = between(30, 400),
                         letter = between(2, 14);
            const HeadColours colours(card, {between(-size, size), between(-size, size)});
            const std::vector<HeadColours::Number> numbers = colours.numbers();
            const auto widthOf = [&](const QString& text) { return letter * static_cast<double>(text.size()); };
            const std::vector<PlacedNumber> placed = placeNumbers(numbers, bar, gap, widthOf);
            QVERIFY(!placed.empty());
            for (std::size_t i = 0; i < placed.size(); ++i) {
                QVERIFY(placed[i].left >= 0 &&
                        (placed[i].width > bar || placed[i].left + placed[i].width <= bar + 1e-9));
                for (std::size_t j = 0; j < i; ++j)
                    QVERIFY(placed[i].left >= placed[j].left + placed[j].width + gap ||
                            placed[i].left + placed[i].width + gap <= placed[j].left);
            }
            if (widthOf(numbers[0].text) + widthOf(numbers[1].text) + gap < bar)
                QVERIFY(placed.size() >= 2 && placed[0].tick == 0 && placed[1].tick == bar);
        }
    }
};

KVSCOPE_TEST(HeadColoursTest)
#include "head_colours_test.moc"
