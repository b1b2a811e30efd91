#pragma once

#include <QObject> // before the standard library, whose concepts moc cannot read
#include <QProcess>
#include <QStringList>

#include <functional>
#include <string>

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Finds a Python that can run the shipped model. If there is none, makes one in the user's cache after asking, with
/// progress and a way to cancel. All work runs in other processes.
class TryLive : public QObject {
    Q_OBJECT

public:
    using Open = std::function<void(const std::string& command)>;

    TryLive(NoticeStrip& notices, QWidget* window);
    ~TryLive() override;

    /// Calls `open` with a command that runs the Python; not after a failure, which a notice reports, or a cancel.
    void start(Open open);
    /// A command that ran the model before, or that runs the Python of the environment made here; else empty.
    static std::string knownPython();
    static void remember(const std::string& command); ///< it ran a model
    static QString folder();                          ///< where the environment is made

private:
    using Then = std::function<void(int exitCode)>; ///< -1: it did not start, or crashed
    void tryNext();                                 ///< the next of the candidates
    void findMaker(QStringList pythons, const QString& why);
    void ask(const QString& python);
    void makeEnvironment(const QString& python);
    void installTools(double room);
    bool hasRoom(double bytes);                        ///< whether the disk has them free; if not, calls fail()
    void pip(const QStringList& arguments, Then then); ///< installs
    void run(const QString& program, const QStringList& arguments, Then then);
    void readOutput();
    void step(const QString& text);
    void stop();    ///< kills the running process and dismisses its notice
    void endStep(); ///< kills the running process
    void fail(const QString& message);
    void failMaking(); ///< with the reason that the process printed

    NoticeStrip& m_notices;
    QWidget* m_window;
    QProcess m_process;
    Open m_open;
    Then m_then;
    QStringList m_candidates; ///< commands, the best first
    QString m_step, m_said;   ///< what is done now; what the process printed
    bool m_isBusy = false;
};

} // namespace kvscope
