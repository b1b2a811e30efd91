// Calibration, budgets that are qualities, and scores of one's own, through the program as its users run it.
#include <QtTest>

#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QImage>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

using namespace kvscope;

namespace {

const QString kRecords = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/records-2k.h5");

} // namespace

class CalibrationCommandTest : public testing::CommandTest {
    Q_OBJECT

    QJsonObject json(const QString& name) const { return QJsonDocument::fromJson(m_program.content(name)).object(); }

private slots:
    // `kvscope live` writes such rows where a loss is not finite.
    void rowsWithoutAQualityAreLeftOut() {
        const QByteArray header = "policy,variant,retention,quality\n";
        QVERIFY(m_program.write("gaps.csv", header + "snapkv,paper,0.1,0.5\nsnapkv,paper,0.25,\nsnapkv,paper,0.5,0.9\n"
                                                     "tova,original,0.25,\n"));
        const auto fit = m_program.run({"calibrate", "--triples", "gaps.csv", "--policy", "snapkv", "--out", "g.json"});
        QVERIFY2(fit.code == 0 && fit.out.contains("2 triples, "), fit.error);
        QVERIFY2(fit.out.contains("rows without a quality are left out: 1\n"), fit.out);
        expectRefused({"calibrate", "--triples", "gaps.csv", "--policy", "tova", "--out", "none.json"},
                      "the table has no triples of tova:original with a quality");
    }

    // The fitted k says nothing about whether the curve passes its points: the command does.
    void aPoorFitAndFewRowsAreSaid() {
        const auto poor = m_program.run({"calibrate", kSample, "--policy", "compactor:kvpress", "--out", "poor.json"});
        QVERIFY2(poor.code == 0, poor.error);
        QVERIFY2(poor.out.contains("POOR FIT") && poor.out.contains("a ratio to it"), poor.out);
        QVERIFY2(!poor.out.contains("few rows"), poor.out);
        const auto points = poor.out.indexOf("its points keep 0.95 from retention 0."),
                   curve = poor.out.indexOf("k = ");
        QVERIFY2(points >= 0 && points < curve, poor.out); // what was measured stands first
        QVERIFY(m_program.write("good.csv", "retention,quality\n0.1,0.1\n0.3,0.3\n0.5,0.5\n0.7,0.7\n0.9,0.9\n"));
        const auto good =
            m_program.run({"calibrate", "--triples", "good.csv", "--policy", "snapkv", "--out", "good.json"});
        QVERIFY2(good.code == 0, good.error);
        QVERIFY2(good.out.contains("residual 0.000") && !good.out.contains("POOR") && !good.out.contains("few"),
                 good.out);
        QVERIFY2(good.out.contains("its points do not keep 0.95"), good.out);
        QVERIFY(m_program.write("few.csv", "retention,quality\n0.1,0.1\n0.3,0.3\n0.5,0.5\n0.7,0.7\n1,1\n"));
        const auto few =
            m_program.run({"calibrate", "--triples", "few.csv", "--policy", "snapkv", "--out", "few.json"});
        QVERIFY2(few.out.contains("few rows: 4 between 0 and 1 for 1 context;"), few.out);
        QVERIFY2(few.out.contains("bootstrap 5-95 %") && !few.out.contains("no interval"), few.out);
        QVERIFY(json("few.json")["notes"].toArray().last().toString().startsWith("few rows: 4 "));
        QVERIFY(m_program.write("one.csv", "retention,quality\n0.3,0.6\n1,1\n"));
        const auto one =
            m_program.run({"calibrate", "--triples", "one.csv", "--policy", "snapkv", "--out", "one.json"});
        QVERIFY2(one.out.contains("few rows: 1 ") && one.out.contains("there is no interval"), one.out);
        QVERIFY2(!one.out.contains("bootstrap"), one.out);
        QVERIFY(json("one.json")["contexts"].toArray()[0].toObject()["retention_low"].isNull());
        const auto figure = m_program.run({"plot", "calibration", kSample, "--policy", "snapkv@0.25", "--view-set",
                                           "source=table", "--view-set", "table=one.csv", "--out", "one.svg"});
        QVERIFY2(figure.out.contains("residual 0.000 of few rows (1)") && !figure.out.contains(" to "), figure.out);
    }

    void measuredRowsOfTwoCaptures() {
        const auto outcome = m_program.run(
            {"calibrate", kSample, kRecords, "--policy", "compactor:kvpress", "--tau", "0.9", "--out", "two.json"});
        QVERIFY2(outcome.code == 0, outcome.error);
        QVERIFY(outcome.out.contains("(measured)") && outcome.out.contains("needle-1k.h5: k = ") &&
                outcome.out.contains("bootstrap 5-95 %"));
        const QJsonObject two = json("two.json");
        QCOMPARE(two["kind"].toString(), "measured");
        QCOMPARE(two["contexts"].toArray().size(), 2);
        QCOMPARE(two["triples"].toArray().size(), 26);
        QVERIFY(two["fit"].toObject()["slope_known"].toBool());
        QVERIFY(two["command"].toString().contains("kvscope calibrate"));

        // The curve as the budget of a run: the retention is that of the file, and the list says where it comes from.
        expectDone({"evict", kSample, "--policy", "compactor:kvpress@tau=0.9:two.json", "--out", "kept.json"});
        const QJsonObject budget = json("kept.json")["budget"].toObject();
        const double needed = two["contexts"].toArray()[0].toObject()["retention"].toDouble();
        QCOMPARE(budget["requested"].toString(), "tau=0.9:two.json");
        QVERIFY(budget["origin"].toString().contains("calibration/compactor/kvpress"));
        QVERIFY(std::abs(budget["kept"].toInt() - needed * 995) <= 1); // kvpress rounds down
    }

    // A table without parameters may have been measured with others than the policy's; one with its spec says which.
    void parametersOfATableAreCompared() {
        QVERIFY(m_program.write("plain.csv", "retention,quality\n0.1,0.1\n0.3,0.3\n0.5,0.5\n"));
        const auto plain = m_program.run(
            {"calibrate", "--triples", "plain.csv", "--policy", "snapkv,window=8", "--out", "plain.json"});
        QVERIFY2(plain.code == 0 && plain.out.contains("does not say with which parameters"), plain.out);
        QVERIFY(json("plain.json")["notes"].toArray()[0].toString().contains("does not say with which parameters"));
        const QByteArray row = "\"snapkv,window=16\",0.";
        const QByteArray rows = row + "1,0.1\n" + row + "3,0.3\n" + row + "5,0.5\n";
        QVERIFY(m_program.write("spec.csv", "spec,retention,quality\n" + rows));
        const auto named =
            m_program.run({"calibrate", "--triples", "spec.csv", "--policy", "snapkv,window=8", "--out", "spec.json"});
        QVERIFY2(named.out.contains("measured with window=16, this run has window=8"), named.out);
    }

    void proxyIsCalledAProxyInEveryFile() {
        const auto outcome = m_program.run({"calibrate", kSample, "--policy", "snapkv", "--proxy", "--out", "p.json"});
        expectRefused({"calibrate", kSample, kSample, "--policy", "snapkv", "--proxy", "--out", "twice.json"},
                      "a capture is named twice");
        QVERIFY2(outcome.code == 0, outcome.error);
        QVERIFY(outcome.out.contains("PROXY"));
        QCOMPARE(json("p.json")["kind"].toString(), "proxy");
        expectDone({"calibrate", kSample, "--policy", "snapkv", "--proxy", "--out", "p.csv"});
        QVERIFY(m_program.content("p.csv").contains(",true,") &&
                m_program.content("p.csv").contains("proxy: 1 - relative output error"));
        const QString spec = "snapkv@tau=0.6:proxy";
        for (const char* name : {"k.json", "k.csv", "k.h5"}) {
            expectDone({"evict", kSample, "--policy", spec, "--layers", "3", "--out", name});
            QVERIFY2(m_program.content(name).contains("by proxy: k ="), name);
        }
        expectDone({"measure", kSample, "--policy", spec, "--layers", "3", "--out", "m.csv"});
        QVERIFY(m_program.content("m.csv").contains("by proxy") && m_program.content("m.csv").contains(spec.toUtf8()));
        expectDone({"sweep", kSample, "--policy", spec, "--layers", "3", "--out", "s.csv"});
        QVERIFY(m_program.content("s.csv").contains("by proxy"));
        expectDone({"plot", "token_strip", kSample, "--layer", "3", "--policy", spec, "--out", "f.svg"});
        QVERIFY(m_program.content("f.svg").contains("by proxy"));
    }

    void calibrationViewIsDrawn() {
        expectDone({"plot", "calibration", kSample, "--policy", "compactor:kvpress@0.25", "--policy", "snapkv@0.25",
                    "--size", "700x520", "--out", "c.svg"});
        const QByteArray svg = m_program.content("c.svg");
        for (const char* words : {"r* 0.", "poor fit", "proxy", "\xCF\x84 = 0.95", "measured", "Retention r"})
            QVERIFY2(svg.contains(words), words);
        expectDone({"plot", "calibration", kSample, "--policy", "snapkv@0.25", "--view-set", "source=given",
                    "--view-set", "k=-10", "--out", "g.png"});
        QVERIFY(!QImage(m_program.at("g.png")).isNull());
        QVERIFY(m_program.write(
            "t.csv", "context,retention,quality,nll_context\na,0.2,0.8,1\na,0.5,0.97,1\nb,0.2,0.25,4\nb,0.5,0.55,4\n"));
        expectDone({"plot", "calibration", kSample, "--policy", "snapkv@0.25", "--view-set", "source=table",
                    "--view-set", "table=t.csv", "--out", "t.svg"});
        QVERIFY(m_program.content("t.svg").contains("A a"));
    }

    void ownScoreEverywhere() {
        const QString spec = "score:z(snapkv) + 0.3*z(leverage)*vnorm";
        expectDone({"evict", kSample, "--policy", spec + "@0.25", "--layers", "2-3", "--scores", "--out", "own.json"});
        const QJsonObject list = json("own.json");
        QCOMPARE(list["policy"].toString(), "score");
        QCOMPARE(list["parameters"].toObject()["expression"].toString(), "z(snapkv) + 0.3*z(leverage)*vnorm");
        QCOMPARE(list["heads"].toArray()[0].toObject()["kept"].toArray().size(), 249);
        expectDone(
            {"measure", kSample, "--policy", spec + ",prompt_block=128@0.25", "--layers", "3", "--out", "own.csv"});
        QVERIFY(m_program.content("own.csv").contains("true")); // simulated
        expectDone({"measure", kSample, "--selection", "own.json", "--layers", "3", "--out", "again.csv"});
        expectDone({"plot", "token_profile", kSample, "--layer", "3", "--policy", spec + "@0.25", "--out", "own.svg"});
        QVERIFY(m_program.content("own.svg").contains("z(snapkv) + 0.3*z(leverage)*vnorm"));
        expectDone({"sweep", kSample, "--policy", "score", "--vary", "protect_last=0,32", "--retention", "0.1",
                    "--layers", "3", "--out", "own_sweep.csv"});
    }

    void mistakes() {
        expectRefused({"calibrate", kSample, "--policy", "snapkv", "--out", "x.json"}, "snapkv:kvpress");
        expectRefused({"calibrate", kSample, "--policy", "snapkv:kvpress@0.2", "--out", "x.json"}, "has one");
        expectRefused({"calibrate", kSample, "--policy", "snapkv:kvpress", "--proxy", "--k", "-5", "--out", "x.json"},
                      "contradict");
        expectRefused({"calibrate", "--policy", "snapkv", "--out", "x.json"}, "nothing to calibrate from");
        expectRefused({"calibrate", kSample, "--policy", "snapkv:kvpress", "--tau", "1.5", "--out", "x.json"},
                      "tau 1.5");
        expectRefused({"calibrate", kSample, "--policy", "exact", "--proxy", "--out", "x.json"}, "takes no budget");
        expectRefused({"evict", kSample, "--policy", "snapkv@tau=0.95", "--out", "x.json"}, "snapkv:kvpress");
        expectRefused({"evict", kSample, "--policy", "snapkv@tau=2", "--out", "x.json"}, "no quality");
        expectRefused({"evict", kSample, "--policy", "snapkv@tau=0.9:gone.json", "--out", "x.json"}, "gone.json");
        expectRefused({"evict", kSample, "--policy", "score:z(snapkw)@0.2", "--out", "x.json"},
                      "character 3). Did you mean 'snapkv'?");
        expectRefused({"evict", kSample, "--policy", "score:log(knorm - 1000)@0.2", "--layers", "3", "--out", "x.json"},
                      "KV head 0, token 0");
    }

    void givenCurvatureNeedsNoCapture() {
        expectDone({"calibrate", "--policy", "snapkv", "--k", "-10", "--out", "k.json"});
        QVERIFY(std::abs(json("k.json")["contexts"].toArray()[0].toObject()["retention"].toDouble() - 0.2995) < 5e-5);
        expectRefused({"calibrate", "--policy", "snapkv", "--k", "-10", "--out", "k2.csv"}, "no table");
    }
};

KVSCOPE_CORE_TEST(CalibrationCommandTest)
#include "calibration_command_test.moc"
