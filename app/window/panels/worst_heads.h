#pragma once

#include "app/session/workbench.h"
#include "app/window/canvas/view_table_model.h"
#include "views/head_grid/head_grid_data.h"

#include <QWidget>

#include <vector>

class QTableView;

namespace kvscope {

class ElidedLabel;

/// One cell of the layer x head grid.
struct RankedHead {
    int layer = 0, column = 0;
    double value = 0; ///< NaN: at no budget
    friend bool operator==(const RankedHead&, const RankedHead&) = default;
};

/// The computed cells, worst first: larger values (smaller where higher is better), "at no budget" before all others;
/// ties by layer and head.
std::vector<RankedHead> worstHeads(const HeadGridData& data);

/// The heads that lose most, by what the layer x head grid shows; a click opens the head.
class WorstHeads : public QWidget {
    Q_OBJECT

public:
    explicit WorstHeads(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refresh();
    void open(int row);

    Workbench& m_workbench;
    std::shared_ptr<const HeadGridData> m_data;
    std::vector<RankedHead> m_heads;
    ViewTableModel m_model;
    QTableView* m_table;
    ElidedLabel* m_what;
};

} // namespace kvscope
