#pragma once

#include "app/workbench/workbench.h"

#include <QList>
#include <QObject>

#include <memory>

class QAction;
class QKeyEvent;
class QKeySequence;
class QMenu;
class QMenuBar;
class QWidget;

namespace kvscope {

class FileActions;
class SelectionHistory;
class WindowCommands;

/// Every command of the window as a named action with its keys: the menus and the key sheet are made from this list.
class WindowActions : public QObject {
    Q_OBJECT

public:
    /// `commands` are those of `window`, which owns this object.
    WindowActions(QWidget& window, WindowCommands& commands, Workbench& workbench, FileActions& files);
    ~WindowActions() override;

    void fillMenus(QMenuBar* bar);
    QAction* byName(const QString& name) const; ///< null without one
    /// The command of the step player that a key stands for; null for any other key.
    QAction* stepActionFor(const QKeyEvent& event) const;

private:
    QAction* add(const char* name, const QString& text, const QList<QKeySequence>& keys,
                 const std::function<void()>& run);
    /// A command on the canvas that commands apply to; without one nothing happens.
    template <class Command> std::function<void()> onCanvas(Command command) const;
    void addFileActions();
    void addEditActions();
    void addViewActions();
    void addHeadActions();
    void addStepActions();
    void fillRecent();
    void follow();
    void followSelection();
    void followMotion();
    void fillPanels(QMenu* menu);
    void stepHead(int by);
    void stepLayer(int by);
    void stepSelection(int by);
    void stepScale(int by);
    void setTheme(ThemeChoice choice);
    void setLayout(WindowLayout layout);

    QWidget& m_window;
    WindowCommands& m_commands;
    Workbench& m_workbench;
    FileActions& m_files;
    std::unique_ptr<SelectionHistory> m_selectionHistory;
    QMenu* m_recent = nullptr;
    QMenu* m_policies = nullptr;
};

} // namespace kvscope
