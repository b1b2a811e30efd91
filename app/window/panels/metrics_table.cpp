// Errors are means over the query heads of the KV head's GQA group, as everywhere in the window.
#include "app/window/panels/metrics_table.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/second_workbench.h"
#include "core/run/head_means.h"
#include "views/common/view_facts.h"

#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>

namespace kvscope {

namespace {

/// The row of a pane; without numbers while its result is outdated, as that is not of the policy that the row names.
std::vector<std::string> rowOf(const ViewInput& input, const PaneData& pane) {
    std::vector<QString> cells{fromUtf8(paneTitle(pane)).prepend(QString(pane.letter) + "  ")};
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    if (!pane.result || pane.outdated || head >= pane.result->selection.heads.size()) {
        cells.resize(7, QString("–"));
    } else {
        const RunResult& result = *pane.result;
        const bool measured = result.fidelity != nullptr; // error and mass of these tokens, or none
        const auto [hit, of] = keptAmong(input, pane, input.focus.selected);
        const auto kept = std::llround(result.selection.heads[head].attendedTokens());
        cells.insert(cells.end(),
                     {measured ? errorText(meanErrorOf(result, *input.capture, input.kvHead)) : QString("–"),
                      measured ? percentText(meanMassOf(result, *input.capture, input.kvHead)) : QString("–"),
                      countText(kept), fromUtf8(keptShare(result, input.kvHead)),
                      bytesText(static_cast<double>(storedBytes(result))),
                      of == 0 ? QString("–") : QString("%1/%2").arg(hit).arg(of)});
    }
    std::vector<std::string> row;
    for (const QString& cell : cells) row.push_back(cell.toStdString());
    return row;
}

} // namespace

ViewTable metricsOf(const ViewInput& input, const ViewInput* second) {
    std::vector<std::string> columns = {"pane", "error", "mass", "kept", "of seen", "layer stores", "selected"};
    std::vector<std::vector<std::string>> rows;
    if (second) columns.insert(columns.begin() + 1, "capture");
    for (std::size_t pane = 0; input.capture && pane < input.panes.size(); ++pane)
        for (const ViewInput* one : {&input, second}) {
            if (!one || pane >= one->panes.size()) continue;
            rows.push_back(rowOf(*one, one->panes[pane]));
            if (second) rows.back().insert(rows.back().begin() + 1, one->capture->info().fileName);
        }
    return tableOf(std::move(columns), std::move(rows));
}

MetricsTable::MetricsTable(Workbench& workbench, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_table(new QTableView(this)) {
    auto* column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0});
    column->addWidget(m_table);
    m_table->setModel(&m_model);
    m_table->setAccessibleName(tr("Metrics of all panes"));
    m_table->setFont(numberFont(11));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->setVisible(false);
    m_table->verticalHeader()->setDefaultSectionSize(px(24));
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& index) {
        const int pane = m_workbench.second().isOpen() ? index.row() / 2 : index.row();
        m_workbench.change([&](Session& s) { s.activePane = pane; }, tr("Active pane"));
    });
    for (Workbench* one : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())})
        one->tell(this, &MetricsTable::refresh, &Workbench::sessionChanged, &Workbench::panesChanged,
                  &Workbench::captureChanged);
    refresh();
}

void MetricsTable::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    m_table->resizeColumnsToContents();
}

void MetricsTable::refresh() {
    const SecondWorkbench& other = m_workbench.second();
    const ViewInput second = other.isOpen() ? other.viewInput() : ViewInput();
    m_model.show(metricsOf(m_workbench.viewInput(), second.capture ? &second : nullptr));
    if (isVisible()) m_table->resizeColumnsToContents();
}

} // namespace kvscope
