#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QLabel;
class QMenu;
class QPushButton;
class QToolButton;

namespace kvscope {

class LetterBadge;
class NoticeStrip;
class ParameterPanel;

/// The right panel: the active pane's policy, its variant, its parameters, its fidelity, and what it does.
class PolicyPanel : public QWidget {
    Q_OBJECT

public:
    explicit PolicyPanel(Workbench& workbench, QWidget* parent = nullptr);
    ParameterPanel* parameters() const { return m_parameters; }
    /// The explanation as a widget, so that a wide window can give it a column of its own.
    QWidget* takeExplanation();

private:
    void build();
    void buildExplanation();
    void refresh();
    void refreshExplanation(const PolicyCard* card);
    void fillMore();
    void changeActive(const std::function<void(SessionPane&)>& edit, const QString& label, const QString& mergeKey = {});

    Workbench& m_workbench;
    LetterBadge* m_badge = nullptr;
    QLabel* m_title = nullptr;
    QPushButton *m_variant = nullptr, *m_resetAll = nullptr;
    QToolButton* m_more = nullptr;
    ParameterPanel* m_parameters = nullptr;
    QWidget *m_explanationBox = nullptr, *m_parameterBox = nullptr;
    QLabel *m_paper = nullptr, *m_explanation = nullptr;
    std::string m_explained; ///< policy whose explanation is shown
};

} // namespace kvscope
