#pragma once

#include "app/window/canvas/view_table_model.h"
#include "app/window/panels/other_pane_heads.h"
#include "app/workbench/workbench.h"
#include "views/head_grid/head_grid_data.h"

#include <QWidget>

#include <optional>
#include <string>
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

/// The heads with the largest loss, by the quantity of the layer x head grid, beside another pane's value; a click
/// opens the head.
class WorstHeads : public QWidget {
    Q_OBJECT

public:
    explicit WorstHeads(Workbench& workbench, QWidget* parent = nullptr);

    /// The rows as shown; bars are drawn from them.
    struct Rows {
        std::vector<RankedHead> heads;
        std::vector<std::optional<double>> others; ///< of the other pane, one per head; empty: not known yet
        double largest = 0;                        ///< largest magnitude of all
        std::string policy, otherPolicy;           ///< ids, for their colours
    };

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void refresh();
    void rank(const ViewInput& input);
    void describe(const ViewInput& input, std::size_t found);
    void showTable(const ViewInput& input);
    void open(int row);

    Workbench& m_workbench;
    std::shared_ptr<const HeadGridData> m_data;
    OtherPaneHeads m_other;
    Rows m_rows;
    ViewTableModel m_model;
    QTableView* m_table;
    ElidedLabel* m_what;
};

} // namespace kvscope
