#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace kvscope {

/// The panes by letter: click to make active, cross to remove, "Add a policy" below.
class PaneList : public QWidget {
    Q_OBJECT

public:
    explicit PaneList(Workbench& workbench, QWidget* parent = nullptr);

private:
    QWidget* rowsArea();
    void refresh();
    void rebuild(const ViewInput& input);
    int focusedRow() const; ///< -1: none
    void focusRow(int row); ///< or the last row, or the button if there is no row
    QWidget* buildRow(int pane, const PaneData& data);

    Workbench& m_workbench;
    QScrollArea* m_area;
    QVBoxLayout* m_rows;
    QPushButton* m_add;
    std::string m_shown; ///< what the rows were built from
};

} // namespace kvscope
