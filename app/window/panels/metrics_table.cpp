// Errors are means over the query heads of the KV head's GQA group, as everywhere in the window.
#include "app/window/panels/metrics_table.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/head_means.h"
#include "views/common/view_facts.h"

#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>

namespace kvscope {

namespace {

std::vector<std::string> rowOf(const ViewInput& input, const PaneData& pane) {
    std::vector<QString> cells{fromUtf8(paneTitle(pane)).prepend(QString(pane.letter) + "  ")};
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    if (!pane.result || head >= pane.result->selection.heads.size()) {
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

ViewTable metricsOf(const ViewInput& input) {
    std::vector<std::vector<std::string>> rows;
    if (input.capture)
        for (const PaneData& pane : input.panes) rows.push_back(rowOf(input, pane));
    return tableOf({"pane", "error", "mass", "kept", "of seen", "layer stores", "selected"}, std::move(rows));
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
    m_table->verticalHeader()->setVisible(false);
    m_table->verticalHeader()->setDefaultSectionSize(px(24));
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& index) {
        m_workbench.change([&](Session& s) { s.activePane = index.row(); }, tr("Active pane"));
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, &MetricsTable::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &MetricsTable::refresh);
    refresh();
}

void MetricsTable::refresh() {
    m_model.show(metricsOf(m_workbench.viewInput()));
    if (isVisible()) m_table->resizeColumnsToContents();
}

} // namespace kvscope
