#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QMenuBar;
class QPushButton;

namespace kvscope {

class SegmentedSwitch;
class WindowActions;

/// Menus, layout switch, undo and redo, find, export: one bar instead of a menu bar and tool bars.
class TopBar : public QWidget {
    Q_OBJECT

public:
    TopBar(Workbench& workbench, WindowActions& actions, QWidget* parent = nullptr);
    void fitWidth(int windowWidth);
    void focusFind();
    bool leaveFind(); ///< true when the find field had the focus
    void findNext();

signals:
    void notFound(const QString& text);

private:
    void build(WindowActions& actions);

    Workbench& m_workbench;
    QMenuBar* m_menus = nullptr;
    SegmentedSwitch* m_layout = nullptr;
    QLineEdit* m_find = nullptr;
    QPushButton* m_export = nullptr;
};

} // namespace kvscope
