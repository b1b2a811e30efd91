#pragma once

#include "tests/app/program.h"

#include <QObject>
#include <QtTest>

namespace kvscope::testing {

/// The test of a subcommand: what must work, and what must be refused in one sentence without leaving a file.
class CommandTest : public QObject {
protected:
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

    Program m_program;
};

} // namespace kvscope::testing
