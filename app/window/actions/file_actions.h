#pragma once

#include "app/workbench/workbench.h"

#include <QDateTime>
#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Opens, saves, remembers and watches files. A path may be a capture, a session or a recorded list; its content
/// decides. Errors become notices.
class FileActions : public QObject {
    Q_OBJECT

public:
    FileActions(Workbench& workbench, NoticeStrip& notices, QWidget* parent);

    void saveDocksFrom(std::function<DockPlaces()> docks) { m_docks = std::move(docks); }

    /// A session with a lesson is opened without its file: the program never writes it, Save asks for another name.
    void open(const QString& path);
    /// Compares the open capture with this one. Without an open capture, or if the path is no capture, opens the path.
    void compareWith(const QString& path);
    void openLive(const live::LiveDescription& description); ///< starts its worker
    void openWithDialog();
    void compareWithDialog();
    void addRecordedWithDialog();
    void reload();
    bool save(); ///< to the session's file, asking for one the first time; false when cancelled or failed
    bool saveAs();
    /// Whether the window may be closed: asks once about all session files with unsaved changes, and may save them.
    bool mayClose();
    void closeCapture();         ///< the second of two captures, else the only one
    void startAfresh();          ///< the open capture with its first session
    QString sessionPath() const; ///< empty: never saved

    QStringList recent() const; ///< newest first, at most ten: paths, and live contexts as live::textOf
    static QString recentName(const QString& entry);
    void clearRecent();

signals:
    void recentChanged();
    void changeWanted(); ///< of the description of a live context that could not be opened

private:
    void openSession(const QString& path);
    void offerToLocate(const QString& path, Session session); ///< a session whose capture is gone
    void sayCarried(const std::vector<std::string>& adapted);
    Session withDocks(Session session) const; ///< which the window has now
    bool saveTo(const QString& path);
    bool write(const std::string& path, const Session& session); ///< false: a notice says why not
    void addRecorded(const QString& path);
    void openCaptureOf(const QString& list);                           ///< and adds the list
    void offerCaptureFor(const QString& list, const QString& message); ///< for a list whose capture is not found
    void openWithList(const QString& capture, const QString& list);
    void remember(const QString& path);
    void noteCapture(); ///< adds the opened capture to the recent ones
    void watchFiles();
    QStringList openFiles() const;
    void tellChanged(const QString& path);
    void followOpening();
    void showOpening();
    void followProgress();
    QString openingText();
    void report(const QString& message);

    Workbench& m_workbench;
    NoticeStrip& m_notices;
    QWidget* m_window;
    std::function<DockPlaces()> m_docks;
    QFileSystemWatcher m_watcher;
    QString m_changed;                                      ///< the file that has changed on disk last
    std::map<QString, std::pair<QDateTime, qint64>> m_told; ///< time and size of open files when opened or last told
    QString m_listToAdd;                                    ///< a recorded list whose capture is being opened
    bool m_isAskedLive = false;    ///< a live context was asked for, and nothing opened or failed since
    QString m_stage;               ///< of a live context that is being opened
    Clock::TimePoint m_stageBegan; ///< when the stage began; `m_stageFrom`: the progress at that time
    double m_stageFrom = 0;
    std::unique_ptr<Clock::Timer> m_openingSoon; ///< delays the "opening" notice, which fast opening does not need
};

} // namespace kvscope
