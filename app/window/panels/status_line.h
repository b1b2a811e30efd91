#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QLabel;

namespace kvscope {

class ElidedLabel;

/// One line at the bottom: where one is, what is selected; right: engine, arithmetic, times.
class StatusLine : public QWidget {
    Q_OBJECT

public:
    explicit StatusLine(Workbench& workbench, QWidget* parent = nullptr);
    QString text() const; ///< all of it, for tests

private:
    void refresh();

    Workbench& m_workbench;
    ElidedLabel* m_left;
    QLabel* m_right;
};

} // namespace kvscope
