#pragma once

#include "app/workbench/live_answer_jobs.h"
#include "views/scene/text_service.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QStackedWidget;

namespace kvscope {

class AnswerAttentionBlock;
class AnswerRows;
class ElidedLabel;
class LossPlot;
class SegmentedSwitch;

/// What the model of a live context answers from the tokens that each pane keeps, or the loss of the expected answer
/// against the budget. Asks for nothing while hidden. If the open capture is a file, says that answers need a model.
class AnswerPanel : public QWidget {
    Q_OBJECT

public:
    AnswerPanel(Workbench& workbench, const TextService& text, QWidget* parent = nullptr);
    ~AnswerPanel() override { m_jobs.setWanted(false, false, this); }

    QWidget* header() const { return m_header; } ///< of its dock: title and controls

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool event(QEvent* event) override;

private:
    void buildControls();
    void placeWriting();
    QWidget* buildSampling();
    QLineEdit* addField(QLayout* layout, const QString& name, double width, const QString& value);
    void closeAttention();
    void setLost(bool isLost);
    void want();
    void write();
    void refresh();
    QString statusText() const;

    Workbench& m_workbench;
    LiveAnswerJobs& m_jobs;
    QStackedWidget* m_stack;
    QWidget *m_header, *m_controls, *m_writing;
    QLabel *m_message, *m_error;
    ElidedLabel* m_status;
    AnswerRows* m_rows;
    AnswerAttentionBlock* m_attention;
    LossPlot* m_plot;
    SegmentedSwitch *m_shown, *m_mode;
    QLineEdit *m_tokens, *m_temperature, *m_seed;
    QWidget* m_sampling;
    bool m_isLost = false; ///< whether the worker is lost
};

} // namespace kvscope
