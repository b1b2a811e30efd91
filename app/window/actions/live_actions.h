#pragma once

#include "app/workbench/workbench.h"

#include <QObject>

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Of the live context that is open: what became of its worker, and its capture as a file.
class LiveActions : public QObject {
    Q_OBJECT

public:
    LiveActions(Workbench& workbench, NoticeStrip& notices, QWidget* window);

    void saveCapture(); ///< asks where the worker writes it; nothing without a live context

private:
    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QWidget* m_window;
};

} // namespace kvscope
