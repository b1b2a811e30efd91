// No command replaces what it reads, and no two outputs of a command are one file.
#include <QtTest>

#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class OwnOutputsTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(QFile::copy(QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"),
                            m_program.at("c.h5")));
        QVERIFY(QFile::link(m_program.at("c.h5"), m_program.at("link.h5")));
        expectDone({"evict", "c.h5", "--policy", "keydiff@50t", "--layers", "3", "--out", "list.csv"});
        QVERIFY(QDir(m_program.at(".")).mkdir("a=b,c"));
        expectDone({"calibrate", "--k", "-3", "--policy", "snapkv", "--out", "a=b,c/cal.json"});
    }

    void nothingIsReplaced_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("kept");
        QTest::addColumn<QString>("words");
        const QStringList policy{"--policy", "uniform@50t", "--layers", "3"};
        const QString source = "would replace it", twice = "name one file";
        QTest::newRow("capture") << QStringList{"evict", "c.h5", "--out", "c.h5"} + policy << "c.h5" << source;
        QTest::newRow("by another name") << QStringList{"evict", "c.h5", "--out", "./link.h5"} + policy << "c.h5"
                                         << source;
        QTest::newRow("recorded numbers")
            << QStringList{"evict", "c.h5", "--out", "l.csv", "--record", "c.h5"} + policy << "c.h5" << source;
        QTest::newRow("list") << QStringList{"measure",   "c.h5",          "--selection", "list.csv",
                                             "--metrics", "retained_mass", "--out",       "list.csv"}
                              << "list.csv" << source;
        QTest::newRow("second capture") << QStringList{"sweep",       "list.csv", "c.h5",    "--policy",
                                                       "keydiff@50t", "--out",    "list.csv"}
                                        << "list.csv" << source;
        QTest::newRow("numbers of a file")
            << QStringList{"evict", "link.h5", "--uniforms", "c.h5:/uniforms", "--out", "c.h5"} + policy << "c.h5"
            << source;
        QTest::newRow("signs in its name")
            << QStringList{"evict",    "c.h5", "--policy", "snapkv@tau=0.95:a=b,c/cal.json",
                           "--layers", "0",    "--out",    "a=b,c/cal.json"}
            << "a=b,c/cal.json" << source;
        QTest::newRow("two outputs") << QStringList{"evict",   "c.h5",     "--policy", "keydiff@50t",
                                                    "--steps", "new.json", "--out",    "new.json"}
                                     << "c.h5" << twice;
    }

    void nothingIsReplaced() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, kept);
        QFETCH(QString, words);
        const QByteArray before = m_program.content(kept);
        QVERIFY(!before.isEmpty());
        expectRefused(arguments, words.toUtf8().constData());
        QVERIFY(m_program.content(kept) == before);
    }

    // What is no input may be replaced, and is.
    void resultsAreReplaced() {
        const QByteArray before = m_program.content("list.csv");
        expectDone({"evict", "c.h5", "--policy", "snapkv@50t", "--layers", "3", "--out", "list.csv"});
        QVERIFY(m_program.content("list.csv") != before);
    }

    void refusalsNameTheOption() {
        expectRefused({"evict", "c.h5", "--policy", "keydiff@50t", "--steps", "s.txt", "--out", "l.json"},
                      "(--steps). Choose one of .json");
        expectRefused({"evict", "c.h5", "--policy", "uniform@50t", "--record", "s.txt", "--out", "l.json"},
                      "(--record). Choose one of .h5");
        expectRefused({"reproduce", "keydiff-table8", "c.h5", "--csv", "t.txt"}, "(--csv). Choose one of .csv");
    }
};

KVSCOPE_CORE_TEST(OwnOutputsTest)
#include "own_outputs_test.moc"
