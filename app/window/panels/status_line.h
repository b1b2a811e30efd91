#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

namespace kvscope {

class ElidedLabel;
class EngineChooser;
class EngineController;
class LiveNumber;

/// One line at the bottom: layer, head and selection; right: engine, arithmetic, times.
class StatusLine : public QWidget {
    Q_OBJECT

public:
    StatusLine(Workbench& workbench, EngineController& engines, QWidget* parent = nullptr);
    QString text() const; ///< all of it, for tests
    EngineChooser& engineChooser() const { return *m_engine; }

private:
    void refresh();

    Workbench& m_workbench;
    ElidedLabel* m_left;
    EngineChooser* m_engine;
    LiveNumber* m_right;
};

} // namespace kvscope
