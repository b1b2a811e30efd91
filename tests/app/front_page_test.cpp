// The commands that the front page shows are typed by everybody who comes: each of them runs as it stands there.
#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QFile>

using namespace kvscope;

class FrontPageTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    void everyCommandRuns_data() {
        QFile page(QString::fromStdString(kvscope::testing::sourceDir() + "/README.md"));
        QVERIFY(page.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(page.readAll());
        const QString section = text.section("## The command line", 1).section("\n## ", 0, 0);
        QTest::addColumn<QString>("command");
        int found = 0;
        for (const QString& line : section.split('\n'))
            if (line.startsWith("    kvscope ")) {
                ++found;
                const QString command = line.section("  #", 0, 0).trimmed();
                QTest::newRow(command.toUtf8()) << command;
            }
        QVERIFY(found > 10);
    }
    void everyCommandRuns() {
        QFETCH(QString, command);
        command.remove(QRegularExpression(" > .*")); // the shell's part
        command.replace("sample_data/", QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/"))
            .replace('\'', '"');
        const QStringList arguments = QProcess::splitCommand(command).mid(1);
        expectDone(arguments);
        if (const auto out = arguments.indexOf("--out"); out >= 0)
            QVERIFY(!m_program.content(arguments.at(out + 1)).isEmpty());
    }
};

KVSCOPE_CORE_TEST(FrontPageTest)
#include "front_page_test.moc"
