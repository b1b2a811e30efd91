#pragma once

#include <QWidget>

#include "app/lessons/lesson.h"
#include "app/window/panels/parameter_panel.h"
#include "app/workbench/workbench.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// What a lesson gives the reader to play with: parameters of the active pane's policy, and "budget". Names that the
/// active policy does not have are left out.
class LessonParameters : public QWidget {
    Q_OBJECT

public:
    LessonParameters(Workbench& workbench, const Lesson& lesson, QWidget* parent);

private:
    const PolicySpec* activePolicy() const; ///< null: no pane, or a recorded list
    void refresh();
    void rebuild(const ParameterTable& table);
    void edit(const ParameterSpec& spec, const QString& text, bool dragging);
    void reset(const ParameterSpec& spec, const QString& text, bool dragging);
    void showBudget(ParameterRow& row);
    Budget startBudget() const;
    std::optional<double> percentOf(const Budget& budget) const; ///< kept; nothing: not computed yet

    Workbench& m_workbench;
    const std::vector<std::string> m_names;
    const Session m_start;                   ///< of the lesson
    const ParameterTable* m_table = nullptr; ///< whose rows are shown
    int m_pane = 0;                          ///< the active one, whose values are shown
    std::vector<ParameterRow*> m_rows;
    std::optional<double> m_percent, m_startPercent; ///< of the present and the start's budget, as last known
};

} // namespace kvscope
