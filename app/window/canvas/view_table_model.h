#pragma once

#include "views/view.h"

#include <QAbstractTableModel>
#include <QItemSelection>

namespace kvscope {

/// The table behind a canvas as an item model: a painted canvas has no accessible children, a table view has.
class ViewTableModel : public QAbstractTableModel {
    Q_OBJECT

public:
    using QAbstractTableModel::QAbstractTableModel;
    void show(ViewTable table);
    void renew(ViewTable table); ///< keeps what is selected if columns and number of rows are the same as before

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    ViewTable m_table;
};

/// Tab-separated text of a whole table with its header, as "Copy data" puts it on the clipboard.
QString tableAsTsv(const ViewTable& table);
/// The chosen cells line by line, without a header; cells between them that are not chosen are empty.
QString selectionAsTsv(const ViewTableModel& model, const QItemSelection& chosen);

} // namespace kvscope
