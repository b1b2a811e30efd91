// Explains the token under the pointer, otherwise the first selected one.
#include "app/window/panels/decision_block.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/token_decision.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QPushButton>
#include <QVBoxLayout>

#include <cmath>

namespace kvscope {

namespace {

/// Where the token stands among the others, in words.
QString standing(const RunResult& result, KvHeadIndex head, const TokenDecision& decision) {
    if (decision.isProtected) return QObject::tr("The policy keeps its first and last tokens, whatever they score.");
    if (!decision.scored) {
        if (result.request.recorded)
            return QObject::tr("The list says what is kept, not why: it holds no score of it.");
        return result.scores.empty()
                   ? QObject::tr("The policy decides without a score per token, so there is neither rank nor cut-off.")
                   : QObject::tr("It left the cache in an earlier block, before the last scores were computed.");
    }
    const auto share = [&](std::int64_t count) {
        return fromUtf8(formatPercent(static_cast<double>(count) / static_cast<double>(result.visible)));
    };
    const auto kept = std::ssize(result.selection.heads[static_cast<std::size_t>(head.value)].kept);
    const QString place = QObject::tr("%1 of %2 tokens (%3) rank before it, and %4 (%5) are kept.")
                              .arg(countText(decision.rank), countText(result.visible), share(decision.rank),
                                   countText(kept), share(kept));
    if (decision.kept || !std::isfinite(decision.margin)) return place;
    return QObject::tr("%1 Its score is %2, the cut-off is %3.")
        .arg(place, scoreText(decision.score), scoreText(decision.score - decision.margin));
}

} // namespace

DecisionBlock::DecisionBlock(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {18, 10, 16, 10}, 4);
    m_hint = wrappedLabel(
        tr("Point at a token or select one: its rank, its score and the budget at which it flips stand here."), "quiet",
        this);
    column->addWidget(m_hint);
    m_verdict = added(column, named("verdict", roleLabel({}, "section", this)));
    m_token = added(column, new ElidedLabel("title", Qt::ElideRight, this));
    m_sentence = added(column, named("standing", wrappedLabel({}, "fact", this)));
    m_facts = added(column, new FactGrid(this, m_workbench.clock()));
    m_flip = named("flipBudget", wordButton({}, this));
    m_flip->setToolTip(tr("Sets the budget: of all panes where they are linked, else of this one."));
    column->addSpacing(px(4));
    column->addWidget(m_flip);
    connect(m_flip, &QPushButton::clicked, this, [this] {
        const Budget budget{Budget::Unit::Tokens, static_cast<double>(m_flipBudget)};
        m_workbench.change([&](Session& s) { setBudget(s, budget); }, tr("Budget"));
    });
    column->addStretch();
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        if (changed == m_workbench.session().activePane) refresh();
    });
    m_workbench.tell(this, &DecisionBlock::refresh, &Workbench::sessionChanged, &Workbench::dataChanged,
                     &Workbench::focusChanged);
    refresh();
}

void DecisionBlock::offerFlip(std::int64_t budget, bool kept) {
    m_flipBudget = budget;
    m_flip->setVisible(budget > 0);
    if (budget > 0)
        m_flip->setText(kept ? tr("Least that keeps it: %1").arg(countText(budget))
                             : tr("Keep it: %1 tokens").arg(countText(budget)));
}

void DecisionBlock::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    refresh();
}

const TokenDecision& DecisionBlock::decisionOf(const std::shared_ptr<const RunResult>& result, KvHeadIndex head,
                                               TokenIndex token) {
    if (m_decided.result != result || m_decided.head != head || m_decided.token != token)
        m_decided = {result, head, token, tokenDecisionOf(*result, head, token)};
    return m_decided.decision;
}

void DecisionBlock::refresh() {
    if (!isVisible()) return; // showEvent brings it up to date
    const auto [input, options, isOutdated] = m_workbench.drawnPane(m_workbench.session().activePane);
    const PaneData* pane = activePane(input);
    if (pane && !pane->result) pane = nullptr;
    TokenIndex token = input.focus.hovered;
    if (token < 0 && !input.focus.selected.empty()) token = input.focus.selected.front();
    const bool isExplained = pane && token >= 0;
    m_hint->setVisible(!isExplained);
    for (QWidget* part : std::initializer_list<QWidget*>{m_facts, m_token, m_verdict, m_sentence})
        part->setVisible(isExplained);
    if (!isExplained) return offerFlip(0, false);
    m_token->setFullText(QString("%1  “%2”").arg(countText(token), fromUtf8(tokenText(input, token))));
    if (token >= pane->result->visible) {
        offerFlip(0, false);
        showText(m_verdict, tr("AFTER THE CUT"));
        showText(m_sentence, tr("No policy sees it: the queries after the cut judge what was kept."));
        m_facts->show({});
        return;
    }
    const TokenDecision& decision = decisionOf(pane->result, input.kvHead, token);
    showText(m_verdict, decision.isProtected ? tr("WHY KEPT: PROTECTED")
                        : decision.kept      ? tr("WHY KEPT")
                                             : tr("WHY EVICTED"));
    showText(m_sentence, standing(*pane->result, input.kvHead, decision));
    FactGrid::Facts facts;
    if (decision.scored) {
        facts.emplace_back(tr("Rank (0 is best)"),
                           tr("%1 of %2").arg(countText(decision.rank), countText(pane->result->visible)));
        facts.emplace_back(tr("Score"), scoreText(decision.score));
        for (const auto& [name, value] : decision.parts) facts.emplace_back("  " + fromUtf8(name), scoreText(value));
        if (!std::isnan(decision.margin))
            facts.emplace_back(decision.kept ? tr("Above the cut-off by") : tr("Below the cut-off by"),
                               scoreText(std::abs(decision.margin)));
    }
    for (const QueryHeadDecision& own : decision.isProtected ? std::vector<QueryHeadDecision>() : decision.queryHeads)
        facts.emplace_back(
            tr("  query head %1: %2").arg(own.queryHead).arg(own.kept ? tr("keeps it") : tr("evicts it")),
            std::isnan(own.margin) ? QString()
                                   : tr("by %1, rank %2").arg(scoreText(std::abs(own.margin)), countText(own.rank)));
    offerFlip(decision.flipBudget, decision.kept);
    if (decision.flipBudget > 0)
        facts.emplace_back(tr("Kept from"), fromUtf8(formatBudget(decision.flipBudget, pane->result->visible)));
    else if (const std::string why = whyNoFlipBudget(*pane->result); decision.scored && !why.empty())
        facts.emplace_back(tr("Budget that keeps it: unknown, %1").arg(fromUtf8(why)), QString());
    m_facts->show(facts, isOutdated);
}

} // namespace kvscope
