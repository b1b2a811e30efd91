// Opening of files from the menu, the command line, drag and drop and the recent list.
#include "app/window/actions/file_actions.h"

#include "app/lessons/lesson.h"
#include "app/study/resources.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/write_aside.h"
#include "app/workbench/second_workbench.h"
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "core/lists/selection_file.h"
#include "views/common/view_facts.h"

#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr int kRecentFiles = 10;
constexpr std::size_t kLongestRecent = 64 << 10; // bytes of a live context's description, which holds its text
constexpr const char* kRecentKey = "recentFiles";
constexpr const char* kCaptureFilter = "Captures and tensors (*.h5 *.hdf5 *.safetensors *.npz);;All files (*)";
constexpr std::chrono::milliseconds kSlowOpening{500};

/// The time of a file's last change, and its size; an invalid time and -1 if there is no file.
std::pair<QDateTime, qint64> stampOf(const QString& path) {
    const QFileInfo file(path);
    return {file.lastModified(), file.exists() ? file.size() : -1};
}

bool isInstalledLesson(const QString& path) {
    const std::string folder = findResource("resources/lessons");
    const QString file = QFileInfo(path).canonicalFilePath(); // empty for a new file
    return !folder.empty() && !file.isEmpty() &&
           QFileInfo(file).path() == QFileInfo(fromUtf8(folder)).canonicalFilePath();
}

/// Distinguishes recorded lists from captures, which may both be HDF5, by the root attribute near the start of the
/// file.
bool looksLikeRecordedList(const QString& path) {
    if (!QFileInfo(path).isFile()) return false; // reading from a pipe could block
    const QString suffix = QFileInfo(path).suffix().toLower();
    if (suffix == "csv" || suffix == "json") return true;
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && file.read(1 << 16).contains("kvscope-selection");
}

} // namespace

FileActions::FileActions(Workbench& workbench, NoticeStrip& notices, QWidget* parent)
    : QObject(parent), m_workbench(workbench), m_notices(notices), m_window(parent),
      m_openingSoon(workbench.clock().makeTimer([this] { showOpening(); })) {
    connect(&m_workbench, &Workbench::captureChanged, this, &FileActions::noteCapture);
    for (Workbench* one : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())})
        connect(one, &Workbench::captureChanged, this, &FileActions::watchFiles);
    connect(&m_workbench, &Workbench::failed, this, &FileActions::report);
    connect(&m_workbench, &Workbench::carriedOver, this, &FileActions::sayCarried);
    connect(&m_workbench, &Workbench::openingChanged, this, &FileActions::followOpening);
    connect(&m_workbench, &Workbench::openingProgressed, this, &FileActions::followProgress);
    connect(&m_watcher, &QFileSystemWatcher::fileChanged, this, &FileActions::tellChanged);
    // The watch on a replaced file stays with the old file, which is still open; the watch on the folder reports the
    // new one.
    connect(&m_watcher, &QFileSystemWatcher::directoryChanged, this, [this] {
        for (const QString& path : openFiles())
            if (QFile::exists(path) && stampOf(path) != m_told[path]) tellChanged(path);
    });
}

void FileActions::tellChanged(const QString& path) {
    m_changed = path;
    m_told[path] = stampOf(path);
    m_watcher.removePath(path);
    if (QFile::exists(path)) m_watcher.addPath(path);
    m_notices.show("changed", NoticeStrip::Tone::Warning, tr("%1 has changed on disk.").arg(QFileInfo(path).fileName()),
                   tr("Reload"), [this] { reload(); });
}

void FileActions::report(const QString& message) {
    m_listToAdd.clear(); // if its capture could not be opened
    if (std::exchange(m_isAskedLive, false))
        return m_notices.show("error", NoticeStrip::Tone::Error,
                              fromUtf8(withFullStop(asSentence(message.toStdString()))), tr("Change…"),
                              [this] { emit changeWanted(); });
    m_notices.show("error", NoticeStrip::Tone::Error, message);
}

void FileActions::followOpening() {
    m_notices.dismiss("opening");
    m_stage.clear();
    if (m_workbench.opening().name.empty()) return m_openingSoon->stop();
    m_notices.dismiss("error"); // of an earlier attempt
    m_openingSoon->start(kSlowOpening);
}

void FileActions::showOpening() {
    m_notices.show("opening", NoticeStrip::Tone::Progress, openingText(), tr("Cancel"), [this] {
        m_isAskedLive = false;
        m_listToAdd.clear();
        m_workbench.cancelOpening();
    });
}

/// For a live context the last stage, reading, takes most of the time; its progress gives an estimate of the time left.
QString FileActions::openingText() {
    QString text = tr("Opening %1").arg(fromUtf8(m_workbench.opening().name));
    if (m_stage.isEmpty()) return text + "…";
    text += ": " + m_stage;
    const double done = m_workbench.opening().progress - m_stageFrom, left = 1 - m_workbench.opening().progress;
    const std::chrono::duration<double> took = m_workbench.clock().now() - m_stageBegan;
    if (done > 0.02 && m_stage.startsWith("reading") && took.count() > 0.5)
        text += tr(", %1 left").arg(durationText(std::max(1.0, took.count() * left / done)));
    return text + "…";
}

void FileActions::followProgress() {
    if (const QString stage = fromUtf8(m_workbench.opening().stage); stage != m_stage) {
        m_stage = stage;
        m_stageBegan = m_workbench.clock().now();
        m_stageFrom = m_workbench.opening().progress;
    }
    m_notices.retell("opening", openingText());
}

void FileActions::openLive(const live::LiveDescription& description) {
    m_listToAdd.clear();
    m_notices.dismiss("error");
    m_notices.dismiss("carried");
    m_notices.dismiss("worker");
    m_isAskedLive = true;
    m_workbench.openLive(description);
}

void FileActions::open(const QString& path) {
    if (path.startsWith('{')) return openLive(live::descriptionOf(path.toStdString())); // a recent live context
    const QString absolute = QFileInfo(path).absoluteFilePath();
    m_listToAdd.clear();
    m_notices.dismiss("error");
    const bool isSession = isSessionFile(absolute.toStdString());
    if (!isSession && looksLikeRecordedList(absolute)) return addRecorded(absolute);
    m_notices.dismiss("carried");
    if (isSession) return openSession(absolute);
    m_workbench.openCapture(absolute.toStdString());
}

bool FileActions::mayClose() {
    const auto unsaved = m_workbench.history().unsaved();
    if (unsaved.empty()) return true;
    QStringList names;
    for (const auto& [path, session] : unsaved) names << QFileInfo(fromUtf8(path)).fileName();
    QMessageBox box(QMessageBox::Question, tr("KVScope"), tr("Save the changes to %1?").arg(names.join(tr(" and "))),
                    QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, m_window);
    box.button(QMessageBox::Discard)->setText(tr("Close without saving"));
    const int answer = box.exec();
    if (answer != QMessageBox::Save) return answer == QMessageBox::Discard;
    return std::ranges::all_of(unsaved, [this](const auto& one) {
        return write(one.first, one.first == m_workbench.history().file() ? withDocks(one.second) : one.second);
    });
}

void FileActions::closeCapture() {
    m_notices.dismiss("carried");
    if (!m_workbench.session().compared.path.empty()) return m_workbench.second().stopComparing();
    m_workbench.closeCapture();
}

void FileActions::startAfresh() {
    m_notices.dismiss("carried");
    m_workbench.openAfresh();
}

void FileActions::sayCarried(const std::vector<std::string>& adapted) {
    if (adapted.empty()) return;
    QString text = tr("%1 is shown with the previous policies and settings.")
                       .arg(fromUtf8(m_workbench.capture()->info().fileName)); // a live context has one, too
    for (const std::string& sentence : adapted) text += " " + fromUtf8(sentence);
    m_notices.show("carried", NoticeStrip::Tone::Notice, text, tr("Start afresh"), [this] { startAfresh(); });
}

void FileActions::compareWith(const QString& path) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    const bool isCapture =
        QFile::exists(absolute) && !isSessionFile(absolute.toStdString()) && !looksLikeRecordedList(absolute);
    if (!m_workbench.capture() || !isCapture) return open(absolute);
    m_notices.dismiss("error");
    m_workbench.second().compareWith(absolute.toStdString());
}

void FileActions::openSession(const QString& path) {
    try {
        Session session = readSession(path.toStdString());
        const bool isLesson = !session.lesson.empty();
        if (isLesson) {
            keepInterface(session, m_workbench.session());
            noteStart(session);
        } else {
            remember(path);
        }
        const bool isFile = session.live.text().empty();
        if (isFile && !QFile::exists(fromUtf8(session.capturePath))) return offerToLocate(path, std::move(session));
        if (!isFile) { // if it cannot be opened, the notice's button Change… edits this description
            QSettings().setValue("live/last", fromUtf8(session.live.text()));
            m_isAskedLive = true;
        }
        // A lesson is opened without its file, so that Save asks for another name.
        m_workbench.openSession(std::move(session), isLesson ? std::string() : path.toStdString());
    } catch (const Error& error) {
        report(fromUtf8(error.what()));
    }
}

void FileActions::offerToLocate(const QString& path, Session session) {
    const QString message = tr("The capture of %1 is not where the session names it: %2")
                                .arg(QFileInfo(path).fileName(), fromUtf8(session.capturePath));
    m_notices.show("error", NoticeStrip::Tone::Error, message, tr("Locate…"),
                   [this, path, session = std::move(session)]() mutable {
                       const QString found = QFileDialog::getOpenFileName(m_window, tr("Locate the capture"),
                                                                          QFileInfo(path).path(), kCaptureFilter);
                       if (found.isEmpty()) return;
                       session.capturePath = found.toStdString();
                       m_workbench.openSession(session, session.lesson.empty() ? path.toStdString() : std::string());
                   });
}

/// A list names its capture without a folder: it is looked for beside the list and where the program was started.
void FileActions::openCaptureOf(const QString& path) {
    try {
        const QString name = fromUtf8(readSelection(path.toStdString()).captureFile);
        if (name.isEmpty())
            return offerCaptureFor(path, tr("%1 names no capture. A recorded list is shown on its "
                                            "capture: open it")
                                             .arg(QFileInfo(path).fileName()));
        for (const QString& place : {QFileInfo(path).dir().filePath(name), name})
            if (QFileInfo(place).isFile()) return openWithList(place, path);
        offerCaptureFor(path, tr("The capture of %1 is neither beside it nor where KVScope was started: %2. Locate it, "
                                 "or copy it beside the list.")
                                  .arg(QFileInfo(path).fileName(), name));
    } catch (const Error& error) {
        report(fromUtf8(error.what()));
    }
}

void FileActions::offerCaptureFor(const QString& path, const QString& message) {
    m_notices.show("error", NoticeStrip::Tone::Error, message, tr("Locate…"), [this, path] {
        const QString found =
            QFileDialog::getOpenFileName(m_window, tr("Locate the capture"), QFileInfo(path).path(), kCaptureFilter);
        if (!found.isEmpty()) openWithList(found, path);
    });
}

void FileActions::openWithList(const QString& capture, const QString& list) {
    m_notices.dismiss("error");
    m_listToAdd = list;
    m_workbench.openCapture(QFileInfo(capture).absoluteFilePath().toStdString());
}

void FileActions::addRecorded(const QString& path) {
    if (!m_workbench.opening().name.empty() && !m_workbench.capture()) { // of the capture that is being opened
        m_listToAdd = path;
        return;
    }
    if (!m_workbench.capture()) return openCaptureOf(path);
    SessionPane pane;
    pane.recordedPath = path.toStdString();
    try { // refuses a list of another capture here, so that no pane is made that would report the same error
        checkAgainst(readSelection(pane.recordedPath), *m_workbench.capture());
    } catch (const Error& error) {
        return report(fromUtf8(error.what()));
    }
    bool added = false;
    m_workbench.change([&](Session& s) { added = addPane(s, pane); }, tr("Add recorded list"));
    if (!added) report(tr("There are four panes already: remove one to add %1.").arg(QFileInfo(path).fileName()));
}

void FileActions::openWithDialog() {
    const QString path = QFileDialog::getOpenFileName(
        m_window, tr("Open"), QFileInfo(fromUtf8(m_workbench.session().capturePath)).path(),
        tr("Captures, tensors, sessions and lists (*.h5 *.hdf5 *.safetensors *.npz "
           "*.json *.kvscope *.csv);;All files (*)"));
    if (!path.isEmpty()) open(path);
}

void FileActions::compareWithDialog() {
    const QString path =
        QFileDialog::getOpenFileName(m_window, tr("Compare with another prompt of the same model"),
                                     QFileInfo(fromUtf8(m_workbench.session().capturePath)).path(), kCaptureFilter);
    if (!path.isEmpty()) compareWith(path);
}

void FileActions::addRecordedWithDialog() {
    const QString path = QFileDialog::getOpenFileName(m_window, tr("Add a recorded list"), {},
                                                      tr("Recorded lists (*.json *.csv *.h5);;All files (*)"));
    if (!path.isEmpty()) addRecorded(path);
}

void FileActions::reload() {
    m_notices.dismiss("changed");
    m_workbench.reload();
}

bool FileActions::save() { return sessionPath().isEmpty() ? saveAs() : saveTo(sessionPath()); }

QString FileActions::sessionPath() const { return fromUtf8(m_workbench.history().file()); }

Session FileActions::withDocks(Session session) const {
    if (m_docks) session.look.docks = m_docks();
    return session;
}

bool FileActions::write(const std::string& path, const Session& session) {
    try {
        writeAside(m_window, fromUtf8(path), [path, session] { writeSession(path, session); });
        return true;
    } catch (const Error& error) {
        report(fromUtf8(error.what()));
        return false;
    }
}

bool FileActions::saveTo(const QString& path) {
    if (isInstalledLesson(path)) {
        report(tr("%1 is a lesson of the program and is not overwritten: choose another name.").arg(path));
        return false;
    }
    if (!write(path.toStdString(), withDocks(m_workbench.session()))) return false;
    m_workbench.markSaved(path.toStdString());
    remember(path);
    return true;
}

bool FileActions::saveAs() {
    const QFileInfo capture(fromUtf8(m_workbench.session().capturePath));
    const QString path = fileToWrite(m_window, tr("Save session"),
                                     capture.dir().filePath(fromUtf8(stemOf(m_workbench.session())) + ".kvscope"),
                                     tr("Sessions (*.kvscope *.json)"));
    return !path.isEmpty() && saveTo(path);
}

/// The files of the open captures, including the second one; a live context has none.
QStringList FileActions::openFiles() const {
    QStringList paths;
    for (const Workbench* workbench : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())})
        if (workbench->capture() && !workbench->live()) paths += fromUtf8(workbench->capture()->info().path);
    return paths;
}

void FileActions::watchFiles() {
    if (!m_watcher.files().isEmpty()) m_watcher.removePaths(m_watcher.files());
    if (!m_watcher.directories().isEmpty()) m_watcher.removePaths(m_watcher.directories());
    const QStringList files = openFiles();
    if (!files.contains(m_changed)) m_notices.dismiss("changed");
    QStringList watched = files;
    for (const QString& path : files) watched += QFileInfo(path).path();
    watched.removeDuplicates();
    if (!watched.isEmpty()) m_watcher.addPaths(watched);
    m_told.clear();
    for (const QString& path : files) m_told[path] = stampOf(path);
}

void FileActions::noteCapture() {
    m_notices.dismiss("changed");
    if (!m_workbench.capture()) return;
    m_isAskedLive = false;
    if (const QString list = std::exchange(m_listToAdd, {}); !list.isEmpty()) addRecorded(list);
    const std::string& live = m_workbench.session().live.text();
    if (!sessionPath().isEmpty() || live.size() >= kLongestRecent) return;
    remember(fromUtf8(live.empty() ? m_workbench.capture()->info().path : live));
}

void FileActions::remember(const QString& path) {
    QStringList paths = recent();
    paths.removeAll(path);
    paths.prepend(path);
    QSettings().setValue(kRecentKey, paths.mid(0, kRecentFiles));
    emit recentChanged();
}

QStringList FileActions::recent() const { return QSettings().value(kRecentKey).toStringList(); }

QString FileActions::recentName(const QString& entry) {
    if (!entry.startsWith('{')) return QFileInfo(entry).fileName();
    try {
        const live::LiveDescription description = live::descriptionOf(entry.toStdString());
        const std::string text = partText(description, SegmentKind::Context);
        return tr("%1 (live): %2").arg(fromUtf8(modelName(description)), fromUtf8(shortened(oneLine(text), 40)));
    } catch (const Error&) { // another version of the program wrote this entry
        return {};
    }
}

void FileActions::clearRecent() {
    QSettings().remove(kRecentKey);
    emit recentChanged();
}

} // namespace kvscope
