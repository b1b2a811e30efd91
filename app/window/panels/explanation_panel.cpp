// Shows a policy's own .md file, as everywhere else.
#include "app/window/panels/explanation_panel.h"

#include "app/lessons/run_facts.h"
#include "app/report/html.h"
#include "app/window/panels/fact_grid.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/style/trap_links.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/step_driver.h"
#include "core/policies/policy.h"

#include <QFontMetricsF>
#include <QRegularExpression>
#include <QTextBlock>
#include <QTextCursor>
#include <QTextDocument>
#include <QTextList>
#include <QTextTable>
#include <QVBoxLayout>

#include <algorithm>

namespace kvscope {

namespace {

bool isListing(const QTextBlock& block) {
    return block.isValid() && block.blockFormat().hasProperty(QTextFormat::BlockCodeLanguage);
}

/// Spacing below paragraphs, which Markdown lacks, and listings in small monospaced type.
void setSpacing(QTextDocument& page, const QFont& listing) {
    for (QTextBlock block = page.begin(); block.isValid(); block = block.next()) {
        QTextCursor cursor(block);
        const bool listed = isListing(block);
        QTextBlockFormat format;
        format.setNonBreakableLines(listed);
        format.setTopMargin(0);
        if (QTextList* list = block.textList()) { // the usual indent takes a sixth of the panel
            QTextListFormat close = list->format();
            close.setIndent(0);
            list->setFormat(close);
            format.setLeftMargin(px(14));
        }
        format.setBottomMargin(listed && isListing(block.next()) ? 0 : px(block.textList() ? 3 : 7));
        cursor.mergeBlockFormat(format);
        if (!listed) continue;
        cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
        QTextCharFormat text;
        text.setFont(listing);
        cursor.mergeCharFormat(text);
    }
}

/// One thin line around a cell, where Qt draws two raised ones.
void setTables(QTextDocument& page) {
    for (QTextFrame* frame : page.rootFrame()->childFrames())
        if (auto* table = qobject_cast<QTextTable*>(frame)) {
            QTextTableFormat format = table->format();
            format.setBorderCollapse(true);
            format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
            format.setBorderBrush(qColor(chrome().border));
            format.setBorder(1);
            format.setCellPadding(px(3));
            table->setFormat(format);
        }
}

QString pageHtml(const QString& markdown, const QFont& font, const QFont& listing, int columns) {
    QTextDocument page;
    page.setDefaultFont(font);
    QString paragraphs = markdown; // each paragraph with a bold title starts on a new line
    paragraphs.replace("\n**", "\n\n**");
    page.setMarkdown(withFormulaLines(withUnbrokenNumbers(withTrapLinks(paragraphs)), columns));
    setSpacing(page, listing);
    setTables(page);
    return fromUtf8(withScripts(page.toHtml().toStdString()));
}

constexpr int kCellIndent = 2, kFurtherIndent = 4;
constexpr int kNever = 100; ///< cost of a break that leaves an operator at the end of a line

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
                        (relates && text.left(space).section(' ', -3).contains("over")); // bounds of a sum
    return inside + (bounds ? 5 : isRelation(after) ? 2 : isOperator(after) ? 3 : 4);
}

/// Length of the first line of at most `most` characters, broken at a space where there is one.
qsizetype breakIn(const QString& text, int most) {
    qsizetype best = -1;
    int bestCost = kNever + 1, depth = 0;
    for (const bool any : {false, true}) { // a break in the first third of the line only as a last resort
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

ExplanationPanel::ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_steps(steps) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {18, 12, 16, 16}, 6);
    m_name = added(column, named("explanationName", wrappedLabel({}, "policyTitle", this)));
    m_paper = added(column, named("explanationPaper", wrappedLabel({}, "quiet", this)));
    m_facts = added(column, named("runFacts", new QWidget(this)));
    auto* facts = makeLayout<QVBoxLayout>(m_facts, {0, 4, 0, 6}, 4);
    facts->addWidget(roleLabel(tr("NOW"), "section", m_facts));
    m_now = added(facts, new FactGrid(m_facts));
    facts->addWidget(roleLabel(tr("CHECKED ON THIS RUN"), "section", m_facts));
    m_checks = added(facts, named("runChecks", wrappedLabel({}, "fact", m_facts)));
    m_text = added(column, named("explanation", new QLabel(this)));
    m_text->setTextFormat(Qt::RichText);
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextBrowserInteraction | Qt::TextSelectableByKeyboard);
    m_text->setOpenExternalLinks(true);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &ExplanationPanel::refresh);
    connect(&m_steps, &StepDriver::changed, this, &ExplanationPanel::refresh);
    refresh();
}

std::string ExplanationPanel::explainedPolicy() const {
    const View* explained = m_workbench.session().layout == WindowLayout::Teach ? m_steps.view() : nullptr;
    const auto data = explained ? dataAs<ExplainedData>(m_workbench.drawn(*explained).input) : nullptr;
    return data ? data->policy : std::string();
}

void ExplanationPanel::show(const PolicyCard& card, const QString& where) {
    m_name->setText(fromUtf8(card.name));
    m_paper->setText(fromUtf8(card.paper) + where);
    QString text = fromUtf8(card.explanation);
    if (text.startsWith("# ")) // the panel shows the name already
        text = text.mid(text.indexOf('\n') + 1).trimmed();
    setPage(text);
}

void ExplanationPanel::setPage(const QString& markdown) {
    const QFont listing = numberFont(11);
    const QMargins margins = layout()->contentsMargins();
    const double room = width() - margins.left() - margins.right();
    const int columns = std::max(20, static_cast<int>(room / QFontMetricsF(listing).horizontalAdvance('0')));
    if (m_shown == std::tuple(markdown, m_text->font(), listing, columns)) return;
    m_shown = {markdown, m_text->font(), listing, columns};
    m_text->setText(pageHtml(markdown, m_text->font(), listing, columns));
}

void ExplanationPanel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    followRun();
}

void ExplanationPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    setPage(std::get<0>(m_shown));
}

void ExplanationPanel::followRun() {
    const View* played = m_workbench.session().layout == WindowLayout::Teach ? m_steps.view() : nullptr;
    const RunFacts facts = played ? runFacts(m_workbench.drawn(*played).input) : RunFacts();
    m_facts->setVisible(!facts.now.empty());
    FactGrid::Facts rows;
    for (const auto& [name, value] : facts.now) rows.emplace_back(fromUtf8(name), fromUtf8(value));
    m_now->show(rows);
    QStringList checks;
    for (const RunFacts::Check& check : facts.checks)
        checks += (check.holds ? tr("✓ %1") : tr("✗ %1")).arg(fromUtf8(check.sentence));
    m_checks->setText(checks.join('\n'));
}

void ExplanationPanel::refresh() {
    if (isVisible()) followRun();
    if (const std::string explained = explainedPolicy(); !explained.empty())
        return show(policyById(explained).card(), tr(". Steps: %1").arg(fromUtf8(m_steps.view()->card().name)));
    const Session& session = m_workbench.session();
    const auto active = static_cast<std::size_t>(session.activePane);
    if (active >= session.panes.size() || !session.panes[active].recordedPath.empty()) {
        m_name->setText(session.panes.empty() ? tr("No pane") : tr("Recorded list"));
        m_paper->clear();
        setPage(session.panes.empty() ? tr("Add a policy: its explanation stands here.")
                                      : tr("The kept tokens were read from a file; what chose them is written there."));
        return;
    }
    show(policyById(session.panes[active].policy.policy).card(), {});
}

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
