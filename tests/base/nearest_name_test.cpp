// Suggestions for mistyped names.
#include "core/base/nearest_name.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class NearestNameTest : public QObject {
    Q_OBJECT

private slots:
    void findsTheNearest_data() {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<QString>("expected");
        QTest::newRow("missing letter") << "anchr"
                                        << "anchor";
        QTest::newRow("extra letter") << "anchorr"
                                      << "anchor";
        QTest::newRow("wrong letter") << "metrik"
                                      << "metric";
        QTest::newRow("two letters swapped count once") << "pool_wdith"
                                                        << "pool_width";
        QTest::newRow("case is ignored") << "ANCHOR"
                                         << "anchor";
        QTest::newRow("nearest, not first") << "pool_widt"
                                            << "pool_width";
        QTest::newRow("nothing near") << "temperature"
                                      << "";
        QTest::newRow("empty") << ""
                               << "";
    }

    void findsTheNearest() {
        QFETCH(QString, typed);
        QFETCH(QString, expected);
        const std::vector<std::string> names = {"pool", "anchor", "metric", "pool_width"};
        QCOMPARE(QString::fromStdString(nearestName(typed.toStdString(), names)), expected);
    }

    void firstOfEquals() { QCOMPARE(nearestName("abcd", {"abce", "abcf"}), std::string("abce")); }

    // d("ca", "abc") is 3 in this distance (each pair is edited once), so a third of the name is exceeded.
    void distanceIsNotOverestimated() {
        QCOMPARE(nearestName("kitten", {"mitten"}), std::string("mitten"));
        QCOMPARE(nearestName("kitten", {"sitting"}), std::string());
        QCOMPARE(nearestName("ca", {"abc"}), std::string());
    }

    void suggestionIsARemedy() {
        QCOMPARE(suggestName("anchr", {"anchor", "metric"}), std::string("Did you mean 'anchor'?"));
        QCOMPARE(suggestName("temperature", {"anchor", "metric"}), std::string("Known: anchor, metric"));
        QCOMPARE(suggestName("anchor", {}), std::string("There is none"));
    }
};

KVSCOPE_TEST(NearestNameTest)
#include "nearest_name_test.moc"
