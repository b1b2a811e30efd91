#pragma once

#include "app/window/actions/engine_controller.h"

#include <QToolButton>

namespace kvscope {

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
    void addEngines();
    void addArithmetics();

    Workbench& m_workbench;
    EngineController& m_controller;
};

} // namespace kvscope
