// One number leads; what it means, which queries judged it and how firm it is stand beside it.
#include "app/window/panels/fidelity_block.h"

#include "app/session/head_means.h"
#include "app/window/appearance.h"
#include "app/window/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>

#include <cmath>
#include <limits>

namespace kvscope {

namespace {

QString tokenCaption(const CaptureReader& capture, TokenIndex token) {
    return QString("%1  “%2”").arg(countText(token), fromUtf8(displayText(capture.tokens().textOf(token))));
}

} // namespace

FidelityBlock::FidelityBlock(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(px(6));
    auto* head = new QHBoxLayout;
    head->addWidget(roleLabel(tr("FIDELITY"), "section", this));
    head->addStretch();
    m_judged = roleLabel({}, "quiet", this);
    head->addWidget(m_judged);
    column->addLayout(head);
    auto* lead = new QHBoxLayout;
    lead->setSpacing(px(14));
    m_lead = numberLabel(24, QFont::Bold, this);
    m_lead->setObjectName("leadError");
    m_lead->setAccessibleName(tr("Relative output error"));
    lead->addWidget(m_lead);
    auto* definition = new QVBoxLayout;
    definition->setSpacing(0);
    definition->addWidget(roleLabel(tr("relative output error"), "label", this));
    definition->addWidget(roleLabel(tr("‖z − a‖ / ‖a‖, mean over heads"), "quiet", this));
    lead->addLayout(definition);
    lead->addStretch();
    column->addLayout(lead);
    m_facts = new QGridLayout;
    m_facts->setVerticalSpacing(px(3));
    column->addLayout(m_facts);
    m_notes = roleLabel({}, "quiet", this);
    m_notes->setWordWrap(true);
    column->addWidget(m_notes);

    m_standingBox = new QWidget(this);
    auto* standing = new QVBoxLayout(m_standingBox);
    standing->setContentsMargins(0, px(8), 0, 0);
    standing->setSpacing(px(4));
    standing->addWidget(separatorLine(m_standingBox));
    m_verdict = roleLabel({}, "section", m_standingBox);
    m_verdict->setObjectName("verdict");
    standing->addSpacing(px(6));
    standing->addWidget(m_verdict);
    m_token = roleLabel({}, "title", m_standingBox);
    standing->addWidget(m_token);
    m_standing = new QGridLayout;
    m_standing->setVerticalSpacing(px(3));
    standing->addLayout(m_standing);
    column->addWidget(m_standingBox);

    connect(&m_workbench, &Workbench::sessionChanged, this, &FidelityBlock::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &FidelityBlock::refresh);
    connect(&m_workbench, &Workbench::focusChanged, this, &FidelityBlock::refresh);
    refresh();
}

void FidelityBlock::showFacts(QGridLayout* grid, const Facts& facts) {
    for (int i = 0; i < std::max(grid->count() / 2, static_cast<int>(facts.size())); ++i) {
        if (2 * i >= grid->count()) {
            const int row = i;
            grid->addWidget(roleLabel({}, "fact", grid->parentWidget()), row, 0);
            grid->addWidget(numberLabel(12, QFont::Normal, grid->parentWidget()), row, 1);
        }
        auto* name = static_cast<QLabel*>(grid->itemAt(2 * i)->widget());
        auto* value = static_cast<QLabel*>(grid->itemAt(2 * i + 1)->widget());
        const bool used = static_cast<std::size_t>(i) < facts.size();
        name->setVisible(used);
        value->setVisible(used);
        if (used) {
            name->setText(facts[static_cast<std::size_t>(i)].first);
            value->setText(facts[static_cast<std::size_t>(i)].second);
        }
    }
}

FidelityBlock::Facts FidelityBlock::fidelityFacts(const PaneData& pane, const ViewInput& input) const {
    const RunResult& result = *pane.result;
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    Facts facts;
    facts.emplace_back(tr("Retained attention mass"), result.fidelity
                                                          ? percentText(meanMassOf(result, *input.capture, input.kvHead))
                                                          : pane.computing ? tr("measuring")
                                                                           : tr("no judging query"));
    if (head < result.selection.heads.size()) {
        const HeadSelection& chosen = result.selection.heads[head];
        facts.emplace_back(tr("Kept, requested / realised"),
                           QString("%1 / %2").arg(countText(result.requested),
                                                  countText(static_cast<std::int64_t>(chosen.kept.size()))));
        facts.emplace_back(tr("of them protected"), countText(static_cast<std::int64_t>(chosen.protectedTokens.size())));
        facts.emplace_back(tr("Smallest decision margin"),
                           std::isinf(chosen.margin) ? tr("no decision") : scoreText(static_cast<double>(chosen.margin)));
    }
    if (result.fidelity && result.fidelity->skipped > 0)
        facts.emplace_back(tr("Queries skipped"), countText(result.fidelity->skipped));
    if (!result.steps.empty())
        facts.emplace_back(tr("Blocks processed"), countText(static_cast<std::int64_t>(result.steps.size())));
    return facts;
}

void FidelityBlock::refresh() {
    const ViewInput input = m_workbench.viewInput();
    const auto active = static_cast<std::size_t>(input.activePane);
    const PaneData* pane = active < input.panes.size() && input.panes[active].result ? &input.panes[active] : nullptr;
    const double error = pane ? meanErrorOf(*pane->result, *input.capture, input.kvHead)
                              : std::numeric_limits<double>::quiet_NaN();
    m_lead->setText(pane && pane->result->fidelity ? errorText(error) : QString("–"));
    m_judged->setText({});
    QString notes;
    if (pane) {
        if (const auto& fidelity = pane->result->fidelity)
            m_judged->setText(tr("%1 queries%2").arg(countText(fidelity->queryCount),
                                                     fidelity->seenQueries ? tr(", seen") : QString()));
        if (pane->result->simulated)
            notes += tr("Simulated on full-attention tensors. ");
        for (const std::string& note : pane->result->notes)
            notes += fromUtf8(note) + " ";
    }
    m_notes->setText(notes.trimmed());
    m_notes->setVisible(!notes.isEmpty());
    showFacts(m_facts, pane ? fidelityFacts(*pane, input) : Facts{});
    refreshStanding(input, pane);
}

void FidelityBlock::refreshStanding(const ViewInput& input, const PaneData* pane) {
    TokenIndex token = input.focus.hovered;
    if (token < 0 && !input.focus.selected.empty())
        token = input.focus.selected.front();
    m_standingBox->setVisible(pane && token >= 0);
    if (!pane || token < 0)
        return;
    m_token->setText(tokenCaption(*input.capture, token));
    if (token >= pane->result->visible) {
        m_verdict->setText(tr("AFTER THE CUT"));
        showFacts(m_standing, {{tr("Not seen by the policy: it is part of the judge"), QString()}});
        return;
    }
    const TokenStanding standing = standingOf(*pane->result, input.kvHead, token);
    m_verdict->setText(standing.isProtected ? tr("WHY KEPT: PROTECTED") : standing.kept ? tr("WHY KEPT") : tr("WHY EVICTED"));
    Facts facts;
    if (standing.scored) {
        facts.emplace_back(tr("Rank (0 is best)"), tr("%1 of %2").arg(countText(standing.rank), countText(pane->result->visible)));
        facts.emplace_back(tr("Score"), scoreText(standing.score));
        for (const auto& [name, value] : standing.parts)
            facts.emplace_back("  " + fromUtf8(name), scoreText(value));
        facts.emplace_back(standing.kept ? tr("Above the cut-off by") : tr("Below the cut-off by"),
                           scoreText(std::abs(standing.margin)));
    } else {
        facts.emplace_back(tr("The policy gives it no score"), QString());
    }
    if (standing.flipBudget > 0)
        facts.emplace_back(tr("Kept from a budget of"), tr("%1 tokens").arg(countText(standing.flipBudget)));
    showFacts(m_standing, facts);
}

} // namespace kvscope
