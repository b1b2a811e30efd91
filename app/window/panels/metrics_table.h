#pragma once

#include "app/window/canvas/view_table_model.h"
#include "app/workbench/workbench.h"

#include <QWidget>

class QTableView;

namespace kvscope {

/// The measures of all panes, one row per pane, as in the pane headers; with a second capture two rows, the first
/// capture's above, and a column that names them. Pure.
ViewTable metricsOf(const ViewInput& input, const ViewInput* second = nullptr);

/// The table in a dock; a click on a row makes its pane the active one.
class MetricsTable : public QWidget {
    Q_OBJECT

public:
    explicit MetricsTable(Workbench& workbench, QWidget* parent = nullptr);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void refresh();

    Workbench& m_workbench;
    ViewTableModel m_model;
    QTableView* m_table;
};

} // namespace kvscope
