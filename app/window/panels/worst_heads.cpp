// The numbers of the layer x head grid as a list that can be sorted.
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
#include <utility>

namespace kvscope {

namespace {

constexpr int kLayerColumn = 0, kHeadColumn = 1, kKvColumn = 2, kValueColumn = 3, kOtherColumn = 4,
              kDifferenceColumn = 5, kBarColumn = 6, kMostRows = 2000;
constexpr double kMostOfOther = 2; // of the largest bar: to there the other pane's values are drawn in their place

/// Numbers stand on the right, so that their decimals align; a row that was opened has a tick on the left.
class NumberDelegate : public QStyledItemDelegate {
public:
    NumberDelegate(std::function<bool(int)> isVisited, QObject* parent)
        : QStyledItemDelegate(parent), m_isVisited(std::move(isVisited)) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        QStyledItemDelegate::paint(painter, option, index);
        if (index.column() != kLayerColumn || !m_isVisited(index.row())) return;
        painter->save();
        painter->setPen(qColor(chrome().text2));
        painter->drawText(option.rect.adjusted(px(3), 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, "✓");
        painter->restore();
    }

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        option->displayAlignment = Qt::AlignRight | Qt::AlignVCenter;
    }

private:
    std::function<bool(int)> m_isVisited;
};

/// A pane's value as a bar from 0 in the colour of its policy, with the other pane's value as a square in its colour,
/// as an arrow where it lies beyond the end. A signed difference of two panes goes to both sides in the colours of the
/// grid; other values are grey.
class BarDelegate : public QStyledItemDelegate {
public:
    BarDelegate(const WorstHeads::Rows& rows, QObject* parent) : QStyledItemDelegate(parent), m_rows(rows) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, qColor(chrome().hover));
        const WorstHeads::Row& row = m_rows.rows[static_cast<std::size_t>(index.row())];
        const int inset = px(8), middle = option.rect.center().y(), room = option.rect.width() - 2 * inset,
                  zero = option.rect.left() + inset + (m_rows.isSigned ? room / 2 : 0);
        const auto lengthOf = [&](double value) {
            return std::isnan(value) || m_rows.largest <= 0
                       ? 0
                       : static_cast<int>((m_rows.isSigned ? room / 2 : room) *
                                          std::min(1.0, std::abs(value) / m_rows.largest));
        };
        const double value = m_rows.ofDifference ? row.head.value : row.value;
        const int length = lengthOf(value), left = m_rows.isSigned && value < 0 ? zero - length : zero;
        painter->fillRect(QRect(left, middle - px(4), length, px(8)), colourOf(value));
        if (m_rows.isSigned) painter->fillRect(QRect(zero, middle - px(7), 1, px(14)), qColor(chrome().axis));
        if (m_rows.ofDifference || !row.other || std::isnan(*row.other)) return;
        if (std::abs(*row.other) > m_rows.largest) return drawBeyond(*painter, zero + room, middle);
        const QRect square(zero + lengthOf(*row.other) - px(4), middle - px(4), px(8), px(8));
        painter->fillRect(square, qColor(chrome().casing));
        painter->fillRect(square.adjusted(1, 1, -1, -1), policyColour(m_rows.otherPolicy));
    }

private:
    /// An arrow at the end of the room: the other pane's value lies beyond it.
    void drawBeyond(QPainter& painter, int right, int middle) const {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(policyColour(m_rows.otherPolicy));
        painter.drawPolygon(
            QPolygon({{right - px(4), middle - px(4)}, {right + px(4), middle}, {right - px(4), middle + px(4)}}));
        painter.restore();
    }

    QColor colourOf(double value) const {
        if (m_rows.isSigned) return qColor(colourMap("rdbu", value < 0 ? 0.12 : 0.88));
        return m_rows.policy.empty() || m_rows.ofDifference ? qColor(chrome().text3) : policyColour(m_rows.policy);
    }
    static QColor policyColour(const std::string& id) { return qColor(policyStyle(id, appearance().theme).colour); }

    const WorstHeads::Rows& m_rows;
};

QString valueText(const NumberColumn& numbers, double value, bool neverIsNan) {
    return std::isnan(value) ? (neverIsNan ? QObject::tr("at no budget") : QString("–")) : numbers.text(value);
}

/// The value of a head in a grid; nothing if the head is not computed there.
std::optional<double> valueIn(const HeadGridData& data, const RankedHead& head,
                              const std::vector<double> HeadGridData::Row::*values) {
    for (const HeadGridData::Row& row : data.rows)
        if (row.layer == head.layer && row.computed) return (row.*values)[static_cast<std::size_t>(head.column)];
    return std::nullopt;
}

} // namespace

std::vector<RankedHead> worstHeads(const HeadGridData& data) {
    std::vector<RankedHead> heads;
    for (const HeadGridData::Row& row : data.rows)
        for (int column = 0; row.computed && column < data.columns; ++column)
            if (const double value = row.values[column]; data.neverIsNan || !std::isnan(value))
                heads.push_back({row.layer, column, value});
    std::ranges::stable_sort(heads, [&](const RankedHead& a, const RankedHead& b) {
        if (std::isnan(a.value) || std::isnan(b.value)) return std::isnan(a.value) && !std::isnan(b.value);
        if (!data.first.empty()) return std::abs(a.value) > std::abs(b.value);
        return data.higherIsBetter ? a.value < b.value : a.value > b.value;
    });
    return heads;
}

double WorstHeads::Row::difference() const { return other ? value - *other : NAN; }

WorstHeads::WorstHeads(Workbench& workbench, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_other(workbench, this),
      m_table(named("worstHeads", new QTableView(this))), m_what(new ElidedLabel("quiet", Qt::ElideRight, this)) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = makeLayout<QVBoxLayout>(this, {10, 4, 0, 0}, 4);
    column->addWidget(m_what);
    column->addWidget(m_table);
    buildTable();
    connect(&m_workbench, &Workbench::sessionChanged, this, &WorstHeads::refresh);
    connect(&m_other, &OtherPaneHeads::changed, this, &WorstHeads::refresh);
    connect(&m_workbench, &Workbench::dataChanged, this, [this](const QString& view) {
        if (view == fromUtf8(viewAt(ViewPlace::Model).card().id)) refresh();
    });
    refresh();
}

void WorstHeads::buildTable() {
    m_table->setModel(&m_model);
    m_table->setItemDelegate(new NumberDelegate([this](int row) { return isVisited(row); }, this));
    m_table->setItemDelegateForColumn(kBarColumn, new BarDelegate(m_rows, this));
    m_table->setAccessibleName(tr("Heads that lose most"));
    m_table->setFont(numberFont(11));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false); // Tab goes on to the next place, and opens no head
    m_table->setAutoScroll(false);       // only the arrow keys scroll, below
    m_table->verticalHeader()->setVisible(false);
    m_table->verticalHeader()->setDefaultSectionSize(px(24));
    QHeaderView* header = m_table->horizontalHeader();
    header->setStretchLastSection(true);
    header->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter); // as the numbers below
    header->setSectionsClickable(true);
    header->setHighlightSections(false);
    header->setToolTip(tr("A click sorts by this column, another one the other way round"));
    connect(header, &QHeaderView::sectionClicked, this, &WorstHeads::sortBy);
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& index) { open(index.row()); });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (m_marking || !now.isValid()) return;
        m_table->scrollTo(now);
        open(now.row());
    });
}

WorstHeads::~WorstHeads() { askForGrid(false); }

void WorstHeads::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    askForGrid(true);
    refresh();
}

void WorstHeads::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    m_other.want(nullptr);
    askForGrid(false);
}

/// The list needs the numbers of the grid even while a tab covers the grid.
void WorstHeads::askForGrid(bool asks) {
    if (std::exchange(m_asksForGrid, asks) == asks) return;
    const View& grid = viewAt(ViewPlace::Model);
    asks ? m_workbench.showView(grid) : m_workbench.hideView(grid);
}

void WorstHeads::refresh() {
    const ViewInput input = m_workbench.viewInput(viewAt(ViewPlace::Model));
    m_data = dataAs<HeadGridData>(input);
    if (isVisible()) m_other.want(input.data.computing ? nullptr : m_data.get());
    Rows rows = ranked(input);
    describe(input, rows.rows.size());
    rows.rows.resize(std::min<std::size_t>(rows.rows.size(), kMostRows));
    sort(rows);
    const bool changed = rows != m_rows;
    m_rows = std::move(rows);
    showTable(input, changed);
    mark();
}

/// All heads, worst first.
WorstHeads::Rows WorstHeads::ranked(const ViewInput& input) const {
    Rows rows;
    if (!m_data) return rows;
    using Cells = HeadGridData::Row;
    rows.ofDifference = !m_data->first.empty();
    rows.isSigned = rows.ofDifference && m_data->isSigned;
    double others = 0; // the largest value of the other pane
    for (const RankedHead& head : worstHeads(*m_data)) {
        Row row{head, head.value, {}};
        if (rows.ofDifference) {
            row.value = valueIn(*m_data, head, &Cells::ofFirst).value_or(NAN);
            row.other = valueIn(*m_data, head, &Cells::ofSecond);
        } else if (m_other.data()) {
            row.other = valueIn(*m_other.data(), head, &Cells::values);
        }
        const auto within = [](double largest, double value) {
            return std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
        };
        rows.largest = within(rows.largest, head.value);
        if (!rows.ofDifference) others = within(others, row.other.value_or(0));
        rows.rows.push_back(std::move(row));
    }
    // One outlier of the other pane must not make the bars of this one vanish.
    if (others > rows.largest && rows.largest > 0) rows.largest = std::min(others, kMostOfOther * rows.largest);
    if (const PaneData* pane = activePane(input); pane && m_data->ofPane) rows.policy = pane->policyId;
    if (const PaneData* other = otherPane(input)) rows.otherPolicy = other->policyId;
    return rows;
}

double WorstHeads::sortKey(const Row& row) const {
    switch (m_sortColumn) {
    case kLayerColumn: return row.head.layer;
    case kHeadColumn: return row.head.column;
    case kKvColumn: return kvHeadOf(row.head);
    case kValueColumn: return row.value;
    case kOtherColumn: return row.other.value_or(NAN);
    default: return row.difference();
    }
}

/// Sorts by the chosen column. Rows without a number come last, ties keep the order worst first.
void WorstHeads::sort(Rows& rows) const {
    if (m_sortColumn < 0) return;
    std::ranges::stable_sort(rows.rows, [&](const Row& a, const Row& b) {
        const double x = sortKey(a), y = sortKey(b);
        if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
        return m_descending ? x > y : x < y;
    });
}

void WorstHeads::sortBy(int column) {
    if (column == kBarColumn) return;
    m_descending = column == m_sortColumn ? !m_descending : column >= kValueColumn;
    m_sortColumn = column;
    refresh();
    m_table->scrollToTop();
}

void WorstHeads::describe(const ViewInput& input, std::size_t found) {
    if (!m_data) {
        m_what->setFullText(
            fromUtf8(input.data.error.empty() ? viewAt(ViewPlace::Model).card().waiting : input.data.error));
        return;
    }
    const QString what = fromUtf8(m_data->what), order = m_data->takesNoSide ? tr("largest") : tr("worst");
    const QString where = m_workbench.session().compared.path.empty()
                              ? QString()
                              : tr(" · of %1").arg(fromUtf8(m_workbench.capture()->info().fileName));
    m_what->setFullText((found > kMostRows ? tr("%1 · %2 %3 of %4 heads").arg(what, order).arg(kMostRows).arg(found)
                                           : tr("%1 · all %2 heads, %3 first").arg(what).arg(found).arg(order)) +
                        where);
}

int WorstHeads::kvHeadOf(const RankedHead& head) const {
    if (!m_data->perQueryHead) return head.column;
    return m_workbench.capture()->info().layerInfo(LayerIndex(head.layer)).gqaGroupOf[head.column];
}

/// The pane that is compared with the active one; null: none.
const PaneData* WorstHeads::otherPane(const ViewInput& input) const {
    const auto other = static_cast<std::size_t>(m_other.pane());
    return m_data && m_other.data() && other < input.panes.size() ? &input.panes[other] : nullptr;
}

std::vector<std::string> WorstHeads::titles(const ViewInput& input) const {
    const PaneData *pane = activePane(input), *other = otherPane(input);
    std::vector<std::string> titles = {
        "layer", !m_data || m_data->perQueryHead ? "head" : "KV head", "KV", "value", "", "difference", ""};
    if (m_rows.ofDifference) {
        titles[kValueColumn] = m_data->first;
        titles[kOtherColumn] = m_data->second;
    } else {
        if (m_data && m_data->ofPane && pane) titles[kValueColumn] = letteredName(*pane);
        if (other) titles[kOtherColumn] = letteredName(*other);
    }
    const bool isSorted = m_sortColumn >= 0;
    const int sorted = isSorted ? m_sortColumn : m_rows.ofDifference ? kDifferenceColumn : kValueColumn;
    titles[static_cast<std::size_t>(sorted)] += isSorted && !m_descending ? " ↑" : " ↓";
    return titles;
}

/// Does nothing if rows and titles are the same, so that nothing jumps while the user goes from head to head.
void WorstHeads::showTable(const ViewInput& input, bool changed) {
    const bool compares = m_rows.ofDifference || otherPane(input);
    if (!changed && titles(input) == m_titles) return;
    const bool another = titles(input) != m_titles;
    m_titles = titles(input);
    std::vector<double> values, differences;
    for (const Row& row : m_rows.rows) {
        values.insert(values.end(), {row.value, row.other.value_or(row.value)});
        differences.push_back(row.difference());
    }
    ViewTable table;
    table.columns = m_titles;
    table.rowCount = std::ssize(m_rows.rows);
    table.cell = [this, numbers = NumberColumn(values), apart = NumberColumn(differences)](std::int64_t at,
                                                                                           int column) -> std::string {
        const Row& row = m_rows.rows[at];
        switch (column) {
        case kLayerColumn: return std::to_string(row.head.layer);
        case kHeadColumn: return std::to_string(row.head.column);
        case kKvColumn: return std::to_string(kvHeadOf(row.head));
        case kValueColumn: return valueText(numbers, row.value, m_data->neverIsNan).toStdString();
        case kOtherColumn: return row.other ? valueText(numbers, *row.other, m_data->neverIsNan).toStdString() : "…";
        case kDifferenceColumn:
            return (row.difference() > 0 ? QString("+") : QString())
                .append(valueText(apart, row.difference(), false))
                .toStdString();
        default: return {};
        }
    };
    m_marking = true;
    m_model.show(std::move(table));
    m_marking = false;
    if (another) m_table->scrollToTop();
    for (int column = 0; column < kBarColumn; ++column) m_table->resizeColumnToContents(column);
    const bool tight = compares && m_table->width() < px(700); // the bars need the room
    m_table->setColumnHidden(kKvColumn, tight || (m_data && !m_data->perQueryHead));
    m_table->setColumnHidden(kOtherColumn, !compares);
    m_table->setColumnHidden(kDifferenceColumn, !compares);
}

/// Makes the row of the open head the current one, from which the arrow keys go on.
void WorstHeads::mark() {
    const Session& session = m_workbench.session();
    const bool perQuery = !m_data || m_data->perQueryHead;
    const int head = perQuery ? session.queryHead.value : session.kvHead.value;
    if (isVisible() && m_data) m_workbench.markOpened(perQuery, session.layer.value, head);
    const auto row = std::ranges::find_if(
        m_rows.rows, [&](const Row& one) { return one.head.layer == session.layer.value && one.head.column == head; });
    m_marking = true;
    m_table->setCurrentIndex(row == m_rows.rows.end()
                                 ? QModelIndex()
                                 : m_model.index(static_cast<int>(row - m_rows.rows.begin()), kLayerColumn));
    m_marking = false;
}

bool WorstHeads::isVisited(int row) const {
    const RankedHead& head = m_rows.rows[static_cast<std::size_t>(row)].head;
    return m_workbench.opened().of(m_data->perQueryHead).contains({head.layer, head.column});
}

void WorstHeads::open(int row) {
    const auto capture = m_workbench.capture();
    if (!capture || !m_data || row < 0 || static_cast<std::size_t>(row) >= m_rows.rows.size()) return;
    const RankedHead head = m_rows.rows[static_cast<std::size_t>(row)].head;
    const Session& now = m_workbench.session();
    if (now.layer.value == head.layer && head.column == (m_data->perQueryHead ? now.queryHead.value : now.kvHead.value))
        return;
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
