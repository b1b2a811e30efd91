// The numbers of the layer x head grid as a sorted list.
#include "app/window/panels/worst_heads.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/view.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kValueColumn = 3, kOtherColumn = 4, kBarColumn = 5, kMostRows = 200;

/// Numbers stand on the right, so that their decimals align.
class NumberDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        option->displayAlignment = Qt::AlignRight | Qt::AlignVCenter;
    }
};

/// A value as a bar from 0 to the largest in the list, in the colour of the pane's policy, with the other pane's value
/// as a square in its colour.
class BarDelegate : public QStyledItemDelegate {
public:
    BarDelegate(const WorstHeads::Rows& rows, QObject* parent) : QStyledItemDelegate(parent), m_rows(rows) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const auto row = static_cast<std::size_t>(index.row());
        const int inset = px(8), left = option.rect.left() + inset, middle = option.rect.center().y();
        const auto lengthOf = [&](double value) {
            return std::isnan(value) || m_rows.largest <= 0
                       ? 0
                       : static_cast<int>((option.rect.width() - 2 * inset) * std::abs(value) / m_rows.largest);
        };
        painter->fillRect(QRect(left, middle - px(4), lengthOf(m_rows.heads[row].value), px(8)),
                          colourOf(m_rows.policy));
        const std::optional<double>& other = m_rows.others[row];
        if (!other || std::isnan(*other)) return;
        const QRect square(left + lengthOf(*other) - px(4), middle - px(4), px(8), px(8));
        painter->fillRect(square, qColor(chrome().casing));
        painter->fillRect(square.adjusted(1, 1, -1, -1), colourOf(m_rows.otherPolicy));
    }

private:
    static QColor colourOf(const std::string& policy) { return qColor(policyStyle(policy, appearance().theme).colour); }

    const WorstHeads::Rows& m_rows;
};

QString valueText(const NumberColumn& numbers, double value, bool neverIsNan) {
    return std::isnan(value) ? (neverIsNan ? QObject::tr("at no budget") : QString("–")) : numbers.text(value);
}

/// Value in the other pane's grid, as far as computed.
std::optional<double> valueIn(const HeadGridData& data, const RankedHead& head) {
    for (const HeadGridData::Row& row : data.rows)
        if (row.layer == head.layer && row.computed) return row.values[head.column];
    return std::nullopt;
}

/// "A KeyDiff".
std::string titleOf(const PaneData& pane) { return std::string(1, pane.letter) + " " + pane.policyName; }

} // namespace

std::vector<RankedHead> worstHeads(const HeadGridData& data) {
    std::vector<RankedHead> heads;
    for (const HeadGridData::Row& row : data.rows)
        for (int column = 0; row.computed && column < data.columns; ++column)
            if (const double value = row.values[column]; data.neverIsNan || !std::isnan(value))
                heads.push_back({row.layer, column, value});
    std::ranges::stable_sort(heads, [&](const RankedHead& a, const RankedHead& b) {
        if (std::isnan(a.value) || std::isnan(b.value)) return std::isnan(a.value) && !std::isnan(b.value);
        return data.higherIsBetter ? a.value < b.value : a.value > b.value;
    });
    return heads;
}

WorstHeads::WorstHeads(Workbench& workbench, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_other(workbench, this), m_table(new QTableView(this)),
      m_what(new ElidedLabel("quiet", Qt::ElideRight, this)) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = makeLayout<QVBoxLayout>(this, {10, 4, 0, 0}, 4);
    column->addWidget(m_what);
    column->addWidget(m_table);
    m_table->setObjectName("worstHeads");
    m_table->setModel(&m_model);
    m_table->setItemDelegate(new NumberDelegate(this));
    m_table->setItemDelegateForColumn(kBarColumn, new BarDelegate(m_rows, this));
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
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter); // as the numbers below
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(&m_workbench, &Workbench::sessionChanged, this, &WorstHeads::refresh);
    connect(&m_other, &OtherPaneHeads::changed, this, &WorstHeads::refresh);
    connect(&m_workbench, &Workbench::dataChanged, this, [this](const QString& view) {
        if (view == fromUtf8(viewAt(ViewPlace::Model).card().id)) refresh();
    });
    refresh();
}

void WorstHeads::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    refresh();
}

void WorstHeads::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    m_other.want(nullptr);
}

void WorstHeads::refresh() {
    const ViewInput input = m_workbench.viewInput(viewAt(ViewPlace::Model));
    m_data = dataAs<HeadGridData>(input);
    if (isVisible()) m_other.want(input.data.computing ? nullptr : m_data.get());
    rank(input);
    showTable(input);
}

void WorstHeads::rank(const ViewInput& input) {
    m_rows = {};
    if (m_data) m_rows.heads = worstHeads(*m_data);
    describe(input, m_rows.heads.size());
    m_rows.heads.resize(std::min<std::size_t>(m_rows.heads.size(), kMostRows));
    for (const RankedHead& head : m_rows.heads) {
        m_rows.others.push_back(m_other.data() ? valueIn(*m_other.data(), head) : std::nullopt);
        for (const double value : {head.value, m_rows.others.back().value_or(0)})
            m_rows.largest = std::isfinite(value) ? std::max(m_rows.largest, std::abs(value)) : m_rows.largest;
    }
    if (const PaneData* pane = activePane(input)) m_rows.policy = pane->policyId;
    if (const auto other = static_cast<std::size_t>(m_other.pane()); m_other.data() && other < input.panes.size())
        m_rows.otherPolicy = input.panes[other].policyId;
}

void WorstHeads::describe(const ViewInput& input, std::size_t found) {
    if (!m_data) {
        m_what->setFullText(input.data.error.empty() ? tr("The layer x head grid fills this list: show it beside.")
                                                     : fromUtf8(input.data.error));
        return;
    }
    const QString count = m_data->takesNoSide ? tr("%1 · largest %2 of %3 heads") : tr("%1 · worst %2 of %3 heads");
    m_what->setFullText(count.arg(fromUtf8(m_data->what)).arg(std::min<std::size_t>(found, kMostRows)).arg(found));
}

void WorstHeads::showTable(const ViewInput& input) {
    std::vector<double> values;
    for (std::size_t row = 0; row < m_rows.heads.size(); ++row) {
        values.push_back(m_rows.heads[row].value);
        values.push_back(m_rows.others[row].value_or(m_rows.heads[row].value));
    }
    const PaneData* pane = activePane(input);
    const auto other = static_cast<std::size_t>(m_other.pane());
    const bool compares = m_data && m_other.data() && other < input.panes.size(),
               perQuery = !m_data || m_data->perQueryHead;
    ViewTable table;
    table.columns = {"layer",
                     perQuery ? "query head" : "KV head",
                     "KV head",
                     m_data && m_data->ofPane && pane ? titleOf(*pane) : "value",
                     compares ? titleOf(input.panes[other]) : "",
                     ""};
    table.rowCount = std::ssize(m_rows.heads);
    table.cell = [this, capture = input.capture, perQuery, numbers = NumberColumn(values)](std::int64_t row,
                                                                                           int column) -> std::string {
        const RankedHead& head = m_rows.heads[row];
        const std::optional<double>& theirs = m_rows.others[row];
        const auto kvOf = [&] { return capture->info().layerInfo(LayerIndex(head.layer)).gqaGroupOf[head.column]; };
        switch (column) {
        case 0: return std::to_string(head.layer);
        case 1: return std::to_string(head.column);
        case 2: return std::to_string(perQuery ? kvOf() : head.column);
        case kValueColumn: return valueText(numbers, head.value, m_data->neverIsNan).toStdString();
        case kOtherColumn: return theirs ? valueText(numbers, *theirs, m_data->neverIsNan).toStdString() : "…";
        default: return {};
        }
    };
    m_model.show(std::move(table));
    for (int column = 0; column < kBarColumn; ++column) m_table->resizeColumnToContents(column);
    m_table->setColumnHidden(2, !perQuery);
    m_table->setColumnHidden(kOtherColumn, !compares);
}

void WorstHeads::open(int row) {
    const auto capture = m_workbench.capture();
    if (!capture || !m_data || row < 0 || static_cast<std::size_t>(row) >= m_rows.heads.size()) return;
    const RankedHead head = m_rows.heads[row];
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
