#pragma once

#include <QWidget>

#include "app/window/panels/parameter_row.h"
#include "app/workbench/workbench.h"

#include <string>
#include <vector>

class QVBoxLayout;

namespace kvscope {

/// What a lesson gives the reader to play with: parameters of the active pane's policy, and "budget". Names that the
/// active policy has not are left out.
class LessonParameters : public QWidget {
    Q_OBJECT

public:
    LessonParameters(Workbench& workbench, std::vector<std::string> names, QWidget* parent);

private:
    void refresh();
    void rebuild(const ParameterTable& table, std::int64_t tokens);
    void edit(const ParameterSpec& spec, const QString& text, bool dragging);
    ParameterValues budgetValues(std::int64_t tokens) const;

    Workbench& m_workbench;
    const std::vector<std::string> m_names;
    const ParameterTable* m_table = nullptr; ///< whose rows are shown
    std::vector<ParameterRow*> m_rows;
};

} // namespace kvscope
