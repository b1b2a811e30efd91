// Formulas in a narrow panel: nothing is lost, lines end where a reader would end them, short formulas stay whole.
#include "app/window/panels/formula_lines.h"
#include "core/policies/policy.h"
#include "tests/support/test_program.h"

#include <QRegularExpression>
#include <QTest>

using namespace kvscope;

namespace {

QStringList listingsOf(const QString& markdown) {
    QStringList lines;
    for (const QString& line : markdown.split('\n'))
        if (line.startsWith("    ")) lines.push_back(line.mid(4));
    return lines;
}

QString withoutSpaces(QString text) { return text.remove(QRegularExpression("\\s")); }

} // namespace

class FormulaLinesTest : public QObject {
    Q_OBJECT

private slots:
    void whatFitsStaysAsItIs() {
        const QStringList listing = {"pairwise   score_i = a + b", "efficient  score_i = c"};
        QCOMPARE(formulaLines(listing, 26), listing);
        QVERIFY(formulaLines(listing, 25) != listing);
        QCOMPARE(formulaLines({}, 30), QStringList());
    }

    void linesEndWhereAReaderWouldEndThem_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QStringList>("broken");
        QTest::newRow("names and notes")
            << "pairwise  (Eq. 7)   score_i = - sum over j of cos(k_i, k_j)          n^2 d work"
            << QStringList{"pairwise  (Eq. 7)", "  score_i = - sum over j of", "      cos(k_i, k_j)", "  n^2 d work"};
        QTest::newRow("sentences") << "score_i = -||k_i||;    keep the N largest scores"
                                   << QStringList{"score_i = -||k_i||;", "keep the N largest scores"};
        QTest::newRow("before an operator") << "z(q) = sum w_i e^l_i v_i / sum u_i e^l_i,    u = 2"
                                            << QStringList{"z(q) = sum w_i e^l_i v_i", "    / sum u_i e^l_i,", "u = 2"};
        QTest::newRow("not in the bounds of a sum")
            << "score_i = sum over queries j >= i of p_ji v_i"
            << QStringList{"score_i = sum over queries j >= i", "    of p_ji v_i"};
        QTest::newRow("no rest of one word") << "each of its slots becomes k with chance 1/n_c"
                                             << QStringList{"each of its slots becomes k with", "    chance 1/n_c"};
        QTest::newRow("not in brackets") << "M_ij = e^(<k_i, k_j> / sqrt d) <v_i, v_j>"
                                         << QStringList{"M_ij = e^(<k_i, k_j> / sqrt d)", "    <v_i, v_j>"};
        QTest::newRow("as late as can be") << "most - l (most - least) / (L - 1) + W_of_layer"
                                           << QStringList{"most - l (most - least) / (L - 1)", "    + W_of_layer"};
    }
    void linesEndWhereAReaderWouldEndThem() {
        QFETCH(QString, line);
        QFETCH(QStringList, broken);
        QCOMPARE(formulaLines({line}, 36), broken);
    }

    void emptyLinesStayEmpty() {
        const QString formula = "score_i = sum over queries j >= i of p_ji v_i";
        const QStringList broken = formulaLines({formula}, 36);
        QVERIFY(broken.size() > 1);
        QCOMPARE(formulaLines({"   ", formula, "", formula}, 36), QStringList{""} + broken + QStringList{""} + broken);
    }

    // In panels of 288 and 400 and everything between.
    void everyPolicyIsSetWhole() {
        const QRegularExpression loneOperator("(^\\s*|\\s)([-+*/=<>−·≤≥←]|<=|>=|\\+=)$");
        for (const Policy* policy : allPolicies()) {
            const QString page = QString::fromStdString(policy->card().explanation);
            for (int columns = 34; columns <= 80; ++columns) {
                const QString set = withFormulaLines(page, columns);
                QCOMPARE(withoutSpaces(set), withoutSpaces(page));
                for (const QString& line : listingsOf(set)) {
                    const QString said =
                        QString("%1 at %2: %3").arg(QString::fromStdString(policy->card().id)).arg(columns).arg(line);
                    QVERIFY2(line.size() <= columns, qPrintable(said));
                    QVERIFY2(!loneOperator.match(line).hasMatch(), qPrintable(said));
                }
            }
        }
    }

    void normsOfTheRunningTextStayWhole() {
        const QString joiner(QChar(0x2060)), blank(QChar::Nbsp);
        QCOMPARE(withUnbrokenNorms("sum k_i/||k_i||. See Eq. 7"),
                 QString("sum k_i/||%1k_i||%1. See Eq.%2 7").arg(joiner, blank).replace(blank + " ", blank));
        for (const QString& kept : {QString("    y = ||k_i||"), QString("| `a` | b |"), QString("a | b")})
            QCOMPARE(withUnbrokenNorms(kept), kept);
    }

    void otherTextIsLeftAlone() {
        const QString page =
            "One line that is longer than the twenty columns of this page.\n\n- a point\n  that goes on\n\n| a | b |";
        QCOMPARE(withFormulaLines(page, 20), page);
    }
};

KVSCOPE_CORE_TEST(FormulaLinesTest)
#include "formula_lines_test.moc"
