#pragma once

#include "app/window/panels/parameter_row.h"

#include <QWidget>

#include <functional>
#include <vector>

class QVBoxLayout;

namespace kvscope {

/// All rows of a parameter table. Rows are rebuilt only when the table changes, so that a drag keeps its slider.
class ParameterPanel : public QWidget {
    Q_OBJECT

public:
    explicit ParameterPanel(QWidget* parent = nullptr);

    void show(const std::shared_ptr<const ParameterTable>& table, const ParameterValues& values, std::int64_t tokens);
    ParameterRow* row(const std::string& id) const; ///< null without one
    std::size_t rowCount() const { return m_rows.size(); }

signals:
    /// Values with one edited and checked parameter. `dragging` edits of one parameter merge into one undo step.
    void edited(const ParameterValues& values, const QString& label, bool dragging);
    void editingEnded();

private:
    void rebuild(std::int64_t tokens);
    void tryEdit(ParameterRow* row, const QString& text, bool dragging);

    std::shared_ptr<const ParameterTable> m_table;
    ParameterValues m_values;
    std::vector<ParameterRow*> m_rows;
    QVBoxLayout* m_layout;
};

} // namespace kvscope
