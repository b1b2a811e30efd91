// No option is passed over in silence: what decides nothing is refused, and a default that is typed is still an order.
#include <QtTest>

#include "app/study/session_file.h"
#include "core/capture/open_capture.h"
#include "tests/app/command_test.h"
#include "tests/support/h5_edit.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class IgnoredOptionsTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    void initTestCase() {
        expectDone({"synth", "--tokens", "300", "--layers", "3", "--q-heads", "4", "--kv-heads", "2", "--head-dim",
                    "16", "--out", "c.h5"});
        expectDone({"evict", "c.h5", "--policy", "keydiff@0.25", "--out", "l.json"});
    }

    void aBudgetNeedsAPolicy_data() {
        QTest::addColumn<QStringList>("command");
        const auto row = [](const char* name, const QStringList& command) { QTest::newRow(name) << command; };
        row("a report of a capture", {"report", "c.h5", "--views", "overlap", "--out", "r.html"});
        row("a plotted list", {"plot", "token_strip", "c.h5", "--selection", "l.json", "--out", "p.svg"});
        row("a measured list", {"measure", "c.h5", "--selection", "l.json", "--out", "m.csv"});
    }
    void aBudgetNeedsAPolicy() {
        QFETCH(QStringList, command);
        expectRefused(command + QStringList{"--retention", "0.2"}, "no policy to use it (--retention)");
        expectRefused(command + QStringList{"--budget", "4"}, "no policy to use it (--budget)");
        expectDone(command);
    }

    // A list states them itself; beside a policy they are the policy's.
    void aMeasuredListNeedsNoCutAndSeed() {
        const QStringList measure = {"measure", "c.h5", "--selection", "l.json", "--out", "n.csv"};
        expectRefused(measure + QStringList{"--cut", "last:20"}, "and no policy is named (--cut)");
        expectRefused(measure + QStringList{"--seed", "3"}, "and no policy is named (--seed)");
        expectDone(measure + QStringList{"--cut", "last:20", "--policy", "keydiff@0.25"});
    }

    void capturesAreNotReadBesideACurve() {
        expectRefused({"calibrate", "nosuch.h5", "--k=-3", "--policy", "snapkv", "--out", "k.json"},
                      "captures are not read beside --k (nosuch.h5)");
        expectRefused({"calibrate", "nosuch.h5", "--triples", "t.csv", "--policy", "snapkv", "--out", "k.json"},
                      "captures are not read beside --triples (nosuch.h5)");
    }

    void aTypedDefaultOverridesTheSession() {
        Session session = firstSession(*openCapture(m_program.at("c.h5").toStdString()));
        session.cut = "last:20";
        session.seed = 7;
        writeSession(m_program.at("s.kvscope").toStdString(), session);
        const QStringList report = {"report", "s.kvscope", "--views", "overlap", "--out", "s.html"};
        expectDone(report);
        QVERIFY(m_program.content("s.html").contains("--cut last:20 --seed 7 "));
        expectDone(report + QStringList{"--cut", "default", "--seed", "0"});
        const QByteArray page = m_program.content("s.html");
        QVERIFY(!page.contains("--cut last:20") && !page.contains("--seed 7"));
    }

    /// Layers differ: a note of a later one would be lost with only the first one's.
    void evictTellsTheNotesOfAllLayers() {
        QVERIFY(QFile::copy(m_program.at("c.h5"), m_program.at("w.h5")));
        for (const char* layer : {"layers/01", "layers/02"})
            h5_edit::setAttribute(m_program.at("w.h5").toStdString(), layer, "sliding_window", std::int64_t{100});
        const auto outcome = m_program.run({"evict", "w.h5", "--policy", "streaming_llm@0.25", "--out", "w.json"});
        QVERIFY2(outcome.code == 0, outcome.error);
        for (const char* words : {"layer 1 has a window of 100 tokens", "layer 2 has a window of 100 tokens"})
            QCOMPARE(outcome.error.count(words), 1);
        // A note without a layer is told once, with the layers that have it.
        const auto whole = m_program.run(
            {"evict", "w.h5", "--policy", "balancekv,sink=4,recent=4,whole_layers=sliding@8t", "--out", "v.json"});
        QVERIFY2(whole.code == 0, whole.error);
        QVERIFY2(whole.error.contains("layer 0: the protected first and last tokens take the whole budget"),
                 whole.error);
    }
};

KVSCOPE_CORE_TEST(IgnoredOptionsTest)
#include "ignored_options_test.moc"
