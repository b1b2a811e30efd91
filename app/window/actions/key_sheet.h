#pragma once

#include <QDialog>

namespace kvscope {

class WindowActions;

/// All keys, read from the live actions, and the mouse gestures of the canvases.
class KeySheet : public QDialog {
    Q_OBJECT

public:
    KeySheet(const WindowActions& actions, QWidget* parent = nullptr);
};

} // namespace kvscope
