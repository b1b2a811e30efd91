// Completions and manual page say what --help says: every command and option; and bash completes with them.
#include <QtTest>

#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QRegularExpression>
#include <QStandardPaths>

using namespace kvscope;

class CompletionTest : public testing::CommandTest {
    Q_OBJECT

    QByteArray printed(const QStringList& arguments) const {
        const auto outcome = m_program.run(arguments);
        return outcome.code == 0 ? outcome.out : QByteArray();
    }
    /// Output of a program that reads `text`; what it writes to standard error goes to `error`.
    static QByteArray piped(const QString& program, const QStringList& arguments, const QByteArray& text,
                            QByteArray& error) {
        QProcess process;
        process.start(program, arguments);
        process.write(text);
        process.closeWriteChannel();
        if (!process.waitForFinished(60'000)) error = "did not finish";
        error += process.readAllStandardError();
        return process.readAllStandardOutput();
    }
    QStringList commands() const {
        QStringList names;
        const QString help = printed({"--help"});
        for (const QString& line : help.section("Subcommands:", 1).split('\n', Qt::SkipEmptyParts))
            if (line.startsWith("  ") && line[2] != ' ') names << line.simplified().section(' ', 0, 0);
        return names;
    }
    /// Long options of a command, of the program for an empty name.
    QStringList options(const QString& command) const {
        static const QRegularExpression kOption("^  (?:-\\w,)?(--[a-z-]+)", QRegularExpression::MultilineOption);
        QStringList names;
        auto found =
            kOption.globalMatch(printed(command.isEmpty() ? QStringList{"--help"} : QStringList{command, "--help"}));
        while (found.hasNext()) names << found.next().captured(1);
        return names;
    }

private slots:
    void everyCommandAndOptionIsThere() {
        const QString bash = printed({"completion", "bash"}), zsh = printed({"completion", "zsh"}),
                      fish = printed({"completion", "fish"}), page = QString(printed({"man"})).remove('\\');
        QVERIFY(commands().size() >= 17);
        for (const QString& command : commands()) {
            const QStringList all = options(command);
            QVERIFY2(all.contains("--version"), command.toUtf8());
            // The line or part of the command, so that another command's options do not count.
            const QString inBash = bash.section("        " + command + ") words='", 1).section('\n', 0, 0);
            const QString inZsh = zsh.section("\n" + command + ")\n", 1).section(";;", 0, 0);
            const QString inPage = page.section(".SS kvscope " + command + "\n", 1).section(".SS ", 0, 0);
            for (const QString& option : all) {
                const QByteArray what = (command + " " + option).toUtf8();
                QVERIFY2(QString(" " + inBash).contains(QRegularExpression("[ ]" + option + "[ ']")), what);
                QVERIFY2(inZsh.contains(QRegularExpression(option + "=?\\[")), what);
                QVERIFY2(fish.contains("seen_subcommand_from " + command + "' -l " + option.mid(2) + " ") ||
                             fish.contains("seen_subcommand_from " + command + "' -s h -l " + option.mid(2) + " "),
                         what);
                QVERIFY2(inPage.contains(QRegularExpression("(fB|, )" + option + "(fR|,)")), what);
            }
        }
        for (const QString& option : options({})) {
            QVERIFY2(bash.section("'') words='", 1).section('\n', 0, 0).contains(option), option.toUtf8());
            QVERIFY2(page.section(".SH COMMANDS", 0, 0).contains(option), option.toUtf8());
        }
    }

    void bashCompletes_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QStringList>("offered"); // all of them
        const auto row = [](const char* line, const QStringList& offered) { QTest::newRow(line) << line << offered; };
        row("kvscope ev", {"evict"});
        row("kvscope evict --pol", {"--policy"});
        row("kvscope evict c.h5 --policy snapkv:mi", {"minference"}); // bash has typed "snapkv:" already
        row("kvscope evict c.h5 --policy snapkv:",
            {"compactor_vllm", "keydiff", "kvcache_factory", "kvpress", "minference", "original_class", "paper"});
        row("kvscope evict --policy=tov", {"tova", "tova:keydiff", "tova:kvpress", "tova:original"});
        row("kvscope measure c.h5 --metrics output_error,sink", {"output_error,sink_mass"});
        row("kvscope plot key_pro", {"key_projection"});
        row("kvscope plot key_projection c.h5 --theme d", {"dark"});
        row("kvscope evict --engine=cu", {"cuda"});
        row("kvscope --engine t", {"torch"});
        row("kvscope schema l", {"list", "live"});
        row("kvscope completion z", {"zsh"});
        row("kvscope evict c.h5 --out ", {}); // files, which bash itself offers
        row("kvscope evict c.h5 --scores --re", {"--record", "--retention"});
        row("kvscope sweep * --vary w", {}); // the star is no file name here
    }

    void bashCompletes() {
        QFETCH(QString, line);
        QFETCH(QStringList, offered);
        QProcess bash;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("SCRIPT", printed({"completion", "bash"}));
        environment.insert("COMP_LINE", line);
        bash.setProcessEnvironment(environment);
        // The words as bash gives them: = and : end one, and stand alone.
        bash.start("bash", {"--norc", "-c",
                            "set -u; eval \"$SCRIPT\"; COMP_POINT=${#COMP_LINE}; set -f; "
                            "spaced=${COMP_LINE//:/ : }; COMP_WORDS=(${spaced//=/ = }); "
                            "[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                            "complete -p kvscope >/dev/null && _kvscope && "
                            "(( ${#COMPREPLY[@]} == 0 )) || printf '%s\\n' \"${COMPREPLY[@]}\""});
        QVERIFY(bash.waitForFinished(60'000));
        QCOMPARE(bash.readAllStandardError(), QByteArray());
        QStringList replies = QString(bash.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
        replies.sort();
        QCOMPARE(replies, offered);
    }

    void otherShellsReadTheirScripts_data() {
        QTest::addColumn<QString>("check");
        QTest::newRow("zsh") << "-n";
        QTest::newRow("fish") << "--no-execute";
    }
    void otherShellsReadTheirScripts() {
        QFETCH(QString, check);
        const QString shell = QTest::currentDataTag();
        if (QStandardPaths::findExecutable(shell).isEmpty()) QSKIP("the shell is not installed");
        QByteArray error;
        piped(shell, {check}, printed({"completion", shell}), error);
        QVERIFY2(error.isEmpty(), error);
    }

    void theManualPageHasNoWarning() {
        if (QStandardPaths::findExecutable("groff").isEmpty()) QSKIP("groff is not installed");
        QByteArray error;
        const QByteArray text = piped("groff", {"-man", "-ww", "-Tascii", "-P-cbou"}, printed({"man"}), error);
        QVERIFY2(error.isEmpty(), error);
        for (const char* words : {"kvscope evict", "--policy", "EXIT STATUS", "k=blocks.{layer}.key"})
            QVERIFY2(text.contains(words), words);
    }

    void anotherShellIsRefused() { expectRefused({"completion", "tcsh"}, "tcsh"); }
};

KVSCOPE_CORE_TEST(CompletionTest)
#include "completion_test.moc"
