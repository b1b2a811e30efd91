#pragma once

#include "app/window/actions/engine_controller.h"
#include "app/workbench/workbench.h"

#include <QToolButton>
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

/// Engine and arithmetic in the status bar; a click offers the others, with what is missing for those that do not work
/// here.
class EngineChooser : public QToolButton {
    Q_OBJECT

public:
    EngineChooser(Workbench& workbench, EngineController& controller, QWidget* parent);

    /// Updates the tool tip, which counts the calls that ran on the CPU.
    void showCounts();

private:
    void refresh();
    void fillMenu();

    Workbench& m_workbench;
    EngineController& m_controller;
};

} // namespace kvscope
