// Files beside a list: the random numbers that a run drew, those that it takes in their place, and its steps.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include "core/capture/h5.h"
#include "core/capture/h5_writer.h"
#include "tests/app/command_test.h"
#include "tests/support/test_program.h"

#include <cmath>
#include <functional>

using kvscope::testing::CommandTest;

class RecordedRandomnessTest : public CommandTest {
    Q_OBJECT

    QJsonDocument json(const QString& name) const { return QJsonDocument::fromJson(m_program.content(name)); }
    QJsonObject evictJson(const QStringList& more, const QString& name) const {
        expectDone(QStringList{"evict", kSample, "--out", name} + more);
        return json(name).object();
    }

private slots:
    // Recorded numbers give the same lists under another seed, and the recorded file says so itself.
    void recordedRandomnessReplays() {
        for (const QString& policy : {QStringLiteral("uniform@50t"), QStringLiteral("subgen,value_slots=16@50t"),
                                      QStringLiteral("subgen_kcenter:random_start@60t")}) {
            const QStringList common = {"--policy", policy, "--cut", "300", "--layers", "0,2"};
            const QJsonObject first = evictJson(common + QStringList{"--seed", "5", "--record", "drawn.h5"}, "a.json");
            const QJsonObject other = evictJson(common + QStringList{"--seed", "6"}, "b.json");
            const QJsonObject again =
                evictJson(common + QStringList{"--seed", "6", "--uniforms", "drawn.h5:/uniforms"}, "c.json");
            QVERIFY(!first["heads"].toArray().isEmpty());
            QCOMPARE(again["heads"], first["heads"]);
            QVERIFY2(other["heads"] != first["heads"], qPrintable(policy));
        }
    }

    // The seed stands in every table, and it did not decide these.
    void replayedNumbersAreNoted() {
        const QStringList common = {"--policy", "uniform@50t", "--cut", "300", "--layers", "0"};
        expectDone(QStringList{"evict", kSample, "--out", "d.json", "--record", "d.h5"} + common);
        const QByteArray note =
            "uniforms, where any are drawn, are read from d.h5:/uniforms and not made from the seed";
        const QStringList replayed = common + QStringList{"--seed", "9", "--uniforms", "d.h5:/uniforms"};
        const auto told = m_program.run(QStringList{"evict", kSample, "--out", "r.json"} + replayed);
        QVERIFY2(told.code == 0 && told.error.contains(note), told.error);
        const QStringList recorded = {"evict", kSample, "--out", "r.json", "--record", "e.h5"};
        const auto again = m_program.run(recorded + replayed);
        QVERIFY2(again.code == 0 && again.error.contains(note), again.error);
        expectDone(QStringList{"measure", kSample, "--out", "m.csv"} + replayed);
        QVERIFY2(m_program.content("m.csv").contains(note), m_program.content("m.csv"));
        // Where no number is drawn, and where the seed decides, nothing is noted.
        expectDone(QStringList{"measure", kSample, "--out", "m.csv"} + common);
        QVERIFY(!m_program.content("m.csv").contains("not made from the seed"));
        expectDone({"measure", kSample, "--out", "m.csv", "--policy", "keydiff@50t", "--cut", "300", "--layers", "0",
                    "--uniforms", "d.h5:/uniforms"});
        QVERIFY(!m_program.content("m.csv").contains("not made from the seed"));
    }

    void wrongRandomFilesAreRefused() {
        expectDone(
            {"evict", kSample, "--policy", "uniform@50t", "--cut", "100", "--record", "u.h5", "--out", "a.json"});
        const auto refusal = [&](const QStringList& more) {
            const auto outcome =
                m_program.run(QStringList{"evict", kSample, "--policy", "uniform@50t", "--out", "no.json"} + more);
            return outcome.code == 2 && !m_program.written().contains("no.json") ? QString::fromUtf8(outcome.error)
                                                                                 : QString("accepted");
        };
        QVERIFY(refusal({"--uniforms", "u.h5:/nothing", "--cut", "100"}).contains("the data set is missing"));
        QVERIFY(refusal({"--uniforms", "u.h5", "--cut", "100"}).contains("FILE.h5:/path"));
        QVERIFY(refusal({"--uniforms", "u.h5:/uniforms", "--cut", "200"}).contains("the uniforms end before layer 0"));
        QVERIFY(refusal({"--uniforms", kSample + ":/tokens", "--cut", "100"}) != "accepted");
        QVERIFY(refusal({"--steps", "s.json", "--cut", "100"}).contains("uniform writes no steps"));
        QVERIFY(m_program.run({"evict", kSample, "--policy", "keydiff@50t", "--record", "n.h5", "--out", "n.json"})
                    .error.contains("drew no random number"));
    }

    void stepsAreWritten() {
        expectDone({"evict", kSample, "--policy", "subgen_kcenter,recent=10@40t", "--cut", "200", "--layers", "1",
                    "--steps", "steps.json", "--out", "a.json"});
        const QJsonObject layer = json("steps.json").array().at(0).toObject();
        QCOMPARE(layer["layer"].toInt(), 1);
        QCOMPARE(layer["log"]["heads"][0]["order"].toArray().size(), 30);
    }

    void importedScoresDecide() {
        // The uniforms of the uniform policy, imported, keep what it kept.
        const QJsonValue drawn =
            evictJson({"--policy", "uniform@50t", "--cut", "300", "--seed", "3", "--record", "u.h5"}, "a.json")
                .value("heads");
        const auto wrong = m_program.run(
            {"evict", kSample, "--policy", "imported,file=u.h5:/uniforms@50t", "--cut", "300", "--out", "b.json"});
        QVERIFY(wrong.code == 2 && wrong.error.contains("[layers, KV heads, n]"));
        QVERIFY(m_program.run({"evict", kSample, "--policy", "imported@50t", "--out", "b.json"})
                    .error.contains("no scores are given"));
        const kvscope::h5::File recorded = kvscope::h5::File::openForReading(m_program.at("u.h5").toStdString());
        const std::vector<std::int64_t> shape = recorded.info("uniforms").shape;
        QVERIFY(shape == (std::vector<std::int64_t>{6, 2, 1, 300, 1}));
        kvscope::h5::Writer writer(m_program.at("scores.h5").toStdString());
        writer.put("scores", recorded.read<float>("uniforms"), {6, 2, 300});
        writer.close();
        const auto keptOf = [](const QJsonValue& heads) {
            QVector<QJsonValue> kept;
            for (const auto& head : heads.toArray()) kept.push_back(head.toObject()["kept"]);
            return kept;
        };
        const auto imported = evictJson({"--policy", "imported,file=scores.h5:/scores@50t", "--cut", "300"}, "b.json");
        QCOMPARE(keptOf(drawn).size(), 12);
        QCOMPARE(keptOf(imported.value("heads")), keptOf(drawn));
    }

    // Scores of another program are decided as it has them, or refused by name: no list is a matter of rounding.
    void importedScoresKeepTheOrderOfTheirDoubles() {
        const QStringList command = {"evict", kSample, "--policy", "imported,file=scores.h5:/near@3t",
                                     "--cut", "300",   "--out",    "near.json"};
        const auto write = [&](const std::function<double(int, int)>& score) {
            std::vector<double> scores;
            for (int head = 0; head < 12; ++head)
                for (int token = 0; token < 300; ++token) scores.push_back(score(head, token));
            kvscope::h5::Writer writer(m_program.at("scores.h5").toStdString());
            writer.put("near", scores, {6, 2, 300});
            writer.close();
        };
        write([](int, int token) { return token > 290 ? 1 + 1e-12 * token : 0.001 * token; });
        expectDone(command);
        for (const auto& head : json("near.json").object()["heads"].toArray())
            QCOMPARE(head.toObject()["kept"].toArray(), (QJsonArray{297, 298, 299}));
        write([](int, int token) { return 1.7e9 + token % 21; });
        expectRefused(command, "layer 0, KV head 0: float32 does not tell scores near 1700000");
        expectRefused(command, "write their ranks: scores.h5");
        write([](int head, int token) { return head == 7 && token == 12 ? NAN : token; });
        expectRefused(command, "layer 3, KV head 1: the score of token 12 is not a number (NaN) (/near)");
        write([](int head, int token) { return head == 7 && token == 12 ? 1e300 : token; });
        expectRefused(command, "the score 1e+300 of token 12 is beyond float32 (/near)");
    }
};

KVSCOPE_CORE_TEST(RecordedRandomnessTest)
#include "recorded_randomness_test.moc"
