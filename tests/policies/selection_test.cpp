// Budgets: what is read, how fractions become tokens, what is refused with which words.
#include "core/base/error.h"
#include "core/policies/selection.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <functional>
#include <random>

using namespace kvscope;

namespace {

std::int64_t kept(const char* budget, std::int64_t n, Rounding rounding = Rounding::Ceil) {
    return resolveBudget(Budget::parse(budget), n, rounding);
}

} // namespace

class SelectionTest : public QObject {
    Q_OBJECT

private slots:
    void fractionsRoundUp() {
        QCOMPARE(kept("0.25", 100), 25);
        QCOMPARE(kept("0.25", 101), 26);
        QCOMPARE(kept("1", 77), 77);
        QCOMPARE(kept("0.001", 100), 1);
        // 0.1 n is whole, although 0.1 is a hair above a tenth in binary (0.4).
        for (std::int64_t n = 10; n <= 100000; n += 10) QCOMPARE(kept("0.1", n), n / 10);
        QCOMPARE(kept("0.29", 100), 29);
        QCOMPARE(kept("0.07", 100), 7);
    }

    // X2: int(n (1 - ratio)) with the fraction removed, in binary floating point; 0 becomes 1.
    void floorIsThatOfKvpress() {
        QCOMPARE(kept("0.1", 10, Rounding::Floor), 1);
        QCOMPARE(kept("0.1", 100, Rounding::Floor), 9);
        QCOMPARE(kept("0.1", 1000, Rounding::Floor), 99);
        QCOMPARE(kept("0.2", 5, Rounding::Floor), 1);
        QCOMPARE(kept("0.25", 103, Rounding::Floor), 25);
        QCOMPARE(kept("1", 103, Rounding::Floor), 103);
    }

    // kvpress takes the fraction removed, and its user writes a decimal: 0.93, not 1 - 0.07 in binary.
    void floorIsThatOfKvpressAtEveryPercent() {
        for (int percent = 1; percent <= 99; ++percent) {
            const std::string keep = "0." + std::string(percent < 10 ? "0" : "") + std::to_string(percent);
            const int removed = 100 - percent;
            const double ratio = std::stod("0." + std::string(removed < 10 ? "0" : "") + std::to_string(removed));
            for (const std::int64_t n : {5, 10, 100, 103, 995, 1000, 1999, 4096, 7143, 131072}) {
                const auto expected =
                    static_cast<std::int64_t>(static_cast<double>(n) * (1 - ratio)); // int() of Python
                QVERIFY2(kept(keep.c_str(), n, Rounding::Floor) == std::max<std::int64_t>(1, expected),
                         qPrintable(QString("%1 of %2").arg(QString::fromStdString(keep)).arg(n)));
            }
        }
        QCOMPARE(kept("0.07", 1000, Rounding::Floor), 69);
        QCOMPARE(kept("0.123", 1000, Rounding::Floor), 123); // 1000 (1 - 0.877) = 123.00000000000001
    }

    void roundIsNearestWithHalvesToEven() {
        QCOMPARE(kept("0.25", 103, Rounding::Round), 26);
        QCOMPARE(kept("0.25", 101, Rounding::Round), 25);
        QCOMPARE(kept("0.5", 5, Rounding::Round), 2);
        QCOMPARE(kept("0.5", 7, Rounding::Round), 4);
        QCOMPARE(kept("0.001", 7, Rounding::Round), 1);
    }

    void tokensAreKeptExactly() {
        for (const Rounding rounding : {Rounding::Ceil, Rounding::Floor, Rounding::Round})
            QCOMPARE(kept("17t", 100, rounding), 17);
        QCOMPARE(kept("100t", 100), 100);
    }

    void refusesTexts_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const QString form = " (budget). Give the fraction kept (0.25), tokens (2048t) or a quality (tau=0.95)";
        QTest::newRow("empty") << ""
                               << "budget '' is not a number" + form;
        QTest::newRow("word") << "half"
                              << "budget 'half' is not a number" + form;
        QTest::newRow("percent") << "25%"
                                 << "budget '25%' is not a number" + form;
        QTest::newRow("only t") << "t"
                                << "budget 't' is not a number" + form;
        QTest::newRow("infinite") << "inf"
                                  << "budget 'inf' is not a number" + form;
        QTest::newRow("zero") << "0"
                              << "budget '0' is not a fraction from above 0 to 1" + form;
        QTest::newRow("negative") << "-0.5"
                                  << "budget '-0.5' is not a fraction from above 0 to 1" + form;
        QTest::newRow("above one") << "1.5"
                                   << "budget '1.5' is not a fraction from above 0 to 1" + form;
        QTest::newRow("tokens without t")
            << "2048"
            << "budget '2048' is not a fraction from above 0 to 1 (budget). For tokens write 2048t";
        QTest::newRow("no token") << "0t"
                                  << "budget '0t' is not a whole number of tokens, at least 1" + form;
        QTest::newRow("part of a token") << "1.5t"
                                         << "budget '1.5t' is not a whole number of tokens, at least 1" + form;
        QTest::newRow("huge") << "1e99t"
                              << "budget '1e99t' is not a whole number of tokens, at least 1" + form;
    }

    void refusesTexts() {
        QFETCH(QString, text);
        QFETCH(QString, message);
        QCOMPARE(errorText([&] { (void)Budget::parse(text.toStdString()); }), message);
    }

    void refusesWhatDoesNotFit() {
        QCOMPARE(errorText([] { (void)kept("101t", 100); }),
                 "budget '101t' does not fit: 100 tokens lie before the cut (budget). Give 1t to 100t");
        QCOMPARE(errorText([] { (void)kept("0.5", 0); }), "no token lies before the cut (cut). Choose a later cut");
        QVERIFY(errorText([] {
                    (void)resolveBudget({Budget::Unit::Fraction, 0}, 10, Rounding::Ceil);
                }).contains("fraction"));
        QVERIFY(errorText([] { (void)resolveBudget({Budget::Unit::Tokens, 0}, 10, Rounding::Ceil); }).contains("'0t'"));
    }

    void textReadsBackIdentically() {
        const unsigned seed = 11;
        qInfo("seed %u", seed);
        std::mt19937_64 random(seed);
        for (int i = 0; i < 5000; ++i) {
            const double unit = 1 - std::generate_canonical<double, 53>(random);
            const Budget fraction{Budget::Unit::Fraction, i % 2 ? unit : unit * 1e-9};
            const Budget tokens{Budget::Unit::Tokens, std::ceil(unit * 1e6)};
            QVERIFY(Budget::parse(fraction.text()) == fraction);
            QVERIFY(Budget::parse(tokens.text()) == tokens);
        }
        QCOMPARE(Budget::parse("2048t").text(), std::string("2048t"));
        QCOMPARE(Budget::parse("0.25").text(), std::string("0.25"));
    }

    void sameListsComparesKeptOnly() {
        Selection a;
        a.heads.resize(2);
        a.heads[0].kept = {1, 2};
        a.heads[1].kept = {3};
        Selection b = a;
        b.heads[0].margin = 7;
        QVERIFY(a.sameLists(b));
        b.heads[1].kept = {4};
        QVERIFY(!a.sameLists(b));
        b.heads.pop_back();
        QVERIFY(!a.sameLists(b));
    }
};

KVSCOPE_TEST(SelectionTest)
#include "selection_test.moc"
