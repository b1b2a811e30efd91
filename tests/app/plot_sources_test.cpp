// `kvscope plot` draws the same picture whether it comes from options, from a saved session or by the list that a run
// recorded; what it says on stdout is the same too.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTest>

#include "app/study/regenerating_command.h"
#include "app/study/session_file.h"
#include "core/capture/open_capture.h"
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/common/view_facts.h"

using namespace kvscope;
using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");

/// The figure without the command that made it, which tells the sources apart.
QByteArray picture(const Program& program, const QString& name) {
    QString text = QString::fromUtf8(program.content(name));
    text.remove(QRegularExpression("<desc>.*?</desc>", QRegularExpression::DotMatchesEverythingOption));
    text.remove(QRegularExpression("<title>.*?</title>", QRegularExpression::DotMatchesEverythingOption));
    return text.toUtf8();
}

SessionPane paneOf(const std::string& spec) { return {PolicySpec::parse(spec), {}, {}}; }

Session twoPanes() {
    Session session;
    session.capturePath = kSample.toStdString();
    session.layer = LayerIndex(3);
    session.kvHead = KvHeadIndex(1);
    session.queryHead = QueryHeadIndex(5);
    session.panes = {paneOf("keydiff@0.25"), paneOf("snapkv:kvpress@0.1")};
    session.panesLinked = false;
    session.viewOptions["key_projection"]["x_component"] = "2";
    return session;
}

} // namespace

class PlotSourcesTest : public QObject {
    Q_OBJECT

    static Program::Outcome done(const Program& program, const QStringList& arguments) {
        const Program::Outcome outcome = program.run(arguments);
        if (outcome.code != 0) qWarning("%s", outcome.error.constData());
        return outcome;
    }

private slots:
    /// The needle that the question asks for, of three; what a window writes into its figures names it by its tokens.
    void theNeedleOfTheQuestionIsHighlighted() {
        const Program program;
        const auto capture = openCapture(kSample.toStdString());
        const Session window = firstSession(*capture);
        QVERIFY(window.selected.size() < tokensOfKind(*capture, SegmentKind::Needle).size());
        const QStringList plot = {"plot", "token_strip", kSample, "--layer", "3", "--policy", "keydiff@0.1"};
        const auto byDefault = done(program, plot + QStringList{"--out", "a.svg"});
        const auto named =
            done(program, plot + QStringList{"--select", QString::fromStdString(rangeText(window.selected)),
                                             "--select-name", "needle", "--out", "b.svg"});
        QCOMPARE(byDefault.out, named.out);
        QCOMPARE(picture(program, "a.svg"), picture(program, "b.svg"));
    }

    /// SnapKV would refuse where no query before the cut was captured.
    void aCaptureOpensWithPoliciesThatRunOnIt() {
        const auto policies = [](const char* name) {
            const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/" + name);
            QStringList ids;
            for (const SessionPane& pane : firstSession(*capture).panes)
                ids << QString::fromStdString(pane.policy.policy);
            return ids;
        };
        QCOMPARE(policies("needle-1k.h5"), QStringList({"keydiff", "snapkv", "streaming_llm"}));
        QCOMPARE(policies("story-2k.h5"), QStringList({"keydiff", "key_norm", "streaming_llm"}));
    }

    /// As a pane of that policy says it.
    void aListOfAnEditedVariantSaysSo() {
        const Program program;
        for (const auto& [spec, isEdited] : {std::pair{"snapkv,window=1@0.2", true}, {"snapkv:kvpress@0.2", false}}) {
            done(program, {"evict", kSample, "--policy", spec, "--layers", "3", "--out", "list.json"});
            done(program, {"plot", "overlap", kSample, "--selection", "list.json", "--policy", "keydiff@0.1", "--layer",
                           "3", "--out", "o.svg"});
            QCOMPARE(picture(program, "o.svg").contains("(recorded), paper, edited, cut"), isEdited);
        }
    }

    void aSessionDrawsWhatItsOptionsSay() {
        const Program program;
        writeSession(program.at("two.kvscope").toStdString(), twoPanes());
        for (const auto& [pane, spec] : {std::pair{"0", "keydiff@0.25"}, std::pair{"1", "snapkv:kvpress@0.1"}}) {
            const auto saved =
                done(program, {"plot", "--session", "two.kvscope", "--pane", pane, "--out", "saved.svg"});
            const auto typed = done(program, {"plot", "key_projection", kSample, "--layer", "3", "--kv-head", "1",
                                              "--q-head", "5", "--policy", spec, "--view-set", "x_component=2",
                                              "--select", "none", "--out", "typed.svg"});
            QVERIFY(saved.code == 0 && typed.code == 0);
            QCOMPARE(saved.out, typed.out);
            QVERIFY(picture(program, "saved.svg").size() > 10'000);
            QCOMPARE(picture(program, "saved.svg"), picture(program, "typed.svg"));
        }
        done(program, {"plot", "--session", "two.kvscope", "--out", "both.svg"});
        QVERIFY(picture(program, "both.svg").size() > picture(program, "saved.svg").size());
    }

    void anotherViewOfTheSession() {
        const Program program;
        writeSession(program.at("two.kvscope").toStdString(), twoPanes());
        const auto saved = done(program, {"plot", "overlap", "--session", "two.kvscope", "--out", "saved.svg"});
        const auto typed = done(program, {"plot", "overlap", kSample, "--layer", "3", "--kv-head", "1", "--policy",
                                          "keydiff@0.25", "--policy", "snapkv:kvpress@0.1", "--out", "typed.svg"});
        QVERIFY(saved.code == 0 && typed.code == 0);
        QCOMPARE(saved.out, typed.out);
    }

    // A view of one policy shows the active pane, whichever its place.
    void theActivePaneIsShown() {
        const Program program;
        Session session = twoPanes();
        session.activePane = 1;
        writeSession(program.at("two.kvscope").toStdString(), session);
        const auto saved = done(program, {"plot", "token_profile", "--session", "two.kvscope", "--out", "saved.svg"});
        const QStringList head = {"plot", "token_profile", kSample, "--layer", "3", "--kv-head", "1", "--policy"};
        const QStringList end = {"--select", "none", "--out", "typed.svg"};
        const auto alone = done(program, head + QStringList{"snapkv:kvpress@0.1"} + end);
        QCOMPARE(saved.out, alone.out);
        const auto typed =
            done(program, head + QStringList{"keydiff@0.25", "--policy", "snapkv:kvpress@0.1", "--active", "1"} + end);
        QCOMPARE(typed.out, alone.out);
        QCOMPARE(picture(program, "typed.svg"), picture(program, "saved.svg"));
        QVERIFY(picture(program, "saved.svg").contains("SnapKV"));
        FigureRequest figure;
        figure.viewId = "token_profile";
        figure.width = 900, figure.height = 700;
        figure.outPath = "again.svg";
        QStringList words = QProcess::splitCommand(QString::fromStdString(plotCommand(session, figure)));
        QCOMPARE(words.takeFirst(), "kvscope");
        done(program, words);
        QCOMPARE(picture(program, "again.svg"), picture(program, "saved.svg"));
        QVERIFY(done(program, head + QStringList{"keydiff@0.25"} + end).out != alone.out);
        QVERIFY(program.run(head + QStringList{"keydiff@0.25", "--active", "1"} + end).error.contains("--active"));
    }

    // Fast results differ from exact ones, so what a session or a command says of the arithmetic must hold.
    void theSessionsArithmeticIsUsedAndNamed() {
        const Program program;
        Session session = twoPanes();
        session.arithmetic = Arithmetic::Fast;
        writeSession(program.at("fast.kvscope").toStdString(), session);
        done(program, {"report", "fast.kvscope", "--views", "token_profile", "--out", "fast.html"});
        QVERIFY(program.content("fast.html").contains("fast float"));
        QVERIFY(program.content("fast.html").contains("--arithmetic fast"));
        done(program,
             {"report", "fast.kvscope", "--views", "token_profile", "--arithmetic", "exact", "--out", "exact.html"});
        QVERIFY(program.content("exact.html").contains("exact index contract"));
        QVERIFY(!program.content("exact.html").contains("--arithmetic fast"));
        QVERIFY(evictCommand(session, 0, "list.json").find("--arithmetic fast") != std::string::npos);
        session.arithmetic = Arithmetic::Exact;
        QVERIFY(evictCommand(session, 0, "list.json").find("--arithmetic") == std::string::npos);
    }

    void aRecordedListIsDrawnAsItsPolicy_data() {
        QTest::addColumn<QString>("list");
        for (const char* kind : {"json", "csv", "h5"}) QTest::newRow(kind) << QString("list.%1").arg(kind);
    }

    void aRecordedListIsDrawnAsItsPolicy() {
        QFETCH(QString, list);
        const Program program;
        QCOMPARE(done(program, {"evict", kSample, "--policy", "snapkv@0.25", "--layers", "3", "--out", list}).code, 0);
        const QStringList head = {"plot", "token_strip", kSample, "--layer", "3", "--kv-head", "1"};
        const auto recorded = done(program, head + QStringList{"--selection", list, "--out", "recorded.svg"});
        const auto run = done(program, head + QStringList{"--policy", "snapkv@0.25", "--out", "run.svg"});
        QVERIFY(recorded.code == 0 && run.code == 0);
        const QRegularExpression counts("keeps \\d+ of \\d+ needle tokens at \\d+ tokens \\(\\S+ %\\)");
        QVERIFY2(counts.match(QString::fromUtf8(run.out)).hasMatch(), run.out);
        QCOMPARE(counts.match(QString::fromUtf8(recorded.out)).captured(),
                 counts.match(QString::fromUtf8(run.out)).captured());
    }

    void panesStandInTheOrderOfTheCommandLine() {
        const Program program;
        done(program, {"evict", kSample, "--policy", "snapkv@0.25", "--layers", "3", "--out", "list.json"});
        const QStringList head = {"plot", "token_profile", kSample, "--layer", "3",    "--kv-head",
                                  "1",    "--select",      "none",  "--out",   "x.svg"};
        const auto list = done(program, head + QStringList{"--selection", "list.json"}),
                   keydiff = done(program, head + QStringList{"--policy", "keydiff@0.1"}),
                   norm = done(program, head + QStringList{"--policy", "key_norm@0.1"});
        QVERIFY(list.out != keydiff.out && keydiff.out != norm.out);
        const QStringList mixed = {"--policy", "keydiff@0.1", "--selection", "list.json", "--policy", "key_norm@0.1"};
        QCOMPARE(done(program, head + mixed).out, keydiff.out);
        QCOMPARE(done(program, head + mixed + QStringList{"--active", "1"}).out, list.out);
        QCOMPARE(done(program, head + mixed + QStringList{"--active", "2"}).out, norm.out);
        const QStringList first = {"--selection", "list.json", "--policy", "keydiff@0.1", "key_norm@0.1"};
        QCOMPARE(done(program, head + first).out, list.out);
        QCOMPARE(done(program, head + first + QStringList{"--active", "2"}).out, norm.out);
    }

    // Written by hand, or for another capture: what is not there is refused, what merely does not fit is fitted.
    void sessionsThatDoNotFitTheCapture_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QJsonValue>("value");
        QTest::addColumn<QString>("says"); // empty: drawn
        QTest::newRow("no panes") << "panes" << QJsonValue(QJsonArray()) << "no pane to draw";
        QTest::newRow("KV head behind the last") << "kv_head" << QJsonValue(50) << "no KV head 50";
        QTest::newRow("KV head before the first") << "kv_head" << QJsonValue(-3) << "no KV head -3";
        QTest::newRow("KV head that wraps round") << "kv_head" << QJsonValue(4294967297.0) << "no KV head";
        QTest::newRow("layer") << "layer" << QJsonValue(77) << "no layer 77";
        QTest::newRow("query head behind the last") << "query_head" << QJsonValue(5000) << "";
        QTest::newRow("query head before the first") << "query_head" << QJsonValue(-2) << "";
        QTest::newRow("query head of another group") << "query_head" << QJsonValue(0) << "";
        QTest::newRow("tokens behind the last") << "selected" << QJsonValue(QJsonArray{QJsonArray{9000, 9010}}) << "";
        QTest::newRow("active pane") << "active_pane" << QJsonValue(7) << "";
    }

    void sessionsThatDoNotFitTheCapture() {
        QFETCH(QString, key);
        QFETCH(QJsonValue, value);
        QFETCH(QString, says);
        const Program program;
        writeSession(program.at("two.kvscope").toStdString(), twoPanes());
        QJsonObject json = QJsonDocument::fromJson(program.content("two.kvscope")).object();
        json[key] = value;
        QFile file(program.at("odd.kvscope"));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(QJsonDocument(json).toJson()) > 0);
        file.close();
        for (const char* view : {"key_projection", "token_strip", "attention_map", "overlap"}) {
            const auto outcome =
                program.run({"plot", view, "--session", "odd.kvscope", "--size", "300x200", "--out", "x.svg"});
            QVERIFY2(outcome.code == (says.isEmpty() ? 0 : 2) && outcome.error.contains(says.toUtf8()),
                     view + (": " + outcome.error));
        }
        QCOMPARE(program.written().contains("x.svg"), says.isEmpty());
    }

    void whatIsGivenReplacesTheSessions() {
        const Program program;
        Session session = twoPanes();
        session.activePane = 0;
        writeSession(program.at("two.kvscope").toStdString(), session);
        const QStringList more = {"--policy", "h2o@0.1", "--policy", "balancekv", "--retention",
                                  "0.2",      "--cut",   "900",      "--seed",    "3"};
        const QStringList saved = {"plot", "token_profile", "--session", "two.kvscope", "--out", "saved.svg"};
        const QStringList typed = {"plot", "token_profile", kSample, "--layer", "3",    "--kv-head",
                                   "1",    "--select",      "none",  "--out",   "x.svg"};
        for (int active = 0; active < 2; ++active) {
            const QStringList shown = {"--active", QString::number(active)};
            QCOMPARE(done(program, saved + more + shown).out, done(program, typed + more + shown).out);
            QCOMPARE(picture(program, "saved.svg"), picture(program, "x.svg"));
        }
    }

    void aSessionHasACaptureOfItsOwn() {
        const Program program;
        writeSession(program.at("two.kvscope").toStdString(), twoPanes());
        const auto budget =
            program.run({"plot", "overlap", "--session", "two.kvscope", "--retention", "0.5", "--out", "x.svg"});
        QVERIFY2(budget.code == 2 && budget.error.contains("--retention"), budget.error);
        const auto capture = program.run({"plot", "overlap", kSample, "--session", "two.kvscope", "--out", "x.svg"});
        QVERIFY2(capture.code == 2 && capture.error.contains("needle-1k.h5"), capture.error);
        QCOMPARE(program.written(), QStringList{"two.kvscope"});
    }

    void mistakesAreNamed() {
        const Program program;
        writeSession(program.at("two.kvscope").toStdString(), twoPanes());
        QVERIFY(program.run({"plot", "--session", "two.kvscope", "--pane", "2", "--out", "x.svg"})
                    .error.contains("--pane"));
        QVERIFY(program.run({"plot", "--session", "none.kvscope", "--out", "x.svg"}).error.contains("none.kvscope"));
        done(program, {"evict", kSample, "--policy", "snapkv@0.25", "--layers", "0", "--out", "list.json"});
        const auto other =
            program.run({"plot", "token_strip", kSample, "--layer", "3", "--selection", "list.json", "--out", "x.svg"});
        QVERIFY2(other.code == 2 && other.error.contains("layer 3"), other.error);
        for (const auto& [option, value] : {std::pair{"--range", "0,inf,0,1"}, std::pair{"--range", "0,1,0"},
                                            std::pair{"--cursor", "-1"}, std::pair{"--cursor", "99999"}}) {
            const auto refused = program.run(
                {"plot", "token_strip", kSample, "--policy", "keydiff@0.1", option, value, "--out", "x.svg"});
            QVERIFY2(refused.code == 2 && refused.error.contains(option), refused.error);
        }
        QVERIFY(!program.written().contains("x.svg"));
    }
};

KVSCOPE_CORE_TEST(PlotSourcesTest)
#include "plot_sources_test.moc"
