#pragma once

#include "app/workbench/clock.h"

#include <QString>
#include <QWidget>

#include <utility>
#include <vector>

class QLabel;
class QVBoxLayout;

namespace kvscope {

class LiveNumber;

/// Facts as name left and value right, or the value below if the line is too narrow for both: a name may wrap, a number
/// is never cut; lists and names longer than a line are broken. Labels are reused, so that a drag does not flicker.
class FactGrid : public QWidget {
    Q_OBJECT

public:
    using Facts = std::vector<std::pair<QString, QString>>;

    explicit FactGrid(QWidget* parent = nullptr, Clock& clock = machineClock());
    void show(const Facts& facts, bool areOutdated = false);

private:
    struct Row {
        QLabel* name;
        LiveNumber* value;
    };
    Clock& m_clock;
    QVBoxLayout* m_column;
    std::vector<Row> m_rows;
};

} // namespace kvscope
