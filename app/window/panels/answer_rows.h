#pragma once

#include "app/workbench/live_answer_jobs.h"

#include <QWidget>

#include <memory>
#include <vector>

class QGridLayout;

namespace kvscope {

class ElidedLabel;

/// The answers of all panes below the full cache's: the text with the tokens that differ marked, the loss of each token
/// of the expected answer as a bar, and the numbers. A narrow panel hides the less important numbers. What is older
/// than the session is dimmed and keeps its place.
class AnswerRows : public QWidget {
    Q_OBJECT

public:
    AnswerRows(Workbench& workbench, LiveAnswerJobs& jobs, QWidget* parent = nullptr);
    ~AnswerRows() override;

    void refresh();
    /// The token of the expected answer that is looked at, in one row; -1: none.
    void setChosen(int row, int token);

signals:
    void tokenChosen(int row, int token); ///< of the expected answer; row 0: the full cache
    void saidNothing(const QString& why); ///< why a clicked token has no attention to show

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* part, QEvent* event) override;

private:
    struct Line;

    void build(std::size_t rows);
    void fill(std::size_t index, const ViewInput& input);
    void fillNumbers(std::size_t index);
    void fillBars(std::size_t index, const ViewInput& input, const QColor& colour);
    void addCopying(QWidget* part, std::size_t row);
    void copyAnswer(std::size_t row) const;
    void follow(std::size_t row, const QString& link);
    void fitWidth();

    Workbench& m_workbench;
    LiveAnswerJobs& m_jobs;
    QGridLayout* m_grid;
    ElidedLabel* m_expected;
    std::vector<std::unique_ptr<Line>> m_lines;
    std::vector<QWidget*> m_titles;
};

} // namespace kvscope
