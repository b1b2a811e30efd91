#pragma once

#include "app/window/panels/fact_grid.h"
#include "app/workbench/workbench.h"
#include "core/run/token_decision.h"

class QLabel;
class QPushButton;

namespace kvscope {

class ElidedLabel;

/// Why the active pane keeps or evicts a token: a sentence, rank, score and its parts, margin, and the budget at which
/// it flips, which a click sets.
class DecisionBlock : public QWidget {
    Q_OBJECT

public:
    explicit DecisionBlock(Workbench& workbench, QWidget* parent = nullptr);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void refresh();
    const TokenDecision& decisionOf(const std::shared_ptr<const RunResult>& result, KvHeadIndex head, TokenIndex token);
    void offerFlip(std::int64_t budget, bool kept); ///< 0: there is nothing to offer

    struct Decided {
        std::shared_ptr<const RunResult> result;
        KvHeadIndex head;
        TokenIndex token = -1;
        TokenDecision decision;
    };

    Workbench& m_workbench;
    Decided m_decided; ///< the last one, kept: ranks of long prompts take milliseconds, and most signals change none
    QLabel *m_hint, *m_verdict, *m_sentence;
    QPushButton* m_flip;
    std::int64_t m_flipBudget = 0;
    ElidedLabel* m_token;
    FactGrid* m_facts;
};

} // namespace kvscope
