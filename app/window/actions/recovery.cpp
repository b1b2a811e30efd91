// What a window showed is kept after a crash: a session file beside the crash's stack, offered at the next start.
#include "app/window/actions/recovery.h"

#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "core/base/error.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QLocale>

#include <mutex>

namespace kvscope {

namespace {

constexpr std::chrono::milliseconds kPause{2000};
constexpr const char* kSlot = "recovery";

QString nameFor(const char* what, qint64 process, const char* extension) {
    return QString("%1-%2.%3").arg(what).arg(process).arg(extension);
}

qint64 processOf(const QFileInfo& session) { return session.completeBaseName().section('-', 1).toLongLong(); }

/// Another program may have got the process id since. A process that has ended but that nobody waits for, as in a
/// container without an init process, has no program file.
bool isRunning(qint64 process) {
    const QString program = QFile::symLinkTarget(QString("/proc/%1/exe").arg(process));
    return QFileInfo(program).fileName().startsWith("kvscope"); // " (deleted)" follows when it was replaced
}

QString captureOf(const QString& session) {
    try {
        return fromUtf8(sourceOf(readSession(session.toStdString())).name());
    } catch (const Error&) { // restoring says what is wrong
        return QFileInfo(session).fileName();
    }
}

} // namespace

struct Recovery::Writing {
    std::mutex mutex;
    bool ended = false; ///< guarded by mutex: nothing is written any more
};

QString Recovery::stateFolder() {
    const QString state = qEnvironmentVariable("XDG_STATE_HOME", QDir::homePath() + "/.local/state");
    return QDir(state).filePath("kvscope");
}

QString Recovery::stackFile(const QString& folder) {
    return QDir(folder).filePath(nameFor("stack", QCoreApplication::applicationPid(), "txt"));
}

Recovery::Recovery(Workbench& workbench, NoticeStrip& notices, const QString& folder)
    : m_workbench(workbench), m_notices(notices), m_folder(folder),
      m_file(QDir(folder).filePath(nameFor("session", QCoreApplication::applicationPid(), "kvscope"))),
      m_writing(std::make_shared<Writing>()), m_soon(workbench.clock().makeTimer([this] { keep(); })) {
    if (!QDir().mkpath(folder)) return;
    const auto soon = [this] {
        if (!m_soon->isActive()) m_soon->start(kPause);
    };
    m_workbench.tell(this, soon, &Workbench::sessionChanged, &Workbench::captureChanged);
}

Recovery::~Recovery() {
    m_workbench.cancel(kSlot);
    const std::lock_guard lock(m_writing->mutex);
    m_writing->ended = true;
    QFile::remove(m_file);
    const bool wasDeclined = !m_wasTried && !m_notices.messages().contains(m_offer);
    if (m_offered.isEmpty() || !(m_wasRestored || wasDeclined)) return;
    QFile::remove(m_offered);
    QFile::remove(QDir(m_folder).filePath(nameFor("stack", processOf(QFileInfo(m_offered)), "txt")));
}

void Recovery::keep() {
    m_workbench.cancel(kSlot);
    if (!m_workbench.capture()) {
        QFile::remove(m_file);
        return;
    }
    Scheduler::Job job;
    job.work = [file = m_file.toStdString(), session = m_workbench.session(), writing = m_writing](const Checkpoint&,
                                                                                                   const auto&) {
        const std::lock_guard lock(writing->mutex);
        if (!writing->ended) writeSession(file, session);
    };
    job.failed = [](std::exception_ptr) {}; // a full disk must not keep anybody from working
    m_workbench.submit(kSlot, std::move(job));
}

QFileInfoList Recovery::lost() const {
    QFileInfoList found;
    for (const QFileInfo& file : QDir(m_folder).entryInfoList({"session-*.kvscope"}, QDir::Files, QDir::Time))
        if (file.filePath() != m_file && !isRunning(processOf(file)) && isSessionFile(file.filePath().toStdString()))
            found << file;
    return found;
}

void Recovery::offer() {
    const QFileInfoList files = lost();
    if (files.isEmpty()) return;
    m_offered = files.first().filePath(); // the others are offered at the next starts
    const QString stack = QDir(m_folder).filePath(nameFor("stack", processOf(files.first()), "txt"));
    m_offer = tr("KVScope ended without being closed on %1; what it showed of %2 is kept.")
                  .arg(QLocale().toString(files.first().lastModified(), QLocale::ShortFormat),
                       captureOf(files.first().filePath()));
    if (QFile::exists(stack)) m_offer += " " + tr("Where it crashed is written in %1.").arg(stack);
    showOffer();
}

void Recovery::showOffer() {
    m_notices.show("recovery", NoticeStrip::Tone::Offer, m_offer, tr("Restore"), [this] { restore(); });
}

void Recovery::restore() {
    try {
        Session session = readSession(m_offered.toStdString());
        const SessionSource source = sourceOf(session);
        if (source.live.text().empty() && !QFile::exists(fromUtf8(source.path)))
            throw Error({"the capture is not where the lost session names it; the session is kept", "",
                         "Put it there, then choose Restore", source.path});
        m_wasTried = true;
        connect(&m_workbench, &Workbench::captureChanged, this,
                [this, source] { m_wasRestored |= sourceOf(m_workbench.session()) == source; });
        m_workbench.openSession(std::move(session)); // without its file: Save asks for a name
    } catch (const Error& error) {
        showOffer();
        m_notices.show("error", NoticeStrip::Tone::Error, fromUtf8(error.what()));
    }
}

} // namespace kvscope
