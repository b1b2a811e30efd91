// Looks up every "Algorithm 2", "Thm 3.3", "Eqs. 7 and 8", "Compactor 3.4" of the product's texts and comments in
// cited_parts.txt. A citation belongs to the paper that is named before it in its sentence, else to the paper that
// its file is about.
#include "core/policies/citations.h"
#include "tests/architecture/source_tree.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDirIterator>
#include <QtTest>

using namespace kvscope;
using namespace kvscope::architecture;

namespace {

const QString kRoot = QString::fromStdString(kvscope::testing::sourceDir());

const QList<QPair<QString, QString>> kKinds = {{"Algorithm", "Algorithms?|Algs?\\."},
                                               {"Theorem", "Theorems?|Thms?\\.?"},
                                               {"Lemma", "Lemmas?"},
                                               {"Corollary", "Corollar(?:y|ies)|Cor\\."},
                                               {"Definition", "Definitions?|Defs?\\."},
                                               {"Equation", "Equations?|Eqs?\\."},
                                               {"Figure", "Figures?|Figs?\\."},
                                               {"Table", "Tables?"},
                                               {"Section", "[Ss]ections?|[Ss]ecs?\\.|[Aa]ppendix|App\\."}};

/// What files are about, by a part of their path.
const QList<QPair<QString, QString>> kSubjects = {
    {"policies/keydiff", "KeyDiff"},      {"policies/balance", "BalanceKV"},  {"policies/subgen", "SubGen"},
    {"policies/compactor", "Compactor"},  {"views/geometry", "KeyDiff"},      {"views/walk", "BalanceKV"},
    {"views/merge_tree", "BalanceKV"},    {"views/leverage", "Compactor"},    {"views/score_plane", "Compactor"},
    {"views/calibration", "Compactor"},   {"views/clustering", "SubGen"},     {"lessons/blocks", "KeyDiff"},
    {"lessons/compactor", "Compactor"},   {"lessons/keydiff", "KeyDiff"},     {"lessons/subgen", "SubGen"},
    {"lessons/premise", "KeyDiff"},       {"lessons/leverage", "Compactor"},  {"lessons/price", "SubGen"},
    {"lessons/calibration", "Compactor"}, {"lessons/walk", "BalanceKV"},      {"lessons/halving", "BalanceKV"},
    {"lessons/quotient", "BalanceKV"},    {"reproduction_lengths", "KeyDiff"}};

/// A numbered part of a paper.
struct CitedPart {
    QString kind, number;
    QStringList words; ///< what a sentence about no other part of this kind says
};

/// By the name of the paper, as texts write it.
const QMap<QString, QList<CitedPart>>& citedParts() {
    static const auto parts = [] {
        static const QRegularExpression line("^(\\w+) (\\S+): (.+)$");
        QMap<QString, QList<CitedPart>> all;
        QString paper;
        for (const QString& text : readText(kRoot + "/tests/architecture/cited_parts.txt").split('\n')) {
            const auto match = line.match(text);
            if (text.startsWith("# "))
                paper = text.mid(2);
            else if (!paper.isEmpty() && !text.isEmpty())
                all[paper].push_back({match.captured(1), match.captured(2), match.captured(3).split(", ")});
        }
        return all;
    }();
    return parts;
}

struct Citation {
    QString text, kind, paper;
    QStringList numbers;
    QString sentence;
};

/// "12 to 14", "3.2-3.4", "1, 2 and 4" as single numbers.
QStringList expanded(const QString& list) {
    static const QRegularExpression part("(, and | and |, | to |-|–)|\\(?([A-G]\\.\\d+|[A-K]\\b|\\d+(?:\\.\\d+)*)\\)?");
    QStringList numbers;
    bool range = false;
    for (auto found = part.globalMatch(list); found.hasNext();) {
        const auto match = found.next();
        if (match.captured(2).isEmpty()) {
            range = QStringList{" to ", "-", "–"}.contains(match.captured(1));
            continue;
        }
        const QString number = match.captured(2);
        if (range && !numbers.isEmpty()) {
            const QString before = numbers.last(), stem = before.left(before.lastIndexOf('.') + 1);
            for (int i = before.section('.', -1).toInt() + 1; i < number.section('.', -1).toInt(); ++i)
                numbers << stem + QString::number(i);
        }
        numbers << number;
        range = false;
    }
    return numbers;
}

/// The text without the marks of comments and the seams of C++ strings, on one line.
QString flattened(QString text) {
    static const QRegularExpression lineStart("\\n\\s*(?:///?<?|#+|\\*)? ?"), seam("\" +\"");
    return text.replace(lineStart, " ").replace(seam, "");
}

QString lastNameIn(const QString& text) {
    QString name;
    qsizetype best = -1;
    for (const QString& paper : citedParts().keys())
        if (const qsizetype at = text.lastIndexOf(paper); at > best) best = at, name = paper;
    return name;
}

/// The paper of a citation at `at`; empty where nothing says which it is.
QString paperOf(const QString& path, const QString& text, qsizetype at) {
    static const QRegularExpression abbreviation("(Algs?|Eqs?|Figs?|Thms?|Defs?|Cor|App|Secs?)\\. "),
        disagreement(" ([BSKC])\\d+ \\*");
    QString before = text.mid(std::max<qsizetype>(0, at - 400), std::min<qsizetype>(at, 400));
    before.replace(abbreviation, "\\1  ");
    qsizetype cut = -1;
    for (const char* end : {". ", "\"", ");", "}"}) cut = std::max(cut, before.lastIndexOf(end));
    if (const QString named = lastNameIn(before.mid(cut + 1)); !named.isEmpty()) return named;
    if (path.endsWith("disagreements.md")) {
        QString letter;
        for (auto found = disagreement.globalMatch(text.left(at)); found.hasNext();) letter = found.next().captured(1);
        return QMap<QString, QString>{
            {"B", "BalanceKV"}, {"S", "SubGen"}, {"K", "KeyDiff"}, {"C", "Compactor"}}[letter];
    }
    for (const auto& [part, paper] : kSubjects)
        if (path.contains(part)) return paper;
    return lastNameIn(before);
}

QString sentenceAround(const QString& text, qsizetype begin, qsizetype end) {
    qsizetype first = 0, last = text.size();
    for (const char* mark : {". ", "; ", "\"", ": "}) first = std::max(first, text.lastIndexOf(mark, begin));
    for (const char* mark : {". ", "; ", "\""})
        if (const qsizetype at = text.indexOf(mark, end); at >= 0) last = std::min(last, at);
    return text.mid(first, last - first);
}

std::vector<Citation> citationsIn(const QString& path, const QString& raw) {
    static const QString number = "\\(?(?:[A-G]\\.\\d+|\\d+(?:\\.\\d+)*)\\)?",
                         lettered = "\\(?(?:[A-G]\\.\\d+|[A-K]\\b|\\d+(?:\\.\\d+)*)\\)?",
                         separator = "(?:, and | and |, | to |-|–)", section = "(?:[A-G]\\.\\d+|\\d\\.\\d(?!\\d))";
    static const QRegularExpression bare("\\b(BalanceKV|SubGen|KeyDiff|Compactor|SnapKV|StreamingLLM)(?:'s)? (?:(" +
                                         section + "(?:(?:, | and | to |-)" + section + ")*)|\\((\\d)\\))");
    const QString text = flattened(raw);
    std::vector<Citation> citations;
    for (const auto& [kind, words] : kKinds) {
        const QString digits = kind == "Section" ? lettered : number;
        const QRegularExpression pattern("\\b(?:" + words + ") (" + digits + "(?:" + separator + digits + ")*)(?!\\w)");
        for (auto found = pattern.globalMatch(text); found.hasNext();) {
            const auto match = found.next();
            citations.push_back({match.captured(0), kind, paperOf(path, text, match.capturedStart()),
                                 expanded(match.captured(1)),
                                 sentenceAround(text, match.capturedStart(), match.capturedEnd())});
        }
    }
    for (auto found = bare.globalMatch(text); found.hasNext();) {
        const auto match = found.next();
        const bool equation = match.captured(2).isEmpty();
        citations.push_back({match.captured(0), equation ? "Equation" : "Section", match.captured(1),
                             expanded(match.captured(equation ? 3 : 2)),
                             sentenceAround(text, match.capturedStart(), match.capturedEnd())});
    }
    return citations;
}

/// Empty, or what is wrong: no paper, a number that the paper does not have, or the words of another number.
QString fault(const Citation& citation) {
    if (citation.paper.isEmpty()) return "names no paper";
    QStringList known, meant;
    for (const CitedPart& part : citedParts()[citation.paper]) {
        if (citation.kind != part.kind) continue;
        known << part.number;
        for (const QString& words : part.words)
            if (citation.sentence.contains(words, Qt::CaseInsensitive)) meant << part.number;
    }
    bool any = meant.isEmpty();
    for (const QString& number : citation.numbers) {
        if (!known.contains(number)) return "is not in " + citation.paper;
        any = any || meant.contains(number);
    }
    return any ? "" : "its words are those of " + citation.paper + " " + meant.join(", ");
}

} // namespace

class CitationsTest : public QObject {
    Q_OBJECT

private slots:
    void citationsAreReadFromTexts_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected"); // its beginning
        QTest::newRow("right") << "core/x.h"
                               << "MergeAndReduce (BalanceKV Algorithm 4)"
                               << "";
        QTest::newRow("the words of another") << "core/x.h"
                                              << "MergeAndReduce (BalanceKV Algorithm 3)"
                                              << "its words are those of BalanceKV 4";
        QTest::newRow("no such theorem") << "core/x.h"
                                         << "Compactor's Theorem 3"
                                         << "is not in Compactor";
        QTest::newRow("end of a range") << "core/x.h"
                                        << "KeyDiff Figs. 17 to 20"
                                        << "is not in KeyDiff";
        QTest::newRow("bare section") << "core/x.h"
                                      << "non-causal attention (Compactor 3.2)"
                                      << "its words are those of Compactor 3.3";
        QTest::newRow("bare equation") << "core/x.h"
                                       << "BalanceKV (2)"
                                       << "";
        QTest::newRow("appendix") << "core/x.h"
                                  << "KeyDiff, appendix H"
                                  << "is not in KeyDiff";
        QTest::newRow("no citation") << "core/x.h"
                                     << "a table of 3 rows, sections of a prompt"
                                     << "none";
        QTest::newRow("no paper") << "core/x.h"
                                  << "as in Lemma 2"
                                  << "names no paper";
        QTest::newRow("by its file") << "views/walk/walk_view.md"
                                     << "(Algorithm 2)"
                                     << "";
        QTest::newRow("two papers") << "core/x.h"
                                    << "KeyDiff Table 14, Compactor Table 14"
                                    << "is not in Compactor";
    }

    void citationsAreReadFromTexts() {
        QFETCH(QString, path);
        QFETCH(QString, text);
        QFETCH(QString, expected);
        const std::vector<Citation> found = citationsIn(path, text);
        QCOMPARE(found.empty(), expected == "none");
        QString first;
        for (const Citation& citation : found)
            if (first.isEmpty()) first = fault(citation);
        QVERIFY2(expected == "none" || (expected.isEmpty() ? first.isEmpty() : first.startsWith(expected)),
                 qPrintable(first));
    }

    void everyCitationIsInTheTable() {
        QStringList wrong;
        int count = 0;
        for (const char* folder : {"core", "gpu", "views", "app", "resources/manual", "resources/lessons"}) {
            QDirIterator files(kRoot + "/" + QString(folder), {"*.cpp", "*.h", "*.cu", "*.md", "*.json", "*.kvscope"},
                               QDir::Files, QDirIterator::Subdirectories);
            while (files.hasNext()) {
                const QString file = files.next(), path = file.mid(kRoot.size() + 1);
                for (const Citation& citation : citationsIn(path, readText(file))) {
                    ++count;
                    if (const QString why = fault(citation); !why.isEmpty())
                        wrong << path + ": " + citation.text + " " + why + " | " + citation.sentence.left(160);
                }
            }
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
        QVERIFY2(count > 400, qPrintable(QString::number(count)));
    }

    void everyPaperHasItsParts() {
        QCOMPARE(std::size_t(citedParts().size()), citedPapers().size());
        for (const CitedPaper& paper : citedPapers()) {
            const QList<CitedPart> parts = citedParts()[QString::fromStdString(std::string(paper.name))];
            QVERIFY(!parts.isEmpty() && !paper.reference.empty());
            QStringList seen;
            for (const CitedPart& part : parts) {
                const bool known =
                    std::any_of(kKinds.begin(), kKinds.end(), [&](const auto& one) { return one.first == part.kind; });
                QVERIFY2(known && !seen.contains(part.kind + part.number), qPrintable(part.kind + " " + part.number));
                seen << part.kind + part.number;
            }
        }
        QVERIFY(citation("SubGen", "Theorem 1").ends_with("(2024), Theorem 1"));
    }
};

KVSCOPE_TEST(CitationsTest)
#include "citations_test.moc"
