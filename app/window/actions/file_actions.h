#pragma once

#include "app/workbench/workbench.h"

#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>

#include <functional>
#include <memory>

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Opens, saves, remembers and watches files. A path may be a capture, a session or a recorded list; its content
/// decides. Errors become notices.
class FileActions : public QObject {
    Q_OBJECT

public:
    FileActions(Workbench& workbench, NoticeStrip& notices, QWidget* parent);

    /// A session with a lesson is opened without its file: the program never writes it, Save asks for another name.
    void open(const QString& path);
    /// A capture or session in a window of its own, beside this one; a recorded list as a further pane here.
    void openBeside(const QString& path);
    void openWithDialog();
    void openBesideWithDialog();
    void addRecordedWithDialog();
    void reload();
    bool save(); ///< to the session's file, asking for one the first time; false when cancelled or failed
    bool saveAs();
    /// Whether the current session may be closed: a session with a file is saved first. If saving fails, a notice
    /// offers to discard the changes and call `on`.
    bool mayLeave(std::function<void()> on);
    void closeCapture();
    QString sessionPath() const { return m_sessionPath; }

    QStringList recent() const; ///< newest first, at most ten
    void clearRecent();

signals:
    void recentChanged();
    void sessionFileChanged();              ///< its path
    void besideWanted(const QString& path); ///< a second window with this file

private:
    void openSession(const QString& path);
    void leaveSession(const std::function<void()>& then);
    bool saveTo(const QString& path);
    void addRecorded(const QString& path);
    void remember(const QString& path);
    void watchCapture();
    void followOpening();
    void showOpening();
    QString askForFile(); ///< empty when cancelled
    void report(const QString& message);

    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QWidget* m_window;
    QFileSystemWatcher m_watcher;
    std::unique_ptr<Clock::Timer> m_openingSoon; ///< delays the "opening" notice, which fast opening does not need
    QString m_sessionPath;
};

} // namespace kvscope
