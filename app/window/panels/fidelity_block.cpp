// The main error of the active pane, with its meaning, its evaluation queries and its interval.
#include "app/window/panels/fidelity_block.h"

#include "app/window/canvas/capture_caption.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/second_workbench.h"
#include "core/metrics/fidelity.h"
#include "core/run/calibrated_budget.h"
#include "core/run/head_means.h"
#include "core/run/stored_rows.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QHBoxLayout>
#include <QStyle>
#include <QVBoxLayout>

#include <cmath>

namespace kvscope {

// "131,072 tokens (100.0 %)" fits into the narrowest panel (200) beside its scroll bar with the smaller inset.
constexpr int kNarrow = 224;
constexpr QMargins kInset(18, 10, 16, 10), kNarrowInset(8, 10, 6, 10); // design pixels

FidelityBlock::FidelityBlock(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    auto* column = makeLayout<QVBoxLayout>(this, kInset, 6);
    setObjectName("panelBody");
    m_caption = added(column, new CaptureCaption(m_workbench, 1, this));
    auto* lead = innerLayout<QHBoxLayout>(column, {}, 14);
    m_lead = added(lead, named("leadError", new LiveNumber(24, QFont::Bold, this, m_workbench.clock())));
    m_lead->reserve(errorText(0.123));
    m_lead->setAccessibleName(tr("Relative output error"));
    auto* definition = innerLayout<QVBoxLayout>(lead, {}, 0, 1);
    for (QLabel* line : {roleLabel(tr("relative output error"), "label", this),
                         roleLabel(tr("‖z − a‖ / ‖a‖, mean over heads"), "quiet", this)}) {
        line->setWordWrap(true);
        definition->addWidget(line);
    }
    m_warning = added(column, buildWarning());
    m_facts = added(column, new FactGrid(this, m_workbench.clock()));
    m_evaluationNote = added(column, roleLabel({}, "quiet", this));
    m_notes = added(column, wrappedLabel({}, "quiet", this));
    m_secondCaption = added(column, new CaptureCaption(m_workbench.second(), 2, this));
    m_secondFacts = added(column, named("secondFidelity", new FactGrid(this, m_workbench.clock())));
    for (CaptureCaption* caption : {m_caption, m_secondCaption}) caption->setContentsMargins({});
    column->addStretch();

    for (Workbench* one : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())})
        one->tell(this, &FidelityBlock::refresh, &Workbench::sessionChanged, &Workbench::panesChanged,
                  &Workbench::dataChanged, &Workbench::captureChanged);
    refresh();
}

void FidelityBlock::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    refresh();
}

void FidelityBlock::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    // Narrow margins can make the block lower, so that its scroll bar goes. The width that this frees must not bring
    // the wide margins back, or the bar would come and go without end.
    const bool wasNarrow = layout()->contentsMargins().left() == px(kNarrowInset.left());
    const int bar = wasNarrow ? style()->pixelMetric(QStyle::PM_ScrollBarExtent, nullptr, this) : 0;
    const QMargins inset = width() < px(kNarrow) + bar ? kNarrowInset : kInset;
    layout()->setContentsMargins(px(inset.left()), px(inset.top()), px(inset.right()), px(inset.bottom()));
}

QWidget* FidelityBlock::buildWarning() {
    auto* box = named("budgetWarning", new QFrame(this));
    auto* column = makeLayout<QVBoxLayout>(box, {10, 6, 10, 6}, 2);
    m_warningTitle = roleLabel({}, "warningTitle", box);
    m_warningText = roleLabel({}, "label", box);
    for (QLabel* line : {m_warningTitle, m_warningText}) {
        line->setWordWrap(true);
        column->addWidget(line);
    }
    return box;
}

QString FidelityBlock::budgetWarning(const PaneData& pane, const ViewInput& input) const {
    const RunResult& result = *pane.measured;
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    if (head >= result.selection.heads.size() || !takesBudget(result) ||
        !result.selection.heads[head].queryHeads.empty()) // a union of query heads' sets has another size
        return {};
    const std::int64_t kept = std::ssize(result.selection.heads[head].kept);
    return kept == result.requested ? QString()
                                    : tr("Keeps %1, not %2")
                                          .arg(fromUtf8(formatBudget(kept, result.visible)),
                                               fromUtf8(formatBudget(result.requested, result.visible)));
}

FactGrid::Facts FidelityBlock::fidelityFacts(const PaneData& pane, const ViewInput& input) const {
    const RunResult& result = *pane.measured;
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    FactGrid::Facts facts;
    facts.emplace_back(tr("Retained attention mass"),
                       result.fidelity ? percentText(meanMassOf(result, *input.capture, input.kvHead))
                                       : tr("no evaluation query"));
    if (head < result.selection.heads.size()) {
        const HeadSelection& chosen = result.selection.heads[head];
        facts.emplace_back(tr("Budget"), takesBudget(result) ? fromUtf8(formatBudget(result.requested, result.visible))
                                                             : tr("not used"));
        facts.emplace_back(tr("Kept"), fromUtf8(formatBudget(std::llround(chosen.attendedTokens()), result.visible)));
        if (const auto stored = storedOtherwise(result, input.kvHead))
            facts.emplace_back(tr("Stored, as tokens"), fromUtf8(formatBudget(std::llround(*stored), result.visible)));
        if (!chosen.queryHeads.empty())
            facts.emplace_back(tr("Union of %1 query heads").arg(chosen.queryHeads.size()),
                               countText(std::ssize(chosen.kept)));
        facts.emplace_back(tr("of them protected"),
                           countText(static_cast<std::int64_t>(chosen.protectedTokens.size())));
        facts.emplace_back(tr("Smallest decision margin"),
                           std::isinf(chosen.margin) ? tr("no decision") : errorText(chosen.margin));
    }
    if (result.fidelity && result.fidelity->skipped > 0)
        facts.emplace_back(tr("Pairs of head and query skipped"), countText(result.fidelity->skipped));
    if (!result.steps.empty())
        facts.emplace_back(tr("Blocks processed"), countText(static_cast<std::int64_t>(result.steps.size())));
    return facts;
}

void FidelityBlock::refreshSecond() {
    const SecondWorkbench& second = m_workbench.second();
    for (QWidget* widget : std::initializer_list<QWidget*>{m_caption, m_secondCaption, m_secondFacts})
        widget->setVisible(second.isOpen());
    if (!second.isOpen()) return;
    const auto [input, options, isOutdated] = second.drawnPane(second.session().activePane);
    const PaneData* pane = activePane(input);
    FactGrid::Facts facts;
    if (pane && pane->measured) {
        const bool isMeasured = pane->measured->fidelity != nullptr;
        facts = fidelityFacts(*pane, input);
        facts.insert(facts.begin(), {tr("Relative output error"),
                                     isMeasured ? errorText(meanErrorOf(*pane->measured, *input.capture, input.kvHead))
                                                : QString("–")});
    }
    m_secondFacts->show(facts, isOutdated || (pane && pane->measured != pane->result));
}

void FidelityBlock::refresh() {
    if (!isVisible()) return; // showEvent brings it up to date
    refreshSecond();
    const auto [input, options, isOutdated] = m_workbench.drawnPane(m_workbench.session().activePane);
    const PaneData* pane = activePane(input);
    if (pane && !pane->measured) pane = nullptr;
    const bool isOlder = isOutdated || (pane && pane->measured != pane->result);
    const bool isMeasured = pane && pane->measured->fidelity;
    m_lead->show(isMeasured ? errorText(meanErrorOf(*pane->measured, *input.capture, input.kvHead)) : QString("–"),
                 isOlder);
    QString evaluated;
    QStringList said;
    if (pane) {
        if (const auto& fidelity = pane->measured->fidelity)
            evaluated = tr("over %1%2")
                            .arg(fromUtf8(formatCounted(fidelity->queryCount, "evaluation query")),
                                 fidelity->seenQueries ? tr(", seen") : QString());
        for (const std::string& note : pane->measured->notes) said += fromUtf8(note);
    }
    showText(m_evaluationNote, evaluated);
    const QString warning = pane ? budgetWarning(*pane, input) : QString();
    showText(m_warningTitle, warning);
    showText(m_warningText, warning.isEmpty() ? QString() : said.join(" "));
    m_warningText->setVisible(!m_warningText->text().isEmpty());
    m_warning->setVisible(!warning.isEmpty());
    QStringList notes = warning.isEmpty() ? said : QStringList();
    if (pane && pane->measured->simulated) notes.prepend(tr("Simulated on full-attention tensors."));
    showText(m_notes, notes.join(" "));
    m_notes->setVisible(!notes.isEmpty());
    m_facts->show(pane ? fidelityFacts(*pane, input) : FactGrid::Facts{}, isOlder);
}

} // namespace kvscope
