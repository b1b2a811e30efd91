#pragma once

#include <QWidget> // before the standard library, whose concepts moc cannot read

#include "app/study/answer_attention.h"
#include "app/workbench/live_answer_jobs.h"

#include <memory>
#include <optional>

class QLabel;

namespace kvscope {

class HeadCells;

/// What a token of the expected answer attends to, and what of it a row evicts: per layer and head the attention on
/// evicted tokens, and the most attended tokens. A click on a cell opens the head, a click on a token selects it.
class AnswerAttentionBlock : public QWidget {
    Q_OBJECT

public:
    AnswerAttentionBlock(Workbench& workbench, LiveAnswerJobs& jobs, QWidget* parent = nullptr);
    ~AnswerAttentionBlock() override;

    /// Row 0: the full cache; token: index in the expected answer, -1: none.
    void choose(int row, int token);
    int token() const { return m_token; }

signals:
    void appeared(); ///< the attention of a newly chosen token is shown
    void closed();   ///< by its button or by another context: the receiver has to choose no token

private:
    void refresh();
    void submit(const std::optional<PaneRequest>& pane, TokenIndex query);
    void show();
    const AnswerAttention::Head& shownHead() const;
    void openHead(int index);

    Workbench& m_workbench;
    LiveAnswerJobs& m_jobs;
    int m_row = 0, m_token = -1;
    std::string m_key, m_error;
    std::shared_ptr<const AnswerAttention> m_found;
    bool m_isOutdated = false, m_isNew = false;
    int m_head = -1; ///< in m_found; -1: the mean over all
    QLabel *m_title, *m_tokens, *m_note;
    HeadCells* m_cells;
};

} // namespace kvscope
