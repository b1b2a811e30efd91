// The page as its readers get it: well formed, whole, escaped, the same for the same session, and made by the program.
#include <QDir>
#include <QFile>
#include <QGuiApplication>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>

#include "app/report/html.h"
#include "app/report/report.h"
#include "app/study/session_file.h"
#include "core/capture/open_capture.h"
#include "core/capture/synthetic_capture.h"
#include "core/lists/selection_file.h"
#include "core/run/record_results.h"
#include "tests/app/program.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/run_request.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <filesystem>
#include <set>

using namespace kvscope;

namespace {

const std::string kSample = kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5";

const LayerRunner& runner() {
    static const LayerRunner shared = testing::cpuRunner(2);
    return shared;
}

std::shared_ptr<const CaptureReader> sample() {
    static const auto capture = openCapture(kSample);
    return capture;
}

/// What a policy does on the session's layer.
std::shared_ptr<const RunResult> resultOf(const std::shared_ptr<const CaptureReader>& capture, const Session& session,
                                          const std::string& spec) {
    RunRequest request = runRequest(capture, spec, "default", session.budget.text());
    request.layer = session.layer;
    return runner().run(request, {});
}

QString pageOf(const Session& session, std::vector<std::string> views, const std::string& command = {}) {
    return QString::fromStdString(reportPage(session, sample(), runner(), {std::move(views), command}, {}));
}

/// Void elements closed, so that an XML reader can walk the page.
QString asXml(QString page) {
    page.remove("<!DOCTYPE html>\n");
    return page.replace(QRegularExpression("<meta ([^>]*)>"), "<meta \\1/>");
}

struct Walked {
    QString error;
    QStringList ids, images, headings;
    int tables = 0, tableCaptions = 0, captions = 0;
    bool loadsNothing = true;
};

Walked walk(const QString& page) {
    Walked walked;
    QXmlStreamReader reader(asXml(page));
    while (!reader.atEnd()) {
        if (reader.readNext() != QXmlStreamReader::StartElement) continue;
        const QString name = reader.name().toString();
        const auto attributes = reader.attributes();
        if (attributes.hasAttribute("id")) walked.ids << attributes.value("id").toString();
        if (name == "svg") walked.images << attributes.value("aria-label").toString();
        walked.tables += name == "table";
        walked.tableCaptions += name == "caption";
        walked.captions += name == "figcaption";
        if (QStringList({"h1", "h2", "h3"}).contains(name)) walked.headings << name;
        for (const auto& attribute : attributes)
            if (QStringList({"src", "href"}).contains(attribute.name().toString()))
                walked.loadsNothing &=
                    attribute.value().startsWith(u'#') || attribute.value().startsWith(QLatin1String("data:"));
        walked.loadsNothing &= name != "script" && name != "link" && name != "iframe";
    }
    if (reader.hasError()) walked.error = reader.errorString() + " at line " + QString::number(reader.lineNumber());
    return walked;
}

} // namespace

class ReportTest : public QObject {
    Q_OBJECT

private slots:
    void aPageHoldsFiguresMeasuresListsAndCommands() {
        const Session session = firstSession(*sample());
        const QString page = pageOf(session, {"key_projection", "attention_map", "overlap", "head_grid", "token_strip"},
                                    "kvscope report x");
        const Walked walked = walk(page);
        QVERIFY2(walked.error.isEmpty(), qPrintable(walked.error));
        QCOMPARE(walked.images.size(), 10); // light and dark
        QCOMPARE(walked.captions, 5);
        for (const QString& label : walked.images)
            QVERIFY(label.size() > 20); // the finding, for those who do not see the picture
        QCOMPARE(walked.tables, walked.tableCaptions);
        QVERIFY(walked.tables >= 5);
        QVERIFY(walked.loadsNothing);
        QCOMPARE(walked.headings.count("h1"), 1);
        QCOMPARE(static_cast<std::size_t>(walked.ids.size()),
                 std::set<QString>(walked.ids.begin(), walked.ids.end()).size());
        for (const char* part : {"kvscope plot key_projection needle-1k.h5", "kvscope evict needle-1k.h5",
                                 "kvscope report x", "611-626", "end of context"})
            QVERIFY2(page.contains(part), part);
        QVERIFY(!page.contains(kvscope::testing::sourceDir().c_str())); // nobody's folders
        QCOMPARE(pageOf(session, {"overlap"}), pageOf(session, {"overlap"}));
    }

    // Also where no figure says it.
    void thePageSaysHowItsNumbersWereMade() {
        Session session = firstSession(*sample());
        session.panes = {{PolicySpec::parse("keydiff"), {}, {}}};
        const QString plain = pageOf(session, {"two_captures"});
        QVERIFY(plain.contains("the queries after them evaluate") && !plain.contains("simulated"));
        session.panes = {{PolicySpec::parse("keydiff,prompt_block=128"), {}, {}}};
        session.cut = "none";
        const QString page = pageOf(session, {"two_captures"});
        QVERIFY(page.contains("the last queries, which they see too, evaluate"));
        QVERIFY(page.contains(": simulated on full-attention tensors</li>"));
    }

    void keptListsAreTheResultsOwn() {
        Session session = firstSession(*sample());
        session.panes = {{PolicySpec::parse("keydiff"), {}, {}}};
        const QString page = pageOf(session, {"overlap"});
        const auto result = resultOf(sample(), session, "keydiff");
        for (const HeadSelection& head : result->selection.heads) {
            const auto match =
                QRegularExpression(QString("\\(%1\\)</dt><dd>([^<]*)<").arg(head.kept.size())).globalMatch(page);
            std::vector<std::vector<TokenIndex>> lists;
            for (auto hits = match; hits.hasNext();) {
                lists.emplace_back();
                for (const QString& run : hits.next().captured(1).split(',')) {
                    const QStringList ends = run.split('-');
                    for (int token = ends.first().toInt(); token <= ends.last().toInt(); ++token)
                        lists.back().push_back(token);
                }
            }
            QVERIFY(std::find(lists.begin(), lists.end(), head.kept) != lists.end());
        }
        QVERIFY(page.contains("249"));
    }

    void aViewWithNothingToShowIsNamedWithItsReason() {
        Session session = firstSession(*sample());
        session.panes.resize(1);
        const QString page = pageOf(session, {"block_timeline", "overlap"});
        const QString rest = page.mid(page.indexOf("Not shown"));
        QVERIFY(page.contains("Not shown") && rest.contains("Block timeline") && rest.contains("Set its prompt block"));
        QVERIFY(!page.contains("id=\"block_timeline\""));
    }

    void aSessionsCursorAndRangeAreInTheFigures() {
        Session session = firstSession(*sample());
        session.panes = {{PolicySpec::parse("keydiff,prompt_block=128"), {}, {}}};
        session.look.cursor = 384;
        const QString page = pageOf(session, {"block_timeline"});
        QVERIFY(page.contains("not read yet") && page.contains("--cursor 384"));
    }

    void helpPagesKeepTheirListsAndListings() {
        QCOMPARE(markdownToHtml("Text\n\n- one\n- *two*\n\n```\na < b\n```\n"),
                 std::string("<p>Text</p>\n<ul>\n<li>one</li>\n<li><em>two</em></li>\n</ul>\n"
                             "<pre><code>a &lt; b\n</code></pre>\n"));
        const QString lists = pageOf(firstSession(*sample()), {"geometry"});
        QVERIFY(lists.contains(QRegularExpression("<ul>\\s*<li><em>log det of kept keys</em>")));
        Session session = firstSession(*sample());
        session.panes = {{PolicySpec::parse("balancekv,sink=4,recent=16"), {}, {}}};
        const QString listing = pageOf(session, {"walk"});
        const qsizetype help = listing.indexOf("How to read it");
        QVERIFY(help > 0 && listing.indexOf("<pre><code>", help) < listing.indexOf("</details>", help));
        QVERIFY2(walk(lists).error.isEmpty() && walk(listing).error.isEmpty(), qPrintable(walk(listing).error));
    }

    void textIsEscaped() {
        QCOMPARE(escapeHtml("<b>&\"'\x01\n"), std::string("&lt;b&gt;&amp;&quot;&#39;\\x01\n"));
        QCOMPARE(markdownToHtml("**a<b** and `x`\n\nnext * one"),
                 std::string("<p><strong>a&lt;b</strong> and <code>x</code></p>\n<p>next * one</p>\n"));
        const std::string table = htmlTable("<c>", {"<h>", "b"}, 1, [](std::int64_t, int) { return "</td><script>"; });
        QVERIFY(table.find("<script>") == std::string::npos && table.find("<c>") == std::string::npos &&
                table.find("<h>") == std::string::npos);
        Session session = firstSession(*sample());
        session.selectionName = "</dt><script>alert(1)</script>";
        const QString page = pageOf(session, {"overlap"}, "kvscope report '<script>'");
        QVERIFY(!page.contains("<script>"));
        QVERIFY2(walk(page).error.isEmpty(), qPrintable(walk(page).error));
    }

    void tokensOfEveryKindSurvive() {
        // Tokens hold line breaks, quotes and parts of UTF-8 sequences: the lists and the text figure show them.
        Session session = firstSession(*sample());
        session.budget = {Budget::Unit::Fraction, 1};
        const Walked walked = walk(pageOf(session, {"token_strip"}));
        QVERIFY2(walked.error.isEmpty(), qPrintable(walked.error));
    }

    // A list of some heads says nothing about the others, not that they keep no token.
    void headsThatAListLeavesOutAreNamed() {
        QTemporaryDir temporary;
        const std::string path = temporary.path().toStdString() + "/l.json";
        Session session = firstSession(*sample());
        const std::vector results = {resultOf(sample(), session, "keydiff")};
        RecordFilter one;
        one.kvHeads = {session.kvHead.value};
        writeSelection(path, recordSelection(results, one), sample()->tokens());
        session.panes = {{{}, path, {}}};
        const QString page = pageOf(session, {"overlap"});
        QVERIFY(page.contains(QString("<dt>KV head %1 (").arg(session.kvHead.value)));
        QVERIFY(page.contains("<dt>KV head 0</dt><dd>left out by the list</dd>") && !page.contains(" (0)</dt>"));
    }

    // Files of one name in two folders stay two files.
    void pathsAreThoseFromTheFolderOfTheCapture() {
        QTemporaryDir temporary;
        const std::string root = temporary.path().toStdString();
        const SyntheticSpec spec{.tokens = 300, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16};
        for (const char* folder : {"/pa", "/pb"}) {
            std::filesystem::create_directories(root + folder);
            writeSyntheticCapture(spec, root + folder + "/c.h5", 0, false, {});
        }
        const auto capture = openCapture(root + "/pa/c.h5");
        Session session = firstSession(*capture);
        session.panes = {{PolicySpec::parse("keydiff@0.25"), {}, {}}};
        const std::vector results = {resultOf(capture, session, "keydiff@0.25")};
        for (const char* folder : {"/pa", "/pb"}) {
            writeSelection(root + folder + "/l.json", recordSelection(results, {}), capture->tokens());
            session.panes.push_back({{}, root + folder + "/l.json", {}});
        }
        const auto page = [&](const std::vector<std::string>& views) {
            return QString::fromStdString(reportPage(session, capture, runner(), {views, {}}, {}));
        };
        const QString lists = page({"overlap"});
        QVERIFY(lists.contains("kvscope plot overlap c.h5 "));
        QVERIFY(lists.contains("--selection l.json --selection ../pb/l.json "));
        QVERIFY(lists.contains("<code>l.json</code>") && lists.contains("<code>../pb/l.json</code>"));
        session.panes.resize(1);
        session.compared.path = root + "/pb/c.h5";
        const QString both = page({"two_captures", "token_strip"});
        QVERIFY(both.contains("--compare-with ../pb/c.h5 "));
        QVERIFY(both.contains("kvscope plot token_strip c.h5 ") &&
                both.contains("kvscope plot token_strip ../pb/c.h5 "));
        for (const QString& one : {lists, both}) QVERIFY(!one.contains(temporary.path())); // nobody's folders
    }

    void theProgramWritesFilesAndFolders() {
        const testing::Program program;
        const auto report = [&](const QStringList& more) { return program.run(QStringList{"report"} + more); };
        const QString capture = QString::fromStdString(kSample);
        QCOMPARE(report({capture, "--views", "overlap", "--out", "page.html"}).code, 0);
        const QString written = QString::fromUtf8(program.content("page.html"));
        QVERIFY2(walk(written).error.isEmpty() && !written.isEmpty(), qPrintable(walk(written).error));
        QCOMPARE(report({capture, "--views", "overlap", "--out", "some/folder"}).code, 0);
        QVERIFY(QFile::exists(program.at("some/folder/index.html")));
        QVERIFY(QFile::copy(capture, program.at("-dash.h5"))); // its commands must not take it for an option
        QCOMPARE(report({"./-dash.h5", "--views", "overlap", "--out", "dash.html"}).code, 0);
        const QByteArray page = program.content("dash.html");
        QVERIFY(page.contains("overlap ./-dash.h5 ") && !page.contains("overlap -dash.h5"));
        writeSession(program.at("s.kvscope").toStdString(), firstSession(*sample()));
        QCOMPARE(report({"s.kvscope", "--views", "overlap,curves", "--layer", "1", "--out", "s.html"}).code, 0);

        // Mistakes: exit code 2, one sentence, and nothing written.
        const auto all = QDir::AllEntries | QDir::NoDotAndDotDot;
        const QStringList before = QDir(program.at(".")).entryList(all);
        for (const QStringList& wrong :
             {QStringList{capture, "--views", "overlop", "--out", "new/deep"},
              QStringList{capture, "--layer", "77", "--out", "new.html"},
              QStringList{"nowhere.h5", "--out", "new.html"}, QStringList{capture, "--out", "nowhere/deep/new.html"},
              QStringList{capture, "--policy", "keydiff", "--out", "new.html"}}) {
            const auto refused = report(wrong);
            QVERIFY2(refused.code == 2 && refused.error.count('\n') == 1, wrong.join(' ').toUtf8() + refused.error);
        }
        QCOMPARE(QDir(program.at(".")).entryList(all), before);
    }
};

KVSCOPE_OFFSCREEN_TEST(ReportTest)
#include "report_test.moc"
