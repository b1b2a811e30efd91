// `kvscope live` as a process, with a worker that has no model: the table and its two forms, what is refused in one
// sentence, and that no worker outlives the program.
#include <QtTest>

#include "app/study/regenerating_command.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "tests/app/answer_context.h"
#include "tests/app/command_test.h"
#include "tests/support/test_program.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>

#include <csignal>

using namespace kvscope;
using testing::FakeWorker;

class LiveCommandTest : public testing::CommandTest {
    Q_OBJECT

    FakeWorker m_fake{testing::contextWith().get()};

    QStringList live(const QString& mode, const QStringList& more) const {
        if (!m_program.write("text.txt", "In the beginning")) qFatal("cannot write");
        return QStringList{"live",   "tiny",    "--python", QString::fromStdString(m_fake.command(mode.toStdString())),
                           "--text", "text.txt"} +
               more;
    }

private slots:
    void theTable() {
        const auto outcome =
            m_program.run(live("right", {"--answer", "42", "--generate", "2", "--policy", "keydiff", "--policy",
                                         "snapkv@17t", "--retention", "0.25,0.5", "--out", "t.json"}));
        QVERIFY2(outcome.code == 0, outcome.error);
        const QList<QByteArray> lines = outcome.out.trimmed().split('\n');
        QCOMPARE(lines.size(), 6); // prompt, heads of the columns, full cache, three rows
        QCOMPARE(lines[0], "fake: 83 tokens, cut at end of context, 61");
        QVERIFY2(lines[1].startsWith("policy") && lines[2].startsWith("full cache"), outcome.out);
        QVERIFY2(lines[3].startsWith("keydiff@0.25 ") && lines[4].startsWith("keydiff@0.5 ") &&
                     lines[5].startsWith("snapkv@17t "),
                 outcome.out);
        QVERIFY2(lines[2].contains(" 0.5000 ") && lines[5].endsWith("forty two"), outcome.out);

        const QJsonObject json = QJsonDocument::fromJson(m_program.content("t.json")).object();
        QVERIFY(json["format"] == "kvscope-live" && json["version"] == 1 && json["model"] == "fake");
        QVERIFY(json["tokens"] == 83 && json["cut"] == 61 &&
                json["command"].toString().startsWith("kvscope live tiny "));
        QVERIFY(json["full"].toObject()["nll"] == 0.5 && json["full"].toObject()["text"] == "forty two");
        const QJsonArray rows = json["rows"].toArray();
        QCOMPARE(rows.size(), 3);
        const QJsonObject row = rows[2].toObject();
        QVERIFY(row["policy"] == "snapkv" && row["spec"] == "snapkv@17t" && row["kept"] == 17);
        QCOMPARE(row["retention"].toDouble(), 17.0 / 61);
        QVERIFY(row["kl"] == 0.25 && row["flip_rate"] == 0.5 && row["first_divergence"] == 1 &&
                row["text"] == "forty two");
        QVERIFY(row["nll"].toDouble() > 1 && row["nll"] != rows[0].toObject()["nll"]); // a checksum of what arrived
    }

    /// What decided the numbers stays with them: the stream of messages is gone with the terminal.
    void theFilesSayWhatDecidedThem() {
        const QString nothing = "the protected first and last tokens take the whole budget: nothing was balanced";
        const QStringList asked = {"--answer", "42",          "--seed",   "9",
                                   "--policy", "keydiff@0.5", "--policy", "balancekv,sink=4,recent=4@8t"};
        expectDone(live("right", asked + QStringList{"--out", "n.json"}));
        const QJsonObject json = QJsonDocument::fromJson(m_program.content("n.json")).object();
        QCOMPARE(json["seed"], 9);
        QCOMPARE(json["arithmetic"], "exact index contract");
        QCOMPARE(json["rows"][0]["notes"], "");
        QVERIFY(json["rows"][1]["notes"].toString().contains(nothing));
        expectDone(live("right", asked + QStringList{"--arithmetic", "fast", "--out", "n.csv"}));
        const QList<QByteArray> lines = m_program.content("n.csv").trimmed().split('\n');
        QCOMPARE(lines.size(), 4);
        QVERIFY2(lines[0].contains(",notes,"), lines[0]);
        QVERIFY2(lines[0].contains(",model,context,tokens,cut_token,seed,arithmetic,"), lines[0]);
        for (const QByteArray& line : lines.mid(1))
            QVERIFY2(line.contains(",fake,fake (live) abc,83,61,9,\"fast float, outside the index contract\","), line);
        QVERIFY2(lines[3].contains(nothing.toUtf8()), lines[3]);
        expectDone(live("right", asked + QStringList{"--out", "n.svg"}));
        for (const QByteArray& words :
             {QByteArray("fake, cut at end of context, 61, seed 9, exact index contract"), nothing.toUtf8()})
            QVERIFY2(m_program.content("n.svg").contains(words), words);
    }

    /// The others are answered, and nobody overlooks it.
    void aPolicyWithoutAnAnswerFailsAlone() {
        const QStringList asked = {"--answer", "42",   "--generate",  "2",    "--policy", "snapkv",
                                   "--policy", "h2o",  "--retention", "0.25", "--policy", "keydiff@tau=0.9",
                                   "--out",    "f.csv"};
        const QByteArray overflow = "the loss is NaN or infinite. Load it in bf16";
        const auto outcome = m_program.run(live("overflows", asked));
        QCOMPARE(outcome.code, 2);
        QVERIFY2(
            outcome.error.contains("2 of 3 policies have no answer: snapkv@0.25: " + overflow + "; keydiff@tau=0.9: "),
            outcome.error);
        const QList<QByteArray> lines = outcome.out.trimmed().split('\n');
        QCOMPARE(lines.size(), 6);
        QVERIFY2(lines[3].startsWith("snapkv@0.25 ") && lines[3].endsWith("no answer: " + overflow), lines[3]);
        QVERIFY2(lines[4].startsWith("h2o@0.25 ") && lines[4].endsWith("forty two"), lines[4]);
        QVERIFY2(lines[5].contains(" - ") && lines[5].contains("no answer: "), lines[5]);
        const QList<QByteArray> rows = m_program.content("f.csv").trimmed().split('\n');
        QCOMPARE(rows.size(), 5);
        const QList<QByteArray> names = rows[0].split(',');
        QVERIFY(names.contains("error") && names.contains("quality"));
        expectDone({"calibrate", "--triples", "f.csv", "--policy", "h2o", "--out", "h.csv"});

        QStringList json = asked;
        json.last() = "f.json";
        const auto needs =
            m_program.run(live("overflows", json + QStringList{"--importance", "16", "--gradient", "2"}));
        QCOMPARE(needs.code, 2);
        QVERIFY2(needs.out.contains("\nwithout tokens 16 to 31 the loss is NaN or infinite\n"), needs.out);
        const QJsonObject written = QJsonDocument::fromJson(m_program.content("f.json")).object();
        QVERIFY(written["chunks"][0]["rise"].isDouble() && written["chunks"][1]["rise"].isNull());
        const QJsonArray list = written["rows"].toArray();
        QCOMPARE(list.size(), 3);
        QCOMPARE(list[0]["error"].toString().toUtf8(), overflow);
        QVERIFY(list[0]["nll"].isNull() && list[0]["text"].isNull() && list[0]["kept"] == 16);
        QVERIFY(list[1]["error"].isNull() && list[1]["nll"].toDouble() > 1 && list[1]["chunks_kept"].isArray());
        QVERIFY(list[2]["kept"].isNull() && list[2]["retention"].isNull() && list[2]["error"].isString());
        QVERIFY(!list[2].toObject().contains("chunks_kept"));
        expectRefused(live("overflows", {"--answer", "42", "--policy", "snapkv@0.25", "--policy", "snapkv@0.5", "--out",
                                         "none.csv"}),
                      "snapkv@0.5: the loss is NaN or infinite");
    }

    void asCsvAndWithTheQuestionBeforeTheCut() {
        expectDone(
            live("chatty", {"--generate", "1", "--policy", "keydiff@0.5", "--cut", "question", "--out", "t.csv"}));
        const QList<QByteArray> lines = m_program.content("t.csv").trimmed().split('\n');
        QCOMPARE(lines.size(), 3);
        QVERIFY2(lines[0].startsWith("policy,variant,spec,retention,kept,stored_tokens,stored_bytes,simulated,nll,kl,"),
                 lines[0]);
        QVERIFY2(lines[1].startsWith("full,,,1,75,75,,false,0.5,0.25,0.5,,forty two,"), lines[1]);
        QVERIFY2(lines[2].startsWith("keydiff,"), lines[2]);
    }

    /// The table of several budgets as the measured points of a calibration.
    void aTableIsCalibratedFrom() {
        expectDone(live("right", {"--answer", "42", "--policy", "keydiff", "--policy", "snapkv", "--retention",
                                  "0.1,0.25,0.5,0.75", "--out", "t.csv"}));
        expectDone({"calibrate", "--triples", "t.csv", "--policy", "keydiff", "--out", "k.csv"});
        const QList<QByteArray> lines = m_program.content("k.csv").trimmed().split('\n');
        QCOMPARE(lines.size(), 5);
    }

    void asAFigure() {
        expectDone(live("right", {"--answer", "42", "--policy", "keydiff", "--policy", "snapkv", "--retention",
                                  "0.25,0.5,0.75", "--out", "t.svg"}));
        const QByteArray svg = m_program.content("t.svg");
        for (const char* word : {"Loss of the expected answer, nat", "KeyDiff", "SnapKV", "full cache", "kvscope live"})
            QVERIFY2(svg.contains(word), word);
    }

    /// A figure's command names the saved session, which holds what no line of a shell does: the text.
    void aWindowsFigureIsDrawnAgain() {
        live::LiveDescription description;
        description.command = m_fake.command("right");
        description.model.path = "/models/tiny";
        description.parts = {{SegmentKind::Context, "In the beginning"}};
        Session session;
        nameSource(session, {{}, SharedText(live::textOf(description))});
        session.panes = {{PolicySpec::parse("keydiff@0.25"), {}, {}}, {PolicySpec::parse("snapkv@0.1"), {}, {}}};
        session.panesLinked = false;
        session.layer = LayerIndex(1);
        session.seed = 3;
        FigureRequest figure;
        figure.viewId = "token_profile";
        figure.width = 600, figure.height = 400;
        figure.outPath = "again.svg";
        writeSession(m_program.at("tiny-live.kvscope").toStdString(), session);
        const auto drawn = [&](const std::string& command) {
            QStringList words = QProcess::splitCommand(QString::fromStdString(command));
            const QString program = words.takeFirst();
            expectDone(words);
            QString svg = QString::fromUtf8(m_program.content("again.svg"));
            svg.remove(QRegularExpression("<(desc|title)>.*?</(desc|title)>", // the command is in there
                                          QRegularExpression::DotMatchesEverythingOption));
            return program == "kvscope" ? svg : QString();
        };
        const QString picture = drawn(plotCommand(session, figure));
        QVERIFY2(picture.contains("KeyDiff"), "the picture");
        FigureRequest calibration = figure; // the model is asked again
        calibration.viewId = "calibration";
        const QString curves = drawn(plotCommand(session, calibration));
        QVERIFY(curves.contains("measured live") && !curves.contains("proxy"));
        QCOMPARE(drawn(plotCommand(session, calibration)), curves);
        // Saved elsewhere, and changed since.
        Session before = session;
        before.panes = {{PolicySpec::parse("key_norm@0.5"), {}, {}}};
        before.seed = 9;
        before.cut = "70";
        before.look.ranges["token_profile"] = {5, 9, 0, 1};
        before.look.cursor = 20;
        setViewOption(before, "token_profile", "axis", "rank");
        before.arithmetic = Arithmetic::Fast;
        writeSession(m_program.at("my-runs.kvscope").toStdString(), before);
        QFile::remove(m_program.at("tiny-live.kvscope"));
        // The worker reads with the cut that the session shows, or with the one that is given.
        for (const char* more : {"", " --cut 66"})
            QVERIFY(drawn(std::string("kvscope plot calibration --session my-runs.kvscope --out again.svg") + more)
                        .contains("measured live"));
        expectDone({"report", "my-runs.kvscope", "--cut", "66", "--views", "calibration", "--out", "page.html"});
        QVERIFY(m_program.content("page.html").contains(", measured live"));
        const SavedLive saved{m_program.at("my-runs.kvscope").toStdString(), "/captures/tiny.h5"};
        QCOMPARE(drawn(plotCommand(session, figure, saved)), picture);

        const std::string list = evictCommand(session, 0, "list.json"); // of the capture, saved by the window
        QVERIFY2(list.starts_with("kvscope evict tiny-live.h5 --policy keydiff"), list.c_str());
        const std::string ofSaved = evictCommand(session, 0, "list.json", saved);
        QVERIFY2(ofSaved.starts_with("kvscope evict /captures/tiny.h5 --policy keydiff"), ofSaved.c_str());
    }

    void whatDecidesAsAFigure() {
        expectDone(live("right", {"--answer", "42", "--policy", "keydiff", "--policy", "streaming_llm", "--retention",
                                  "0.25", "--importance", "16", "--gradient", "2", "--out", "n.svg"}));
        const QByteArray svg = m_program.content("n.svg");
        for (const char* word : {"without the chunk", "A KeyDiff", "B StreamingLLM", "nat", "kvscope live"})
            QVERIFY2(svg.contains(word), word);
    }

    void whatIsRefused_data() {
        QTest::addColumn<QString>("mode");
        QTest::addColumn<QStringList>("more");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* name, const char* mode, const QStringList& more, const char* words) {
            QTest::newRow(name) << mode << more << QByteArray(words);
        };
        const QStringList asked = {"--answer", "42", "--policy", "keydiff@0.5", "--out", "t.json"};
        row("nothing asked", "right", {"--policy", "keydiff@0.5", "--out", "t.json"}, "nothing is asked of the model");
        row("a figure of no answer", "right", {"--generate", "1", "--policy", "keydiff@0.5", "--out", "t.svg"},
            "the figure shows the loss of an answer, and none is expected");
        row("no policy", "right", {"--answer", "42", "--out", "t.json"}, "no policy is named");
        row("no budget", "right", {"--answer", "42", "--policy", "keydiff", "--out", "t.json"}, "has no budget");
        row("no such policy", "right", {"--answer", "42", "--policy", "keydif@0.5"}, "keydif");
        row("no cut", "right", asked + QStringList{"--cut", "none"}, "without a cut nothing is pruned");
        row("a cut in the answer", "right", asked + QStringList{"--cut", "76"},
            "the cut at 76 lies behind token 75, where the answer begins");
        row("a cut outside", "right", asked + QStringList{"--cut", "83"}, "leaves no evaluation queries");
        row("no text", "right", asked + QStringList{"--text", "missing.txt"}, "missing.txt");
        row("another form", "right", {"--answer", "42", "--policy", "keydiff@0.5", "--out", "t.txt"},
            "extension '.txt'");
        row("no memory", "refuses", asked, "needs 14.2 GiB, 11.8 GiB are free. Choose bf16");
        row("dead", "dies", asked, "the worker ended with exit code 3; its last words: Traceback");
        row("killed", "killed", asked, "was killed by signal 9");
        row("garbage", "garbage", asked, "something that is no frame");
        row("a lie", "shape", asked, "its shape is (3, 83, 16), not (2, 83, 16)");
        row("no module", "right", asked + QStringList{"--python", "python3 -I -S"},
            "share/kvscope/kvscope_tools.tar.gz of an installed program");
        row("no Python", "right", asked + QStringList{"--python", "no-such-python"}, "cannot start 'no-such-python'");
    }
    void whatIsRefused() {
        QFETCH(QString, mode);
        QFETCH(QStringList, more);
        QFETCH(QByteArray, words);
        QStringList line = live(mode, {});
        for (const QString& option : {QString("--text"), QString("--python")}) // given twice is an error of its own
            if (more.contains(option)) line.remove(line.indexOf(option), 2);
        expectRefused(line + more, words.constData());
        QVERIFY(!m_fake.isAlive());
    }

    /// The version of the tools may be why opening fails.
    void anotherVersionIsSaidBeforeAFailure() {
        const auto outcome = m_program.run(live("older", {"--answer", "42", "--policy", "keydiff@0.5"}));
        QCOMPARE(outcome.code, 2);
        const qsizetype note = outcome.error.indexOf("the worker's kvscope-tools are version 0.0.1, the program is "),
                        failure = outcome.error.indexOf("the worker ended with exit code 3");
        QVERIFY2(note >= 0 && note < failure, outcome.error);
    }

    /// Text and model are inputs, and stay as they are.
    void nothingReadIsReplaced_data() {
        QTest::addColumn<QStringList>("more");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* name, const QStringList& more, const char* words) {
            QTest::newRow(name) << more << QByteArray(words);
        };
        row("a capture over the text", {"--text", "text.h5", "--capture-to", "./text.h5"}, "(--capture-to)");
        row("a capture over the weights", {"--capture-to", "model/weights.safetensors"}, "extension .h5 or .hdf5");
        row("a capture over weights in HDF5", {"--capture-to", "model/weights.h5"}, "in the model's folder");
        row("a table over the config", {"--out", "model/config.json"}, "in the model's folder");
        row("a table over a linked config", {"--out", "linked.json"}, "in the model's folder");
        row("a table over a config of the Hub's cache", {"--out", "model/blob.json"}, "in the model's folder");
    }
    void nothingReadIsReplaced() {
        QFETCH(QStringList, more);
        QFETCH(QByteArray, words);
        QStringList line = live("right", {"--answer", "42", "--policy", "keydiff@0.5"});
        line[1] = "model";
        if (more.contains("--text")) line.remove(line.indexOf("--text"), 2);
        QDir(m_program.at(".")).mkdir("model");
        const QStringList files = {"text.h5", "model/weights.safetensors", "model/weights.h5", "model/config.json",
                                   "blob.json"};
        for (const QString& name : files) {
            QVERIFY(m_program.write(name, "an input"));
        }
        QFile::link(m_program.at("model/config.json"), m_program.at("linked.json"));
        QFile::link(m_program.at("blob.json"), m_program.at("model/blob.json"));
        expectRefused(line + more, words.constData());
        for (const QString& name : files) QCOMPARE(m_program.content(name), "an input");
    }

    /// A new name in the model's folder replaces nothing.
    void aTableBesideTheModel() {
        QStringList line = live("right", {"--answer", "42", "--policy", "keydiff@0.5", "--out", "beside/t.json",
                                          "--capture-to", m_program.at("beside/c.h5")});
        line[1] = "beside";
        QDir(m_program.at(".")).mkdir("beside");
        expectDone(line);
        QVERIFY(!m_program.content("beside/t.json").isEmpty());
        QCOMPARE(m_program.content("beside/c.h5"), "a capture");
    }

    void aSignalEndsTheWorkerToo_data() {
        QTest::addColumn<int>("number");
        QTest::addColumn<QString>("mode");
        for (const auto& [name, number] : {std::pair{"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}}) {
            QTest::addRow("%s", name) << number << "hangs";
            QTest::addRow("%s, a job of srun", name) << number << "hangs";
            QTest::addRow("%s, a job of srun that starts", name) << number << "importing";
        }
    }
    void aSignalEndsTheWorkerToo() {
        QFETCH(int, number);
        QFETCH(QString, mode);
        const FakeWorker fake(testing::contextWith().get());
        QProcess process;
        QStringList words = live(mode, {"--answer", "42", "--policy", "keydiff@0.5"});
        std::string command = fake.command(mode.toStdString());
        if (QByteArray(QTest::currentDataTag()).contains("srun"))
            command = "python3 -S '" + testing::sourceDir() + "/tests/live/fake_srun.py' " + command;
        words[words.indexOf("--python") + 1] = QString::fromStdString(command);
        m_program.start(process, words);
        QTRY_VERIFY_WITH_TIMEOUT(fake.isAlive(), 60'000);
        ::kill(static_cast<pid_t>(process.processId()), number);
        QVERIFY(process.waitForFinished(60'000));
        QTRY_VERIFY_WITH_TIMEOUT(!fake.isAlive(), 10'000);
        if (number != SIGKILL) QCOMPARE(process.exitCode(), 128 + number);
    }
};

KVSCOPE_CORE_TEST(LiveCommandTest)
#include "live_command_test.moc"
