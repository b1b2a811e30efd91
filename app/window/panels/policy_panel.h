#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

#include <utility>

class QPushButton;
class QToolButton;

namespace kvscope {

class ElidedLabel;
class FactGrid;
class LetterBadge;
class ParameterPanel;

/// The active pane's policy, its variant and its parameters.
class PolicyPanel : public QWidget {
    Q_OBJECT

public:
    explicit PolicyPanel(Workbench& workbench, QWidget* parent = nullptr);
    ParameterPanel* parameters() const { return m_parameters; }

private:
    void build();
    void refresh();
    void fillMore();
    void showRecorded(const std::string& path, const PaneData& pane);
    void changeActive(const std::function<void(SessionPane&)>& edit, const QString& label,
                      const QString& mergeKey = {});

    Workbench& m_workbench;
    LetterBadge* m_badge = nullptr;
    ElidedLabel* m_title = nullptr;
    QPushButton *m_variant = nullptr, *m_resetAll = nullptr;
    QToolButton* m_more = nullptr;
    ParameterPanel* m_parameters = nullptr;
    QWidget* m_parameterBox = nullptr;
    FactGrid* m_recorded = nullptr;      ///< facts of a recorded list, in place of the parameters
    std::pair<int, std::size_t> m_shown; ///< the pane whose parameters are shown, and the number of panes
};

} // namespace kvscope
