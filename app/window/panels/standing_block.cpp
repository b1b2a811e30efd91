// The token under the pointer is explained, without one the first that is selected.
#include "app/window/panels/standing_block.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/token_standing.h"

#include <QVBoxLayout>

#include <cmath>

namespace kvscope {

namespace {

QString tokenCaption(const CaptureReader& capture, TokenIndex token) {
    return QString("%1  “%2”").arg(countText(token), fromUtf8(displayText(capture.tokens().textOf(token))));
}

} // namespace

StandingBlock::StandingBlock(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(px(18), px(10), px(16), px(10));
    column->setSpacing(px(4));
    m_hint = roleLabel(tr("Point at a token or select one: its rank, its score and the budget at which it flips stand here."), "quiet", this);
    m_hint->setWordWrap(true);
    column->addWidget(m_hint);
    m_verdict = roleLabel({}, "section", this);
    m_verdict->setObjectName("verdict");
    column->addWidget(m_verdict);
    m_token = new ElidedLabel("title", Qt::ElideRight, this);
    column->addWidget(m_token);
    m_facts = new FactGrid(this);
    column->addWidget(m_facts);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &StandingBlock::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &StandingBlock::refresh);
    connect(&m_workbench, &Workbench::focusChanged, this, &StandingBlock::refresh);
    refresh();
}

void StandingBlock::refresh() {
    const ViewInput input = m_workbench.viewInput();
    const auto active = static_cast<std::size_t>(input.activePane);
    const PaneData* pane = active < input.panes.size() && input.panes[active].result ? &input.panes[active] : nullptr;
    TokenIndex token = input.focus.hovered;
    if (token < 0 && !input.focus.selected.empty())
        token = input.focus.selected.front();
    m_facts->setVisible(pane && token >= 0);
    m_token->setVisible(m_facts->isVisibleTo(this));
    m_verdict->setVisible(m_facts->isVisibleTo(this));
    m_hint->setVisible(!m_facts->isVisibleTo(this));
    if (!pane || token < 0)
        return;
    m_token->setFullText(tokenCaption(*input.capture, token));
    if (token >= pane->result->visible) {
        m_verdict->setText(tr("AFTER THE CUT"));
        m_facts->show({{tr("Not seen by the policy: it is part of the judge"), QString()}});
        return;
    }
    const TokenStanding standing = standingOf(*pane->result, input.kvHead, token);
    m_verdict->setText(standing.isProtected ? tr("WHY KEPT: PROTECTED") : standing.kept ? tr("WHY KEPT") : tr("WHY EVICTED"));
    FactGrid::Facts facts;
    if (standing.scored) {
        facts.emplace_back(tr("Rank (0 is best)"), tr("%1 of %2").arg(countText(standing.rank), countText(pane->result->visible)));
        facts.emplace_back(tr("Score"), scoreText(standing.score));
        for (const auto& [name, value] : standing.parts)
            facts.emplace_back("  " + fromUtf8(name), scoreText(value));
        if (!std::isnan(standing.margin))
            facts.emplace_back(standing.kept ? tr("Above the cut-off by") : tr("Below the cut-off by"),
                               scoreText(std::abs(standing.margin)));
    } else {
        facts.emplace_back(pane->result->request.recorded ? tr("The list holds no score of it") : tr("The policy gives it no score"), QString());
    }
    for (const QueryHeadStanding& own : standing.isProtected ? std::vector<QueryHeadStanding>() : standing.queryHeads)
        facts.emplace_back(tr("  query head %1: %2").arg(own.queryHead).arg(own.kept ? tr("keeps it") : tr("evicts it")),
                           std::isnan(own.margin) ? QString() : tr("by %1, rank %2").arg(scoreText(std::abs(own.margin)), countText(own.rank)));
    if (standing.flipBudget > 0)
        facts.emplace_back(tr("Kept from a budget of"), tr("%1 tokens").arg(countText(standing.flipBudget)));
    else if (const std::string why = whyNoFlipBudget(*pane->result); standing.scored && !why.empty())
        facts.emplace_back(tr("Budget that keeps it: unknown, %1").arg(fromUtf8(why)), QString());
    m_facts->show(facts);
}

} // namespace kvscope
