#pragma once

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

    explicit FactGrid(QWidget* parent = nullptr);
    void show(const Facts& facts);

private:
    QGridLayout* m_grid;
};

} // namespace kvscope
