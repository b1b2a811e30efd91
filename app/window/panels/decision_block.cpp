// Explains the token under the pointer, otherwise the first selected one.
#include "app/window/panels/decision_block.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/token_decision.h"
#include "views/common/view_facts.h"

#include <QVBoxLayout>

#include <cmath>

namespace kvscope {

namespace {

QString tokenCaption(const CaptureReader& capture, TokenIndex token) {
    return QString("%1  “%2”").arg(countText(token), fromUtf8(displayText(capture.tokens().textOf(token))));
}

} // namespace

DecisionBlock::DecisionBlock(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {18, 10, 16, 10}, 4);
    m_hint = wrappedLabel(
        tr("Point at a token or select one: its rank, its score and the budget at which it flips stand here."), "quiet",
        this);
    column->addWidget(m_hint);
    m_verdict = roleLabel({}, "section", this);
    m_verdict->setObjectName("verdict");
    column->addWidget(m_verdict);
    m_token = new ElidedLabel("title", Qt::ElideRight, this);
    column->addWidget(m_token);
    m_facts = new FactGrid(this);
    column->addWidget(m_facts);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &DecisionBlock::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &DecisionBlock::refresh);
    connect(&m_workbench, &Workbench::focusChanged, this, &DecisionBlock::refresh);
    refresh();
}

void DecisionBlock::refresh() {
    const ViewInput input = m_workbench.viewInput();
    const PaneData* pane = activePane(input);
    if (pane && !pane->result) pane = nullptr;
    TokenIndex token = input.focus.hovered;
    if (token < 0 && !input.focus.selected.empty()) token = input.focus.selected.front();
    m_facts->setVisible(pane && token >= 0);
    m_token->setVisible(m_facts->isVisibleTo(this));
    m_verdict->setVisible(m_facts->isVisibleTo(this));
    m_hint->setVisible(!m_facts->isVisibleTo(this));
    if (!pane || token < 0) return;
    m_token->setFullText(tokenCaption(*input.capture, token));
    if (token >= pane->result->visible) {
        m_verdict->setText(tr("AFTER THE CUT"));
        m_facts->show({{tr("Not seen by the policy: it evaluates"), QString()}});
        return;
    }
    const TokenDecision decision = tokenDecisionOf(*pane->result, input.kvHead, token);
    m_verdict->setText(decision.isProtected ? tr("WHY KEPT: PROTECTED")
                       : decision.kept      ? tr("WHY KEPT")
                                            : tr("WHY EVICTED"));
    FactGrid::Facts facts;
    if (decision.scored) {
        facts.emplace_back(tr("Rank (0 is best)"),
                           tr("%1 of %2").arg(countText(decision.rank), countText(pane->result->visible)));
        facts.emplace_back(tr("Score"), scoreText(decision.score));
        for (const auto& [name, value] : decision.parts) facts.emplace_back("  " + fromUtf8(name), scoreText(value));
        if (!std::isnan(decision.margin))
            facts.emplace_back(decision.kept ? tr("Above the cut-off by") : tr("Below the cut-off by"),
                               scoreText(std::abs(decision.margin)));
    } else {
        facts.emplace_back(pane->result->request.recorded ? tr("The list holds no score of it")
                                                          : tr("The policy gives it no score"),
                           QString());
    }
    for (const QueryHeadDecision& own : decision.isProtected ? std::vector<QueryHeadDecision>() : decision.queryHeads)
        facts.emplace_back(
            tr("  query head %1: %2").arg(own.queryHead).arg(own.kept ? tr("keeps it") : tr("evicts it")),
            std::isnan(own.margin) ? QString()
                                   : tr("by %1, rank %2").arg(scoreText(std::abs(own.margin)), countText(own.rank)));
    if (decision.flipBudget > 0)
        facts.emplace_back(tr("Kept from a budget of"), tr("%1 tokens").arg(countText(decision.flipBudget)));
    else if (const std::string why = whyNoFlipBudget(*pane->result); decision.scored && !why.empty())
        facts.emplace_back(tr("Budget that keeps it: unknown, %1").arg(fromUtf8(why)), QString());
    m_facts->show(facts);
}

} // namespace kvscope
