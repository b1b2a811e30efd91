#pragma once

#include "app/workbench/workbench.h"

#include <QFileInfoList>
#include <QObject>
#include <QString>

#include <memory>

namespace kvscope {

class NoticeStrip;

/// Keeps what is shown in a file of the state folder, written on a worker two seconds after a change, so that a window
/// that crashes, is killed or loses its display loses no more than those seconds. A window that is closed removes its
/// file. The files of windows that ended otherwise are offered at the next starts, until restored or declined.
class Recovery : public QObject {
    Q_OBJECT

public:
    /// `folder` is created if it is missing; if that fails, nothing is kept.
    Recovery(Workbench& workbench, NoticeStrip& notices, const QString& folder);
    ~Recovery() override; ///< the window is closed

    /// $XDG_STATE_HOME/kvscope, by default ~/.local/state/kvscope.
    static QString stateFolder();
    /// Where a crash of this process writes its stack: beside the session.
    static QString stackFile(const QString& folder);

    void offer(); ///< a notice with the newest session that was lost

private:
    struct Writing; ///< shared with the worker that writes
    void keep();
    void showOffer();
    void restore();
    QFileInfoList lost() const; ///< sessions of processes that are gone, newest first

    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QString m_folder, m_file;
    QString m_offered, m_offer;                     ///< the file, and what the notice says
    bool m_wasTried = false, m_wasRestored = false; ///< not tried, and the notice is gone: declined
    std::shared_ptr<Writing> m_writing;
    std::unique_ptr<Clock::Timer> m_soon;
};

} // namespace kvscope
