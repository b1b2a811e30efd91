// Finding or making the Python that runs the example: processes beside the window, one after the other.
#include "app/window/actions/try_live.h"

#include "app/live/command_words.h"
#include "app/study/regenerating_command.h"
#include "app/study/resources.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "core/base/error.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QStandardPaths>
#include <QStorageInfo>

#include <csignal>
#include <utility>

#include <sys/prctl.h>
#include <unistd.h>

namespace kvscope {

namespace {

constexpr const char *kPythonKey = "live/python", *kTorch = "https://download.pytorch.org/whl/cpu";
constexpr int kTooOld = 3;                       ///< exit code of kCanMake
constexpr double kRoom = 3e9, kRoomOfPyPI = 9e9; ///< bytes on the disk, downloads included
/// Tells by its exit code whether all modules can be found, without importing them.
constexpr const char* kProbe = "import sys, importlib.util as u; sys.exit(sys.version_info < (3, 11) or not "
                               "all(u.find_spec(m) for m in ('kvscope_live', 'torch', 'transformers', 'h5py')))";
constexpr const char* kCanMake = "import sys; print('%d.%d' % sys.version_info[:2]); "
                                 "sys.version_info < (3, 11) and sys.exit(3); import venv, ensurepip";

/// The path as one word of a command (live::commandWords).
QString quoted(const QString& path) { return fromUtf8(shellWord(path.toStdString())); }

/// The sources of kvscope-tools in a checkout; empty for an installed program.
QString toolsFolder() {
    const std::string tools = findResource("resources/python/pyproject.toml");
    return tools.empty() ? QString() : QFileInfo(fromUtf8(tools)).path();
}

QString ownPython() { return TryLive::folder() + "/bin/python"; }
bool isWhole() { return QFileInfo::exists(TryLive::folder() + "/whole"); }

/// Deletes what was made so far, in another process, because the environment has thousands of files.
void removeEnvironment() {
    const QFileInfo folder(TryLive::folder());
    QDir cache = folder.dir();
    const QString gone = folder.fileName() + ".gone";
    cache.rename(folder.fileName(), gone + QString::number(QDateTime::currentMSecsSinceEpoch()));
    QStringList arguments = {"-rf"};
    for (const QString& name : cache.entryList({gone + "*"}, QDir::Dirs)) arguments << cache.filePath(name);
    if (arguments.size() > 1) QProcess::startDetached("rm", arguments);
}

} // namespace

TryLive::TryLive(NoticeStrip& notices, QWidget* window) : QObject(window), m_notices(notices), m_window(window) {
    m_process.setProcessChannelMode(QProcess::MergedChannels);
    m_process.setChildProcessModifier([] { // endStep() kills the group with pip's children; pip dies with the window
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    });
    connect(&m_process, &QProcess::readyRead, this, &TryLive::readOutput);
    // Queued, because QProcess loses a process that is started during these signals.
    connect(
        &m_process, &QProcess::finished, this,
        [this](int code, QProcess::ExitStatus status) {
            readOutput();
            if (m_then) std::exchange(m_then, nullptr)(status == QProcess::NormalExit ? code : -1);
        },
        Qt::QueuedConnection);
    connect(
        &m_process, &QProcess::errorOccurred, this,
        [this](QProcess::ProcessError error) {
            if (error == QProcess::FailedToStart && m_then) std::exchange(m_then, nullptr)(-1);
        },
        Qt::QueuedConnection);
}

TryLive::~TryLive() { endStep(); } // not stop(): the window's notices are deleted before this object

QString TryLive::folder() {
    return QDir(QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation)).filePath("kvscope/live");
}

std::string TryLive::knownPython() {
    if (const QString known = QSettings().value(kPythonKey).toString(); !known.isEmpty()) return known.toStdString();
    return isWhole() ? quoted(ownPython()).toStdString() : std::string();
}

void TryLive::remember(const std::string& command) { QSettings().setValue(kPythonKey, fromUtf8(command)); }

void TryLive::start(Open open) {
    if (m_isBusy) return;
    m_isBusy = true;
    m_open = std::move(open);
    m_notices.dismiss("error");
    m_notices.show("tryLive", NoticeStrip::Tone::Progress, tr("Looking for a Python that can run the model…"),
                   tr("Cancel"), [this] { stop(); });
    m_candidates = {fromUtf8(knownPython()), "python3"};
    if (isWhole()) m_candidates << quoted(ownPython());
    if (const QString tools = toolsFolder(); !tools.isEmpty()) {
        QStringList plain = {"python3"};
        const QDir cache(QFileInfo(folder()).path()); // environments of the project's own tests
        for (const QString& name : cache.entryList({"python-*"}, QDir::Dirs))
            plain << quoted(cache.filePath(name + "/venv/bin/python"));
        for (const QString& python : plain) m_candidates << "env PYTHONPATH=" + quoted(tools) + " " + python;
    }
    m_candidates.removeAll({});
    m_candidates.removeDuplicates();
    tryNext();
}

void TryLive::tryNext() {
    if (m_candidates.isEmpty()) return findMaker({"python3", "python3.13", "python3.12", "python3.11"}, {});
    const QString command = m_candidates.takeFirst();
    QStringList words;
    try {
        for (const std::string& word : live::commandWords(command.toStdString())) words << fromUtf8(word);
    } catch (const Error&) { // what the user typed may be no valid command
        return tryNext();
    }
    const QString program = words.takeFirst(); // in a statement of its own: the call below uses the rest of `words`
    run(program, words + QStringList{"-c", kProbe}, [this, command](int code) {
        if (code != 0) return tryNext();
        stop();
        m_open(command.toStdString());
    });
}

/// Looks for the first of `pythons` that can make an environment; `why`: the reason why those before cannot.
void TryLive::findMaker(QStringList pythons, const QString& why) {
    if (pythons.isEmpty())
        return fail((why.isEmpty() ? tr("The model needs Python 3.11 or newer, and none was found. Install it with: "
                                        "sudo apt install python3 python3-venv.")
                                   : why) +
                    tr(" A Python elsewhere is named in File, New from text."));
    const QString python = pythons.takeFirst();
    run(python, {"-c", kCanMake}, [this, python, pythons, why](int code) {
        const QString version = m_said.section('\n', 0, 0).trimmed();
        if (code == 0) return ask(python);
        if (code == kTooOld)
            findMaker(pythons,
                      tr("The model needs Python 3.11 or newer; %1 is %2. Install a newer one.").arg(python, version));
        else if (code > 0)
            findMaker(pythons,
                      tr("Python %1 lacks venv. Install it with: sudo apt install python%1-venv.").arg(version));
        else
            findMaker(pythons, why);
    });
}

void TryLive::ask(const QString& python) {
    QDir().mkpath(QFileInfo(folder()).path());
    if (!hasRoom(kRoom)) return;
    m_notices.dismiss("tryLive");
    QMessageBox box(QMessageBox::Question, tr("Try it live"),
                    tr("No Python with kvscope-tools was found. Make one in %1? pip downloads about 1 GB: torch, "
                       "Transformers and what they need; 3 GB beside a graphics card, or where only PyPI can be "
                       "reached. Nothing else of this machine changes; delete the folder to undo it.")
                        .arg(folder()),
                    QMessageBox::Cancel, m_window);
    box.setObjectName("tryLiveQuestion");
    QPushButton* make = box.addButton(tr("Make it"), QMessageBox::AcceptRole);
    box.exec();
    if (box.clickedButton() != make) return stop();
    makeEnvironment(python);
}

bool TryLive::hasRoom(double bytes) {
    const QStorageInfo disk(QFileInfo(folder()).path());
    const auto free = static_cast<double>(disk.bytesAvailable());
    if (!disk.isValid() || free >= bytes) return true;
    removeEnvironment();
    fail(tr("A Python for the model takes %1, and %2 are free on the disk of %3. Make room there, or set "
            "XDG_CACHE_HOME.")
             .arg(bytesText(bytes), bytesText(free), folder()));
    return false;
}

void TryLive::makeEnvironment(const QString& python) {
    m_notices.show("tryLive", NoticeStrip::Tone::Progress, tr("Making a Python environment…"), tr("Cancel"), [this] {
        stop();
        removeEnvironment();
    });
    step(tr("Making a Python environment (1 of 3)"));
    run(python, {"-m", "venv", "--clear", folder()}, [this](int code) {
        if (code != 0) return failMaking();
        QDir(folder()).mkdir("tmp");
        if (QFileInfo::exists("/dev/nvidiactl")) return installTools(kRoomOfPyPI); // PyPI has torch for CUDA
        step(tr("Installing torch (2 of 3)"));
        // Where that index cannot be reached, the next step takes PyPI's torch.
        pip({"--retries", "0", "--index-url", kTorch, "torch"},
            [this](int code) { installTools(code == 0 ? 0 : kRoomOfPyPI); });
    });
}

void TryLive::installTools(double room) {
    if (!hasRoom(room)) return;
    QString from = fromUtf8(findResource("kvscope_tools.tar.gz"));
    if (from.isEmpty()) { // a copy, because pip writes into the folder that it installs from
        from = folder() + "/tools";
        QProcess::execute("cp", {"-r", toolsFolder(), from});
    }
    step(tr("Installing Transformers and kvscope-tools (3 of 3)"));
    pip({"--retries", "2", from}, [this](int code) {
        QFile whole(folder() + "/whole");
        if (code != 0 || !whole.open(QIODevice::WriteOnly)) return failMaking();
        QDir(folder() + "/tmp").removeRecursively();
        stop();
        m_open(quoted(ownPython()).toStdString());
    });
}

void TryLive::pip(const QStringList& arguments, Then then) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("TMPDIR", folder() + "/tmp"); // /tmp is small on some machines
    m_process.setProcessEnvironment(environment);
    run(ownPython(),
        QStringList{"-I", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar",
                    "off"} +
            arguments,
        std::move(then));
}

void TryLive::run(const QString& program, const QStringList& arguments, Then then) {
    m_said.clear();
    m_then = std::move(then);
    m_process.start(program, arguments);
}

void TryLive::readOutput() {
    constexpr qsizetype kMostSaid = 16 << 10;
    m_said = (m_said + QString::fromUtf8(m_process.readAll())).right(kMostSaid);
    if (m_step.isEmpty()) return;
    const QString last = m_said.trimmed().section('\n', -1).trimmed();
    m_notices.retell("tryLive", last.isEmpty() ? m_step + "…" : m_step + ": " + last.left(90));
}

void TryLive::step(const QString& text) {
    m_step = text;
    m_notices.retell("tryLive", text + "…");
}

void TryLive::endStep() {
    m_then = nullptr;
    m_isBusy = false;
    m_step.clear();
    if (m_process.state() != QProcess::NotRunning) {
        ::kill(-static_cast<pid_t>(m_process.processId()), SIGKILL);
        m_process.waitForFinished(500);
    }
    QCoreApplication::removePostedEvents(this, QEvent::MetaCall); // drops queued signals of the killed process
}

void TryLive::stop() {
    endStep();
    m_notices.dismiss("tryLive");
}

void TryLive::fail(const QString& message) {
    stop();
    m_notices.show("error", NoticeStrip::Tone::Error, message);
}

void TryLive::failMaking() {
    QString why = m_said.trimmed().section('\n', -1).trimmed();
    if (const auto error = m_said.indexOf("ERROR: "); error >= 0) why = m_said.mid(error + 7).section('\n', 0, 0);
    if (m_said.contains("No space left"))
        why = tr("the disk of %1 is full. Make room there, or set XDG_CACHE_HOME").arg(folder());
    else if (m_said.contains(QRegularExpression("name resolution|NewConnection|ConnectTimeout|unreachable|ProxyError")))
        why = tr("PyPI cannot be reached. Connect to the internet, or set https_proxy and start the program again");
    removeEnvironment();
    fail(tr("The Python environment could not be made: %1.").arg(why.left(300)));
}

} // namespace kvscope
