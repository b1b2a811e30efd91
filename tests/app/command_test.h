#pragma once

#include "tests/app/program.h"
#include "tests/app/sample.h"

#include <QObject>
#include <QtTest>

#include <utility>

namespace kvscope::testing {

/// The test of a subcommand: what must work, and what must be refused in one sentence without leaving a file.
class CommandTest : public QObject {
protected:
    static inline const QString kSample = QString::fromStdString(testing::kSample);

    void expectDone(const QStringList& arguments) const {
        const auto outcome = m_program.run(arguments);
        QVERIFY2(outcome.code == 0, arguments.join(' ').toUtf8() + "\n" + outcome.error);
    }
    void expectRefused(const QStringList& arguments, const char* words) const {
        const QStringList before = m_program.written();
        const auto outcome = m_program.run(arguments);
        QVERIFY2(outcome.code == 2 && outcome.error.contains(words),
                 arguments.join(' ').toUtf8() + "\n" + outcome.error);
        QCOMPARE(outcome.error.trimmed().count('\n'), 0);
        QCOMPARE(m_program.written(), before);
    }
    /// A line of the shell, in which $KVSCOPE is the program and $SAMPLE the capture: its exit code and all its output.
    std::pair<int, QByteArray> shell(const QString& line) const {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("KVSCOPE", Program::path());
        environment.insert("SAMPLE", kSample);
        for (const char* display : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(display);
        process.setProcessEnvironment(environment);
        process.setWorkingDirectory(m_program.at("."));
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start("sh", {"-c", line});
        if (!process.waitForFinished(120'000)) return {-2, {}};
        return {process.exitCode(), process.readAll()};
    }

    Program m_program;
};

} // namespace kvscope::testing
