// Cells are computed when they are shown, so that a table of 100,000 tokens opens at once.
#include "app/window/canvas/view_table_model.h"

#include "app/window/style/number_text.h"

#include <limits>
#include <set>

namespace kvscope {

namespace {

QString oneCell(QString text) { return text.replace('\t', ' ').replace('\n', ' '); }

} // namespace

void ViewTableModel::show(ViewTable table) {
    beginResetModel();
    m_table = std::move(table);
    endResetModel();
}

void ViewTableModel::renew(ViewTable table) {
    if (table.columns != m_table.columns || table.rowCount != m_table.rowCount) return show(std::move(table));
    m_table = std::move(table);
    if (rowCount() > 0 && columnCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

int ViewTableModel::rowCount(const QModelIndex& parent) const {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    return parent.isValid() ? 0 : static_cast<int>(std::min(m_table.rowCount, kMost));
}

int ViewTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_table.columns.size());
}

QVariant ViewTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || role != Qt::DisplayRole) return {};
    return fromUtf8(m_table.cell(index.row(), index.column()));
}

QVariant ViewTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role != Qt::DisplayRole || section < 0) return {};
    if (orientation == Qt::Vertical) return section;
    return section < columnCount() ? fromUtf8(m_table.columns[section]) : QVariant();
}

QString tableAsTsv(const ViewTable& table) {
    const auto line = [&](const auto& cellOf) {
        QStringList cells;
        for (int column = 0; column < static_cast<int>(table.columns.size()); ++column)
            cells += oneCell(fromUtf8(cellOf(column)));
        return cells.join('\t') + '\n';
    };
    QString text = line([&](int column) { return table.columns[column]; });
    for (std::int64_t row = 0; row < table.rowCount; ++row)
        text += line([&](int column) { return table.cell(row, column); });
    return text;
}

QString selectionAsTsv(const ViewTableModel& model, const QItemSelection& chosen) {
    std::set<int> rows, columns;
    for (const QItemSelectionRange& range : chosen) {
        for (int row = range.top(); row <= range.bottom(); ++row) rows.insert(row);
        for (int column = range.left(); column <= range.right(); ++column) columns.insert(column);
    }
    QStringList lines;
    for (const int row : rows) {
        QStringList cells;
        for (const int column : columns) {
            const QModelIndex cell = model.index(row, column);
            cells += chosen.contains(cell) ? oneCell(model.data(cell).toString()) : QString();
        }
        lines += cells.join('\t');
    }
    return lines.join('\n');
}

} // namespace kvscope
