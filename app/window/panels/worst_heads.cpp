// The grid shows where in the model it hurts, this list how much: the same numbers, sorted.
#include "app/window/panels/worst_heads.h"

#include "app/window/appearance.h"
#include "app/window/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/head_grid/head_grid_view.h"
#include "views/view_facts.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kValueColumn = 3, kBarColumn = 4, kMostRows = 200;

/// The value as a bar from 0 to the largest size in the list, in the colour of the pane's policy.
class BarDelegate : public QStyledItemDelegate {
public:
    BarDelegate(const Workbench& workbench, const std::vector<RankedHead>& heads, QObject* parent)
        : QStyledItemDelegate(parent), m_workbench(workbench), m_heads(heads) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const double value = m_heads[static_cast<std::size_t>(index.row())].value;
        double largest = 0;
        for (const RankedHead& head : m_heads)
            largest = std::isnan(head.value) ? largest : std::max(largest, std::abs(head.value));
        const ViewInput input = m_workbench.viewInput();
        const PaneData* pane = activePane(input);
        if (std::isnan(value) || largest <= 0 || !pane)
            return;
        const int inset = px(6), width = static_cast<int>((option.rect.width() - 2 * inset) * std::abs(value) / largest);
        painter->fillRect(QRect(option.rect.left() + inset, option.rect.center().y() - px(4), width, px(8)),
                          qColor(policyStyle(pane->policyId, appearance().theme).colour));
    }

private:
    const Workbench& m_workbench;
    const std::vector<RankedHead>& m_heads;
};

QString valueText(double value, bool neverIsNan) {
    return std::isnan(value) ? (neverIsNan ? QObject::tr("at no budget") : QString("–")) : scoreText(value);
}

} // namespace

std::vector<RankedHead> worstHeads(const HeadGridData& data) {
    std::vector<RankedHead> heads;
    for (const HeadGridData::Row& row : data.rows)
        for (int column = 0; row.computed && column < data.columns; ++column)
            if (const double value = row.values[static_cast<std::size_t>(column)]; data.neverIsNan || !std::isnan(value))
                heads.push_back({row.layer, column, value});
    std::stable_sort(heads.begin(), heads.end(), [&](const RankedHead& a, const RankedHead& b) {
        if (std::isnan(a.value) || std::isnan(b.value))
            return std::isnan(a.value) && !std::isnan(b.value);
        return data.higherIsBetter ? a.value < b.value : a.value > b.value;
    });
    return heads;
}

WorstHeads::WorstHeads(Workbench& workbench, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_table(new QTableView(this)), m_what(new ElidedLabel("quiet", Qt::ElideRight, this)) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(px(10), px(4), 0, 0);
    column->setSpacing(px(4));
    column->addWidget(m_what);
    column->addWidget(m_table);
    m_table->setObjectName("worstHeads");
    m_table->setModel(&m_model);
    m_table->setItemDelegateForColumn(kBarColumn, new BarDelegate(m_workbench, m_heads, this));
    m_table->setAccessibleName(tr("Heads that lose most"));
    m_table->setFont(numberFont(11));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->verticalHeader()->setVisible(false);
    m_table->verticalHeader()->setDefaultSectionSize(px(24));
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter); // as the numbers below
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(&m_workbench, &Workbench::sessionChanged, this, &WorstHeads::refresh);
    connect(&m_workbench, &Workbench::dataChanged, this, [this](const QString& view) {
        if (view == fromUtf8(headGridView().card().id))
            refresh();
    });
    refresh();
}

void WorstHeads::refresh() {
    const ViewInput input = m_workbench.viewInput(headGridView());
    m_data = dataAs<HeadGridData>(input);
    m_heads = m_data ? worstHeads(*m_data) : std::vector<RankedHead>{};
    const auto found = m_heads.size();
    m_heads.resize(std::min<std::size_t>(found, kMostRows));
    if (!m_data)
        m_what->setFullText(input.data.error.empty() ? tr("The layer x head grid fills this list: show it beside.") : fromUtf8(input.data.error));
    else
        m_what->setFullText((m_data->takesNoSide ? tr("%1 · largest %2 of %3 heads") : tr("%1 · worst %2 of %3 heads")).arg(fromUtf8(m_data->what)).arg(m_heads.size()).arg(found));
    ViewTable table;
    const bool perQuery = !m_data || m_data->perQueryHead;
    table.columns = {"layer", perQuery ? "query head" : "KV head", "KV head", "value", ""};
    table.rowCount = std::ssize(m_heads);
    table.cell = [this, capture = input.capture, perQuery](std::int64_t row, int column) -> std::string {
        const RankedHead& head = m_heads[static_cast<std::size_t>(row)];
        const auto kvOf = [&] { return capture->info().layerInfo(LayerIndex(head.layer)).kvOfQ[static_cast<std::size_t>(head.column)]; };
        switch (column) {
        case 0: return std::to_string(head.layer);
        case 1: return std::to_string(head.column);
        case 2: return std::to_string(perQuery ? kvOf() : head.column);
        case kValueColumn: return valueText(head.value, m_data->neverIsNan).toStdString();
        default: return {};
        }
    };
    m_model.show(std::move(table));
    for (int column = 0; column < kBarColumn; ++column)
        m_table->resizeColumnToContents(column);
    m_table->setColumnHidden(2, !perQuery);
}

void WorstHeads::open(int row) {
    const auto capture = m_workbench.capture();
    if (!capture || !m_data || row < 0 || static_cast<std::size_t>(row) >= m_heads.size())
        return;
    const RankedHead head = m_heads[static_cast<std::size_t>(row)];
    m_workbench.change(
        [&](Session& s) {
            s.layer = LayerIndex(head.layer);
            if (m_data->perQueryHead)
                chooseQueryHead(s, QueryHeadIndex(head.column), *capture);
            else
                chooseKvHead(s, KvHeadIndex(head.column), *capture);
        },
        tr("Head"));
}

} // namespace kvscope
