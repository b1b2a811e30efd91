// Long prompts: the policies whose work grows with the tokens stay below a fixed amount of memory. 300,000 tokens here,
// which is just beyond what is read as a whole; KVSCOPE_SCALE_TOKENS (1,048,576 in the long tests) sets another number.
#include "tests/app/program.h"
#include "tests/support/test_program.h"

#include <QElapsedTimer>
#include <QTest>

#include <sys/resource.h>

using kvscope::testing::Program;

class ScaleTest : public QObject {
    Q_OBJECT

    Program m_program;
    qint64 m_tokens = 300'000;
    int m_heads = 2, m_dim = 16;

    /// With all the time that it needs. What it said, empty after success.
    QByteArray run(const QStringList& arguments) const {
        QProcess process;
        m_program.start(process, arguments);
        process.waitForFinished(-1);
        const bool done = process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0;
        return done ? QByteArray() : process.readAllStandardError() + "ended";
    }
    /// The most that any command took so far.
    static double peakMebibytes() {
        rusage children{};
        ::getrusage(RUSAGE_CHILDREN, &children);
        return static_cast<double>(children.ru_maxrss) / 1024;
    }

private slots:
    void initTestCase() {
        bool given = false;
        const int tokens = qEnvironmentVariableIntValue("KVSCOPE_SCALE_TOKENS", &given);
        if (given) {
            m_tokens = tokens;
            m_heads = 8;
            m_dim = 64;
        }
        const auto made = run({"synth", "--tokens", QString::number(m_tokens), "--layers", "1", "--q-heads",
                               QString::number(2 * m_heads), "--kv-heads", QString::number(m_heads), "--head-dim",
                               QString::number(m_dim), "--q-window", "64", "--out", "long.h5"});
        QVERIFY2(made.isEmpty(), made);
        qInfo("synth: %.0f MiB at most", peakMebibytes());
    }

    void linearPoliciesStayBelowTwoGibibytes_data() {
        QTest::addColumn<QString>("policy");
        for (const char* policy : {"uniform", "streaming_llm", "key_norm", "keydiff", "snapkv", "leverage"}) // sketched
            QTest::newRow(policy) << QString(policy);
        if (qEnvironmentVariableIsSet("KVSCOPE_SCALE_TOKENS")) // linear, but with many clusters for each token
            QTest::newRow("subgen") << "subgen,delta_rule=quantile";
    }

    void linearPoliciesStayBelowTwoGibibytes() {
        QFETCH(QString, policy);
        QElapsedTimer clock;
        clock.start();
        const QByteArray error =
            run({"evict", "long.h5", "--policy", policy + "@4096t", "--cut", "last:32", "--out", "list.h5"});
        QVERIFY2(error.isEmpty(), error);
        qInfo("%s: %.1f s, so far %.0f MiB at most", qPrintable(policy), 1e-3 * static_cast<double>(clock.elapsed()),
              peakMebibytes());
        QVERIFY(peakMebibytes() < 2048);
    }
};

KVSCOPE_CORE_TEST(ScaleTest)
#include "scale_test.moc"
