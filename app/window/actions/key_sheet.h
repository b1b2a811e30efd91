#pragma once

#include <QDialog>
#include <QList>

class QAction;
class QMenuBar;

namespace kvscope {

/// All keys in two columns, read from the live menus, the mouse gestures of the canvases, and ways to help and manual.
class KeySheet : public QDialog {
    Q_OBJECT

public:
    /// `help`: actions that explain more, as buttons.
    KeySheet(const QMenuBar& menus, const QList<QAction*>& help, QWidget* parent = nullptr);
};

} // namespace kvscope
