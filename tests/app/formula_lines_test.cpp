// Formulas in a narrow panel: nothing is lost, lines end where a reader would end them, short formulas stay whole.
#include "app/report/html.h"
#include "app/window/panels/explanation_panel.h"
#include "core/policies/policy.h"
#include "tests/support/test_program.h"
#include "views/view.h"

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

    void numbersOfEquationsStayBesideTheirWord() {
        QCOMPARE(withUnbrokenNumbers("See Eq. 7"), QString("See Eq.") + QChar(QChar::Nbsp) + "7");
    }

    void formulasAreSetAndNamesAreNot() {
        QCOMPARE(withScripts("<p>k_i, Σ_{j&lt;i} p_ji e^{r²/√d} 2^i ‖V‖_F n_c* score_i</p>"),
                 std::string("<p>k<sub>i</sub>, Σ<sub>j&lt;i</sub> p<sub>ji</sub> e<sup>r²/√d</sup> 2<sup>i</sup> "
                             "‖V‖<sub>F</sub> n<sub>c*</sub> score<sub>i</sub></p>"));
        for (const char* kept : {"<em>same_weights</em>, sign_sort", "<code>p_i</code>", "<a href=\"k_i\">x</a>",
                                 "<style>a_b {}</style>", "l2compress, kv_head, compactor_vllm"})
            QCOMPARE(withScripts(kept), std::string(kept));
        QCOMPARE(withScripts("<pre><code>k_i</code></pre>"), std::string("<pre><code>k<sub>i</sub></code></pre>"));
    }

    // Neither ASCII nor a mark-up sign is left where a formula is read.
    void noPageHasFormulasInAscii() {
        static const QRegularExpression ascii(
            "\\|\\||\\bsqrt |[^=]<= |>= |\\bsum over|\\b(mu|eta|gamma)\\b(?! ?=)|<[a-z]_?[a-z]?, ?[a-z]|"
            "(?<![\\w`*])\\p{L}[_^][\\p{L}(]");
        static const QRegularExpression code("`[^`]*`|<code>.*?</code>",
                                             QRegularExpression::DotMatchesEverythingOption);
        QStringList wrong;
        const auto look = [&](const std::string& id, const std::string& text) {
            const QString shown = QString::fromStdString(markdownToHtml(text)).remove(code);
            if (const auto match = ascii.match(shown); match.hasMatch())
                wrong << QString("%1: %2").arg(id.c_str(), shown.mid(match.capturedStart() - 20, 60));
        };
        for (const Policy* policy : allPolicies()) look(policy->card().id, policy->card().explanation);
        for (const View* view : allViews()) look(view->card().id, view->card().help);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void otherTextIsLeftAlone() {
        const QString page =
            "One line that is longer than the twenty columns of this page.\n\n- a point\n  that goes on\n\n| a | b |";
        QCOMPARE(withFormulaLines(page, 20), page);
    }
};

KVSCOPE_CORE_TEST(FormulaLinesTest)
#include "formula_lines_test.moc"
