// Shows a policy's own .md file, as everywhere else.
#include "app/window/panels/explanation_panel.h"

#include "app/lessons/run_facts.h"
#include "app/report/html.h"
#include "app/window/panels/fact_grid.h"
#include "app/window/panels/formula_lines.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/style/trap_links.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/step_driver.h"
#include "core/policies/policy.h"

#include <QFontMetricsF>
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

} // namespace

ExplanationPanel::ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_steps(steps) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {18, 12, 16, 16}, 6);
    m_name = wrappedLabel({}, "policyTitle", this);
    m_name->setObjectName("explanationName");
    column->addWidget(m_name);
    m_paper = wrappedLabel({}, "quiet", this);
    m_paper->setObjectName("explanationPaper");
    column->addWidget(m_paper);
    m_facts = new QWidget(this);
    m_facts->setObjectName("runFacts");
    auto* facts = makeLayout<QVBoxLayout>(m_facts, {0, 4, 0, 6}, 4);
    facts->addWidget(roleLabel(tr("NOW"), "section", m_facts));
    m_now = new FactGrid(m_facts);
    facts->addWidget(m_now);
    facts->addWidget(roleLabel(tr("CHECKED ON THIS RUN"), "section", m_facts));
    m_checks = wrappedLabel({}, "fact", m_facts);
    m_checks->setObjectName("runChecks");
    facts->addWidget(m_checks);
    column->addWidget(m_facts);
    m_text = new QLabel(this);
    m_text->setObjectName("explanation");
    m_text->setTextFormat(Qt::RichText);
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextBrowserInteraction | Qt::TextSelectableByKeyboard);
    m_text->setOpenExternalLinks(true);
    column->addWidget(m_text);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &ExplanationPanel::refresh);
    connect(&m_steps, &StepDriver::changed, this, &ExplanationPanel::refresh);
    refresh();
}

std::string ExplanationPanel::explainedPolicy() const {
    const View* explained = m_workbench.session().layout == WindowLayout::Teach ? m_steps.view() : nullptr;
    return explained ? explained->explainedPolicy(m_workbench.drawn(*explained).input) : std::string();
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
    const RunFacts facts = played ? runFacts(m_workbench.viewInput(*played)) : RunFacts();
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

} // namespace kvscope
