#pragma once

#include "app/workbench/workbench.h"

#include <QObject>

class QWidget;

namespace kvscope {

class NoticeStrip;
struct SavedLive;

/// Of the live context that is open: what became of its worker, and its capture as a file.
class LiveActions : public QObject {
    Q_OBJECT

public:
    LiveActions(Workbench& workbench, NoticeStrip& notices, QWidget* window);

    void saveCapture();      ///< asks where the worker writes it; nothing without a live context
    SavedLive saved() const; ///< the files of the live context that is open

private:
    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QWidget* m_window;
    SharedText m_savedLive; ///< of which `m_savedCapture` is the capture
    std::string m_savedCapture;
};

} // namespace kvscope
