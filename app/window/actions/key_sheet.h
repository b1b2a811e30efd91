#pragma once

#include <QDialog>
#include <QList>

class QAction;
class QMenuBar;

namespace kvscope {

/// All keys, read from the window's menus, and the mouse gestures in two columns; buttons lead to help and the manual.
class KeySheet : public QDialog {
    Q_OBJECT

public:
    /// `help`: actions that explain more, as buttons.
    KeySheet(const QMenuBar& menus, const QList<QAction*>& help, QWidget* parent = nullptr);
};

} // namespace kvscope
