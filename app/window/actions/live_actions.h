#pragma once

#include "app/workbench/workbench.h"

#include <QObject>

class QWidget;

namespace kvscope {

class NoticeStrip;
struct SavedLive;

/// Reports when the worker of the open live context is lost, and saves the context's capture to a file.
class LiveActions : public QObject {
    Q_OBJECT

public:
    LiveActions(Workbench& workbench, NoticeStrip& notices, QWidget* window);

    void saveCapture();      ///< asks where the worker writes it; nothing without a live context
    SavedLive saved() const; ///< the session file and the saved capture of the open live context

private:
    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QWidget* m_window;
    SharedText m_savedLive; ///< the live context whose capture is `m_savedCapture`
    std::string m_savedCapture;
};

} // namespace kvscope
