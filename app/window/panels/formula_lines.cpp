// Formulas are written for a page and shown in a narrow panel, so lines must break where the meaning stays.
#include "app/window/panels/formula_lines.h"

#include <QRegularExpression>

#include <algorithm>

namespace kvscope {

namespace {

constexpr int kCellIndent = 2, kFurtherIndent = 4;
constexpr int kNever = 100; ///< cost of a break that leaves an operator behind

bool isRelation(const QString& word) {
    static const QStringList kRelations = {"=", "<=", ">=", "≤", "≥", "+=", "←", "iff"};
    return kRelations.contains(word);
}

bool isOperator(const QString& word) {
    static const QStringList kOperators = {"+", "-", "−", "*", "/", "·", "<", ">"};
    return isRelation(word) || kOperators.contains(word);
}

/// Change of bracket depth at a character: <k, q> is a pair of brackets, a < b is not.
int depthStep(const QString& text, qsizetype i) {
    const auto at = [&](qsizetype j) { return j >= 0 && j < text.size() ? text[j] : QChar(' '); };
    const QChar c = text[i];
    if (QString("([{⟨").contains(c)) return 1;
    if (QString(")]}⟩").contains(c)) return -1;
    if (c == '<' && at(i + 1) != ' ' && at(i + 1) != '=') return 1;
    return c == '>' && at(i - 1) != ' ' && at(i + 1) != '=' ? -1 : 0;
}

/// Cost of a break at a space; `depth` is the bracket depth there.
int costOf(const QString& text, qsizetype space, int depth) {
    const QString before = text.left(space).section(' ', -1), after = text.mid(space + 1).section(' ', 0, 0);
    if (isOperator(before)) return kNever;
    constexpr qsizetype kLeastRest = 9; // a shorter rest should not have its own line
    const int inside = (depth == 0 ? 0 : 3 + 2 * depth) + (text.size() - space <= kLeastRest ? 3 : 0);
    if (before.endsWith(';')) return inside;
    if (before.endsWith(',') || before.endsWith(':') || after.startsWith("--")) return inside + 1;
    const bool relates = isRelation(after) || isRelation(text.mid(space + 1).section(' ', 1, 1));
    const bool bounds = after == "<" || after == ">" || before == "over" ||
                        (relates && text.left(space).section(' ', -3).contains("over")); // of a sum
    return inside + (bounds ? 5 : isRelation(after) ? 2 : isOperator(after) ? 3 : 4);
}

/// Length of the first line of at most `most` characters, broken at a space where there is one.
qsizetype breakIn(const QString& text, int most) {
    qsizetype best = -1;
    int bestCost = kNever + 1, depth = 0;
    for (const bool any : {false, true}) { // a single first word only as a last resort
        depth = 0;
        for (qsizetype i = 0; i < std::min<qsizetype>(text.size(), most + 1); ++i) {
            depth = std::max(0, depth + depthStep(text, i));
            if (text[i] != ' ' || (!any && 3 * i < most)) continue;
            if (const int cost = costOf(text, i, depth); cost <= bestCost) {
                bestCost = cost;
                best = i;
            }
        }
        if (best > 0) return best;
    }
    return most;
}

void setBroken(QStringList& lines, QString text, int indent, int columns) {
    for (int own = indent; !text.isEmpty(); own = indent + kFurtherIndent) {
        const auto word = static_cast<int>(text.section(' ', 0, 0).size());
        own = std::clamp(columns - word, 0, own); // for a word nearly as long as a line
        const int most = std::max(8, columns - own);
        const qsizetype end = text.size() <= most ? text.size() : breakIn(text, most);
        lines.push_back(QString(own, ' ') + text.left(end));
        text = text.mid(end).trimmed();
    }
}

} // namespace

QStringList formulaLines(const QStringList& listing, int columns) {
    if (std::ranges::all_of(listing, [&](const QString& line) { return line.size() <= columns; })) return listing;
    static const QRegularExpression kGap(" {2,}");
    QStringList lines;
    for (const QString& line : listing) {
        if (line.trimmed().isEmpty()) {
            lines.emplace_back();
            continue;
        }
        const QStringList cells = line.trimmed().split(kGap);
        bool goesOn = line.startsWith(' '); // continues a name or formula of the lines above
        bool joins = false;
        for (const QString& cell : cells) {
            const int indent = goesOn ? kCellIndent : 0;
            if (joins && lines.back().size() + 2 + cell.size() <= columns)
                lines.back() += "  " + cell;
            else
                setBroken(lines, cell, indent, columns);
            joins = lines.back().endsWith(cell);
            goesOn = goesOn || !(cell.endsWith(',') || cell.endsWith(';'));
        }
    }
    return lines;
}

QString withFormulaLines(const QString& markdown, int columns) {
    const QString kIndent(4, ' ');
    QStringList page, listing;
    const auto flush = [&] {
        for (const QString& line : formulaLines(listing, columns)) page.push_back(kIndent + line);
        listing.clear();
    };
    for (const QString& line : markdown.split('\n')) {
        if (line.startsWith(kIndent)) {
            listing.push_back(line.mid(kIndent.size()));
            continue;
        }
        flush();
        page.push_back(line);
    }
    flush();
    return page.join('\n');
}

QString withUnbrokenNumbers(const QString& markdown) {
    static const QRegularExpression kNumbered("\\b(Eqs?\\.) ");
    return QString(markdown).replace(kNumbered, "\\1" + QString(QChar::Nbsp));
}

} // namespace kvscope
