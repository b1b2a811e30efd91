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

/// The computed cells, worst first: larger values (smaller where higher is better; of a difference the larger
/// magnitude), "at no budget" before all others; ties by layer and head.
std::vector<RankedHead> worstHeads(const HeadGridData& data);

/// The heads with the largest loss, by the quantity of the layer x head grid, beside another pane's value and the
/// difference. A click or an arrow key opens a head; its row stays marked, and rows that were opened have a tick. A
/// click on a column's name sorts.
class WorstHeads : public QWidget {
    Q_OBJECT

public:
    explicit WorstHeads(Workbench& workbench, QWidget* parent = nullptr);
    ~WorstHeads() override;

    struct Row {
        RankedHead head;
        double value = 0;            ///< of the active pane, or of the first pane of a difference
        std::optional<double> other; ///< of the other pane; empty: not known yet
        double difference() const;   ///< NaN where one is not known
        friend bool operator==(const Row&, const Row&) = default;
    };
    /// The rows as shown; bars are drawn from them.
    struct Rows {
        std::vector<Row> rows;
        double largest = 0;                          ///< largest magnitude of the bars
        bool ofDifference = false, isSigned = false; ///< bars are differences, to both sides
        std::string policy, otherPolicy;             ///< ids, for their colours; empty: of no pane
        friend bool operator==(const Rows&, const Rows&) = default;
    };

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void buildTable();
    void askForGrid(bool asks);
    void refresh();
    Rows ranked(const ViewInput& input) const;
    void sort(Rows& rows) const;
    double sortKey(const Row& row) const;
    void describe(const ViewInput& input, std::size_t found);
    const PaneData* otherPane(const ViewInput& input) const;
    std::vector<std::string> titles(const ViewInput& input) const;
    void showTable(const ViewInput& input, bool changed);
    void sortBy(int column);
    void mark();
    bool isVisited(int row) const;
    int kvHeadOf(const RankedHead& head) const;
    void open(int row);

    Workbench& m_workbench;
    std::shared_ptr<const HeadGridData> m_data;
    OtherPaneHeads m_other;
    Rows m_rows;
    std::vector<std::string> m_titles;
    int m_sortColumn = -1; ///< -1: worst first
    bool m_descending = true, m_marking = false;
    bool m_asksForGrid = false; ///< the workbench computes the grid for this list
    ViewTableModel m_model;
    QTableView* m_table;
    ElidedLabel* m_what;
};

} // namespace kvscope
