// A session file says everything the session says, survives what it does not understand, and never half-exists.
#include <QTest>

#include "app/live/live_context.h"
#include "app/study/compared_capture.h"
#include "app/study/session_file.h"
#include "core/base/error.h"
#include "tests/app/session_fixture.h"
#include "tests/support/error_message.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

#include <nlohmann/json.hpp>

using namespace kvscope;
using kvscope::testing::RandomUser;

namespace {

/// JSON written with single quotes, to be readable in C++.
QByteArray json(const char* text) { return QByteArray(text).replace('\'', '"'); }

std::string messageFor(const std::string& path) {
    return errorMessage([&] { readSession(path); });
}

} // namespace

class SessionFileTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }
    void write(const char* name, const QByteArray& text) const {
        QFile file(m_folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }

private slots:
    void randomSessionsReadBackIdentically() {
        for (std::uint64_t seed = 1; seed <= 50; ++seed) {
            RandomUser user(seed);
            Session session;
            session.capturePath = path("some capture.h5");
            for (int i = 0; i < 30; ++i) user.act(session);
            session.look.ranges["key_projection"] = {-1.25, 3.1, 1e-9, 7};
            if (seed % 3 == 0) {
                session.compared = {path("other prompt.h5"), {3, 4, 9}, "needle"};
                session.look.comparedRanges["curves"] = {0, 0.5, 1e-9, 7};
                session.look.comparedTop = 40;
            }
            session.look.theme = ThemeChoice::Dark;
            session.look.scale = 1.25;
            session.look.docks = {"explore-wide", "AAAA/w==", seed % 2 == 0};
            session.look.headMeasure = seed % 2 ? "entropy" : "cos_means";
            session.layout = WindowLayout::ExploreHead;
            session.cut = "last:256";
            session.arithmetic = seed % 2 ? Arithmetic::Fast : Arithmetic::Exact;
            session.viewOptions["key_projection"]["anchor"] = "true";
            writeSession(path("a.kvscope"), session);
            QVERIFY2(readSession(path("a.kvscope")) == session, qPrintable(QString("seed %1").arg(seed)));
        }
    }

    // Lessons are validated with the schema by the Python tests; here it names the keys that are written, and no
    // others.
    void theSchemaNamesEveryKey() {
        Session session;
        session.panes.resize(2);
        session.panes[0].policy = PolicySpec::parse("keydiff");
        session.panes[1].recordedPath = path("list.json");
        session.look.cursor = 3;
        session.look.docks.arrangement = "teach-normal";
        session.compared.path = path("other.h5");
        session.lesson = "{}";
        writeSession(path("all.kvscope"), session);
        const auto read = [](const QString& name) {
            QFile file(name);
            return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
        };
        QJsonObject written = read(m_folder.filePath("all.kvscope"));
        live::LiveDescription text;
        text.parts = {{SegmentKind::Context, "Once"}};
        session.live = SharedText(live::textOf(text)); // in place of the capture
        writeSession(path("live.kvscope"), session);
        written["live"] = read(m_folder.filePath("live.kvscope"))["live"];
        const QJsonObject named = read(QString::fromStdString(kvscope::testing::sourceDir()) +
                                       "/resources/schemas/session.schema.json")["properties"]
                                      .toObject();
        QVERIFY(written.size() > 10);
        QCOMPARE(written.keys(), named.keys()); // both sorted
        QCOMPARE(written["look"].toObject().keys(), named["look"].toObject()["properties"].toObject().keys());
        QCOMPARE(written["compared"].toObject().keys(), named["compared"].toObject()["properties"].toObject().keys());
        QCOMPARE(written["live"].toObject().keys(), named["live"].toObject()["properties"].toObject().keys());
        const QJsonArray panes = written["panes"].toArray();
        QCOMPARE(panes[0].toObject().keys() + panes[1].toObject().keys(),
                 named["panes"].toObject()["items"].toObject()["properties"].toObject().keys());
    }

    // Older files have pixels, which name no token without the width of the text.
    void theTextBeginsWithAToken() {
        const auto open = [&](const QByteArray& place) {
            const QByteArray form = json("{'format': 'kvscope-session', 'version': 1, 'look': {%}, "
                                         "'compared': {'capture': 'b.h5', %}}");
            write("a.json", QByteArray(form).replace("%", QByteArray(place).replace('\'', '"')));
            return readSession(path("a.json"));
        };
        const Session now = open("'strip_top': 40"), old = open("'strip_scroll': 300.5");
        QVERIFY(now.look.stripTop == 40 && now.look.comparedTop == 40);
        QVERIFY(old.look.stripTop == 0 && old.look.comparedTop == 0);
        QVERIFY(old.look.unknownKeys == Session().look.unknownKeys &&
                old.compared.unknownKeys == now.compared.unknownKeys);
        for (const char* wrong : {"'strip_top': -1", "'strip_top': 1.5"}) QVERIFY_THROWS_EXCEPTION(Error, open(wrong));
    }

    void pathsAreRelativeToTheFile() {
        Session session;
        session.capturePath = path("data/needle.h5");
        QVERIFY(QDir(m_folder.path()).mkpath("sessions"));
        writeSession(path("sessions/a.kvscope"), session);
        QFile file(m_folder.filePath("sessions/a.kvscope"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll();
        QVERIFY2(text.contains("\"../data/needle.h5\""), text.constData());
        QVERIFY(QFile::rename(m_folder.filePath("sessions"), m_folder.filePath("moved")));
        QCOMPARE(readSession(path("moved/a.kvscope")).capturePath, session.capturePath);
    }

    // A session moves with the files that its options name, as it does with its capture.
    void filesOfOptionsLieBesideTheSession() {
        QVERIFY(QDir(m_folder.path()).mkpath("tables"));
        write("tables/t.csv", "retention,quality\n");
        write("a.json", json("{'format': 'kvscope-session', 'version': 1, 'view_options': {'calibration': {'table': "
                             "'tables/t.csv', 'source': 'tables', 'tau': '0.9'}, 'curves': {'captures': "
                             "'tables/none.h5'}}}"));
        const Session session = readSession(path("a.json"));
        QCOMPARE(session.viewOptions.at("calibration").at("table"), path("tables/t.csv"));
        QCOMPARE(session.viewOptions.at("calibration").at("source"), std::string("tables"));
        QCOMPARE(session.viewOptions.at("calibration").at("tau"), std::string("0.9"));
        QCOMPARE(session.viewOptions.at("curves").at("captures"), std::string("tables/none.h5"));
        QVERIFY(QDir(m_folder.path()).mkpath("project"));
        write("project/t.csv", "retention,quality\n");
        Session saved = session;
        saved.viewOptions["calibration"]["table"] = path("project/t.csv");
        writeSession(path("project/b.json"), saved);
        QVERIFY(QFile::rename(m_folder.filePath("project"), m_folder.filePath("elsewhere")));
        QCOMPARE(readSession(path("elsewhere/b.json")).viewOptions.at("calibration").at("table"),
                 path("elsewhere/t.csv"));
    }

    // So it does with scores, calibration curves and further captures, of its panes and of a lesson's stops.
    void filesOfPoliciesAndBudgetsMoveAlong() {
        QVERIFY(QDir(m_folder.path()).mkpath("study"));
        for (const char* name : {"scores.h5", "curve.json", "common.json", "b.h5", "c.h5"})
            write(QByteArray("study/").append(name).constData(), "something");
        const auto inFolder = [&](const char* folder) {
            const std::string at = path(folder) + "/";
            Session session;
            session.budget = Budget::parse("tau=0.9:" + at + "common.json");
            session.panes.push_back({PolicySpec::parse("imported,file=" + at + "scores.h5:/x"), {}, {}});
            session.panes.push_back({PolicySpec::parse("snapkv@tau=0.95:" + at + "curve.json"), {}, {}});
            setViewOption(session, "curves", "captures", at + "b.h5;" + at + "c.h5");
            session.lesson = json("{'stops': [{'panes': ['imported,file=%1scores.h5:/x', {'policy': "
                                  "'snapkv@tau=0.95:%1curve.json'}], 'budget': 'tau=0.9:%1common.json'}]}")
                                 .replace("%1", at.c_str())
                                 .toStdString();
            session.lesson = nlohmann::ordered_json::parse(session.lesson).dump();
            return session;
        };
        writeSession(path("study/s.kvscope"), inFolder("study"));
        QVERIFY(QFile::rename(m_folder.filePath("study"), m_folder.filePath("given")));
        const Session read = readSession(path("given/s.kvscope")), moved = inFolder("given");
        QCOMPARE(read.budget, moved.budget);
        QCOMPARE(read.panes, moved.panes);
        QCOMPARE(read.viewOptions, moved.viewOptions);
        QCOMPARE(read.lesson, moved.lesson);
    }

    // A formula, a name, a file that is not there.
    void textsThatNameNoFileStay() {
        write("uniform.h5", "a file with the name of a text");
        Session session;
        for (const char* policy : {"score:snapkv + 0.5*keydiff", "imported,file=/elsewhere/scores.h5:/x"})
            session.panes.push_back({PolicySpec::parse(policy), {}, {}});
        setViewOption(session, "curves", "captures", " none.h5 ; ");
        writeSession(path("s.kvscope"), session);
        const Session read = readSession(path("s.kvscope"));
        QCOMPARE(read.panes, session.panes);
        QCOMPARE(read.viewOptions, session.viewOptions);
    }

    void unknownKeysAreKept() {
        write("a.json", json("{'format': 'kvscope-session', 'version': 1, 'capture': 'x.h5', 'from_the_future': {'a': "
                             "[1, 2]}, 'panes': [{'policy': 'keydiff', 'glow': true}], 'look': {'hue': 3}, "
                             "'compared': {'capture': 'y.h5', 'side': 'left'}}"));
        writeSession(path("b.json"), readSession(path("a.json")));
        QFile file(m_folder.filePath("b.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll().simplified().replace(" ", "");
        QVERIFY2(text.contains(json("'from_the_future':{'a':[1,2]}")), text.constData());
        QVERIFY2(text.contains(json("'glow':true")), text.constData());
        QVERIFY2(text.contains(json("'hue':3")), text.constData());
        QVERIFY2(text.contains(json("'side':'left'")), text.constData());
        Session edited = readSession(path("a.json")); // an edit in the second capture keeps them too
        adoptCompared(edited, comparedSession(edited));
        QVERIFY(edited == readSession(path("a.json")));
        QVERIFY(readSession(path("b.json")) == readSession(path("a.json")));
    }

    /// As a version with other measures may have written it; one of a whole layer has no number per head.
    void aMeasureThatHeadsDoNotHaveLosesNothing() {
        for (const char* id : {"of_the_future", "layer_error_wo", ""}) {
            write("a.json", json("{'format': 'kvscope-session', 'version': 1, 'layer': 4, 'look': {'head_measure': "
                                 "'%', 'compact': true}}")
                                .replace('%', id));
            const Session session = readSession(path("a.json"));
            QCOMPARE(session.look.headMeasure, std::string("output_error"));
            QVERIFY(session.layer == LayerIndex(4) && session.look.compact);
        }
    }

    void errorsNameTheKey_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("expected");
        const QByteArray head = json("{'format': 'kvscope-session', 'version': 1, ");
        QTest::newRow("not JSON") << QByteArray("hello") << "not a session";
        QTest::newRow("another format") << json("{'format': 'x'}") << "not a session";
        QTest::newRow("newer") << QByteArray(json("{'format': 'kvscope-session', 'version': 99}")) << "newer version";
        QTest::newRow("wrong kind") << head + json("'layer': 'three'}") << "layer";
        QTest::newRow("unknown policy") << head + json("'panes': [{'policy': 'kediff'}]}") << "kediff";
        QTest::newRow("empty pane") << head + json("'panes': [{}]}") << "panes/0/policy";
        QTest::newRow("five panes") << head + json("'panes': [{'policy': 'exact'}, {'policy': 'exact'}, {'policy': "
                                                   "'exact'}, {'policy': 'exact'}, {'policy': 'exact'}]}")
                                    << "more panes";
        QTest::newRow("budget") << head + json("'budget': '0'}") << "udget";
        QTest::newRow("layout") << head + json("'layout': 'spiral'}") << "explore_head";
        QTest::newRow("arithmetic") << head + json("'arithmetic': 'sloppy'}")
                                    << "(arithmetic). Choose one of exact, fast";
        QTest::newRow("cursor") << head + json("'look': {'cursor': -3}}") << "look/cursor";
        QTest::newRow("head measure") << head + json("'look': {'head_measure': 3}}") << "look/head_measure";
        QTest::newRow("scale") << head + json("'look': {'scale': 40}}") << "look/scale";
        QTest::newRow("empty range") << head + json("'look': {'ranges': {'v': [1, 1, 0, 1]}}}") << "look/ranges";
        QTest::newRow("selection") << head + json("'selected': [[5, 3]]}") << "selected";
        const auto row = [&](const char* name, const char* members, const char* expected) {
            QTest::newRow(name) << head + json(members) << expected;
        };
        row("negative seed", "'seed': -1}", "-1 is no whole number that fits here (seed)");
        row("half a seed", "'seed': 1.5}", "1.5 is no whole number that fits here (seed)");
        row("large seed", "'seed': 18446744073709551616}", "(seed)");
        row("half a layer", "'layer': 2.7}", "(layer)");
        row("half a head", "'query_head': 0.5}", "(query_head)");
        row("a word for a head", "'kv_head': true}", "(kv_head)");
        row("half a pane", "'panes': [{'policy': 'exact'}], 'active_pane': 0.5}", "(active_pane)");
        row("half a cursor", "'look': {'cursor': 2.5}}", "(look/cursor)");
        row("half tokens", "'selected': [[0.5, 3.9]]}", "(selected)");
        row("half tokens compared", "'compared': {'capture': 'y.h5', 'selected': [[0, 3.9]]}}", "(compared/selected)");
        row("a list as look", "'look': [1]}", "(look)");
        row("docks without a state", "'look': {'docks': {'arrangement': 'teach-wide', 'by_hand': true}}}",
            "look/docks");
        const QByteArray nested = json("'look': {'docks': {'arrangement': 'a', 'by_hand': true, 'state': '");
        QTest::newRow("long docks") << head + nested + QByteArray(70'000, 'A') + json("'}}}")
                                    << "too long (look/docks)";
        row("a word as compared", "'compared': 'y.h5'}", "(compared)");
        QTest::newRow("far version") << json("{'format': 'kvscope-session', 'version': 8589934593}") << "newer version";
        QTest::newRow("huge selection") << head + json("'selected': [[0, 99999999999]]}") << "selected";
    }
    void errorsNameTheKey() {
        QFETCH(QByteArray, text);
        QFETCH(QString, expected);
        write("bad.json", text);
        const QString message = QString::fromStdString(messageFor(path("bad.json")));
        QVERIFY2(message.contains(expected), qPrintable(message));
        QVERIFY2(message.contains("bad.json"), qPrintable(message));
    }

    void wholeNumbersMayHaveAPoint() {
        write("a.json",
              json("{'format': 'kvscope-session', 'version': 1.0, 'seed': 18446744073709551615, 'layer': 2.0, "
                   "'selected': [[1.0, 3]]}"));
        const Session session = readSession(path("a.json"));
        QCOMPARE(session.seed, std::uint64_t{18446744073709551615u});
        QVERIFY(session.layer == LayerIndex(2));
        QCOMPARE(session.selected, (std::vector<TokenIndex>{1, 2}));
    }

    void aMissingFileIsNamed() {
        QVERIFY(QString::fromStdString(messageFor(path("nowhere.json"))).contains("nowhere.json"));
    }

    void aFailedWriteLeavesTheOldFile() {
        const QString locked = m_folder.filePath("none/such/a.kvscope");
        QVERIFY_THROWS_EXCEPTION(Error, writeSession(locked.toStdString(), Session{}));
        QVERIFY(!QFile::exists(locked));
    }

    // Written under the name of its capture, a session would replace gigabytes by a page of JSON.
    void noFileThatTheSessionReadsIsReplaced() {
        const auto names = {"c.h5", "second.h5", "list.csv", "further.h5", "scores.h5", "curve.json", "common.json"};
        for (const char* name : names) write(name, "precious");
        Session session;
        session.capturePath = path("c.h5");
        session.compared.path = path("second.h5");
        session.panes.emplace_back().recordedPath = path("list.csv");
        session.budget = Budget::parse("tau=0.9:" + path("common.json"));
        session.panes.push_back({PolicySpec::parse("imported,file=" + path("scores.h5") + ":/x"), {}, {}});
        session.panes.push_back({PolicySpec::parse("snapkv@tau=0.95:" + path("curve.json")), {}, {}});
        setViewOption(session, "curves", "captures", path("other.h5") + ";" + path("further.h5"));
        for (const char* name : names) {
            const std::string refused = errorMessage([&] { writeSession(path(name), session); });
            QVERIFY2(refused.find("would replace it") != std::string::npos, name);
            QFile file(m_folder.filePath(name));
            QVERIFY(file.open(QIODevice::ReadOnly) && file.readAll() == "precious");
        }
    }

    void sessionsAreTold() {
        writeSession(path("a.kvscope"), Session{});
        write("list.json", json("{'format': 'kvscope-selection'}"));
        QVERIFY(isSessionFile(path("a.kvscope")));
        QVERIFY(!isSessionFile(path("list.json")));
        QVERIFY(!isSessionFile(path("nowhere.json")));
    }
};

KVSCOPE_TEST(SessionFileTest)
#include "session_file_test.moc"
