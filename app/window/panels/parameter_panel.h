#pragma once

#include "app/window/panels/parameter_row.h"

#include <QWidget>

#include <array>
#include <functional>
#include <vector>

class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace kvscope {

/// The rows of a parameter table: those that the paper is about first, the others folded by stage under a line that
/// says how many of them differ from the variant. A search shows rows wherever they are. Rows are rebuilt only when the
/// table changes, so that a drag keeps its slider.
class ParameterPanel : public QWidget {
    Q_OBJECT

public:
    explicit ParameterPanel(QWidget* parent = nullptr);

    /// `variant`: the values that reset gives back, and from which changed rows differ.
    void show(const std::shared_ptr<const ParameterTable>& table, const ParameterValues& values,
              const ParameterValues& variant, std::int64_t tokens);
    ParameterRow* row(const std::string& id) const; ///< null without one
    std::size_t rowCount() const { return m_rows.size(); }

signals:
    /// Values with one edited and checked parameter. `dragging` edits of one parameter merge into one undo step.
    void edited(const ParameterValues& values, const QString& label, bool dragging);
    void editingEnded();

private:
    struct Fold {
        QPushButton* head = nullptr;
        bool open = false; ///< also for the next policy
    };

    void rebuild(std::int64_t tokens);
    void addFold(Stage stage);
    void addRow(const ParameterSpec& spec, std::int64_t tokens);
    void tryEdit(ParameterRow* row, const QString& text, bool dragging);
    void arrange();

    std::shared_ptr<const ParameterTable> m_table;
    ParameterValues m_values, m_variant;
    std::vector<ParameterRow*> m_rows; ///< as shown
    std::array<Fold, 3> m_folds;       ///< by Stage
    QLineEdit* m_search;
    QLabel* m_nothing;
    QVBoxLayout* m_layout;
};

} // namespace kvscope
