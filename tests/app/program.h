#pragma once

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>

#include <sys/resource.h>

namespace kvscope::testing {

/// The program as its users run it: without a display, in a folder of its own.
class Program {
public:
    struct Outcome {
        int code = -1; ///< -2: did not finish, -3: crashed
        QByteArray out, error;
    };

    /// `fileLimit`: no file of the process may grow beyond so many bytes, which is to a writer as a full disk; 0: none.
    Outcome run(const QStringList& arguments, rlim_t fileLimit = 0) const {
        QProcess process;
        if (fileLimit > 0)
            process.setChildProcessModifier([fileLimit] {
                const rlimit limit{fileLimit, fileLimit};
                ::setrlimit(RLIMIT_FSIZE, &limit);
            });
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const char* display : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(display);
        process.setProcessEnvironment(environment);
        start(process, arguments);
        if (!process.waitForFinished(240'000)) return {-2, {}, "did not finish"};
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -3, process.readAllStandardOutput(),
                process.readAllStandardError()};
    }
    static QString path() { return QCoreApplication::applicationDirPath() + "/../bin/kvscope"; }
    /// In that folder; what else the process needs is set before.
    void start(QProcess& process, const QStringList& arguments) const {
        process.setWorkingDirectory(m_folder.path());
        process.start(path(), arguments);
    }
    QString at(const QString& name) const { return m_folder.filePath(name); }
    QStringList written() const { return QDir(m_folder.path()).entryList(QDir::Files | QDir::Hidden, QDir::Name); }
    QByteArray content(const QString& name) const {
        QFile file(at(name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    bool write(const QString& name, const QByteArray& content) const {
        QFile file(at(name));
        return file.open(QIODevice::WriteOnly) && file.write(content) == content.size();
    }

private:
    QTemporaryDir m_folder;
};

} // namespace kvscope::testing
