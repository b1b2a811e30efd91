#pragma once

#include "app/workbench/clock.h"

#include <QString>
#include <QWidget>

#include <utility>
#include <vector>

class QGridLayout;

namespace kvscope {

/// Facts as name left and value right. Labels are reused, so that a drag does not flicker.
class FactGrid : public QWidget {
public:
    using Facts = std::vector<std::pair<QString, QString>>;

    explicit FactGrid(QWidget* parent = nullptr, Clock& clock = machineClock());
    void show(const Facts& facts, bool areOutdated = false);

private:
    Clock& m_clock;
    QGridLayout* m_grid;
};

} // namespace kvscope
