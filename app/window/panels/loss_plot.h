#pragma once

#include "app/workbench/live_answer_jobs.h"
#include "views/curves/curves_data.h"
#include "views/scene/scene.h"
#include "views/scene/text_service.h"

#include <QWidget>

namespace kvscope {

/// The loss of the expected answer against the budget, one curve per pane, growing while its points are computed. A
/// click on a point gives its pane that budget.
class LossPlot : public QWidget {
    Q_OBJECT

public:
    LossPlot(Workbench& workbench, LiveAnswerJobs& jobs, const TextService& text, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    bool event(QEvent* event) override;

private:
    Workbench& m_workbench;
    LiveAnswerJobs& m_jobs;
    const TextService& m_text;
    std::shared_ptr<const CurvesData> m_data; ///< as painted
    Scene m_scene;
};

} // namespace kvscope
