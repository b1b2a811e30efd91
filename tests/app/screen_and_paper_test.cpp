// One session, one picture: what the window draws, what the command in a figure's metadata draws and what stands in the
// report are the same file, byte for byte. The window's side goes through the workbench, the command is parsed and run.
#include "app/command_line/command_line.h"
#include "app/export/scene_export.h"
#include "app/lessons/lesson.h"
#include "app/report/headless.h"
#include "app/report/report.h"
#include "app/study/session_file.h"
#include "app/text/qt_text_service.h"
#include "app/workbench/second_workbench.h"
#include "core/capture/synthetic_capture.h"
#include "core/run/record_results.h"
#include "tests/app/manual_workbench.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <map>

using namespace kvscope;
using kvscope::testing::ManualExecutor;

namespace {

/// Two panes of which the second is the subject: as it is, and with one parameter changed.
struct Subject {
    std::string plain = "keydiff@0.2", edited = "keydiff,protect_first=2@0.2";
};

/// Views of one policy's steps need that policy.
Subject subjectFor(const std::string& view) {
    static const std::map<std::string, Subject> own = {
        {"merge_tree", {"balancekv_stream@0.25", "balancekv_stream,batch=32@0.25"}},
        {"walk", {"balancekv@0.25", "balancekv,temp=0.5@0.25"}},
        {"clustering", {"subgen@0.25", "subgen,delta_quantile=0.3@0.25"}},
        {"leverage", {"leverage@0.25", "leverage,sketch=none@0.25"}},
        {"score_plane", {"compactor@0.25", "compactor,lambda=0.5@0.25"}},
        {"block_timeline", {"keydiff,prompt_block=64@0.25", "keydiff,prompt_block=64,protect_first=2@0.25"}},
    };
    const auto found = own.find(view);
    return found == own.end() ? Subject{} : found->second;
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// The words of a command line as a shell takes them apart.
std::vector<std::string> wordsOf(const std::string& line) {
    std::vector<std::string> words;
    bool inside = false, quoted = false;
    for (const char c : line) {
        if (c == '\'') quoted = !quoted;
        if (c == ' ' && !quoted) {
            inside = false;
            continue;
        }
        if (!std::exchange(inside, true)) words.emplace_back();
        if (c != '\'') words.back() += c;
    }
    return words;
}

int runWords(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    WindowRequest window;
    return runCommandLine(static_cast<int>(arguments.size()), arguments.data(), window).value_or(-1);
}

/// Empty, or the first line in which two figures differ.
QByteArray difference(const QByteArray& screen, const QByteArray& paper) {
    if (screen == paper && screen.size() > 500) return {};
    const QList<QByteArray> left = screen.split('\n'), right = paper.split('\n');
    for (qsizetype i = 0; i < std::max(left.size(), right.size()); ++i)
        if (left.value(i) != right.value(i))
            return "line " + QByteArray::number(i + 1) + "\nscreen: " + left.value(i).left(600) +
                   "\npaper:  " + right.value(i).left(600);
    return "no figure";
}

} // namespace

class ScreenAndPaperTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    QtTextService m_text;
    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }

    /// The list of a policy as a file, made with a cut of its own.
    std::string recorded(const Workbench& bench, const std::string& policy, const std::string& cut) const {
        Session session = bench.session();
        RunRequest run = runRequest(bench.capture(), policy, cut);
        run.policy.budget.reset();
        run.layer = session.layer;
        const auto result = bench.runner().run(run, {});
        RecordFilter filter;
        filter.withScores = true;
        const std::string path = at("list.json");
        writeSelection(path, recordSelection(std::span(&result, 1), filter), bench.capture()->tokens());
        return path;
    }

    /// What the window shows of the view, as a figure, and what the command of that figure draws.
    QByteArray compare(Workbench& bench, ManualExecutor& executor, const View& view) {
        FigureRequest figure;
        figure.viewId = view.card().id;
        figure.width = 640, figure.height = 420, figure.scale = 2, figure.theme = "paper";
        if (view.card().perPane) figure.pane = static_cast<std::size_t>(bench.session().activePane);
        figure.outPath = at("paper.svg");
        bench.showView(view);
        bench.setFrame(view, 1280, 840);
        executor.runAll();
        const ViewInput input = bench.viewInput(view);
        bench.hideView(view);
        const std::string command = plotCommand(bench.session(), figure);
        QFile::remove(m_folder.filePath("paper.svg"));
        if (!input.data.error.empty()) { // a reason on the screen is an error of the command, without a file
            const bool refused = runWords(wordsOf(command)) == 2 && !QFile::exists(m_folder.filePath("paper.svg"));
            return refused ? QByteArray()
                           : "the window refuses, the command does not: " + QByteArray::fromStdString(input.data.error);
        }
        const SessionFigure screen = drawFigure(bench.session(), figure, input, m_text);
        exportScene(screen.scene, at("screen.svg"), {.scale = 2, .command = command, .title = screen.title});
        if (runWords(wordsOf(command)) != 0) return "refused: " + QByteArray::fromStdString(command);
        return difference(contentOf(m_folder.filePath("screen.svg")), contentOf(m_folder.filePath("paper.svg")));
    }

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        writeSyntheticCapture({.tokens = 320, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16}, at("made.h5"),
                              0, false, {});
        writeSyntheticCapture({.tokens = 400, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16, .seed = 9},
                              at("other.h5"), 0, false, {});
    }

    void everyViewOfEveryKindOfPane_data() {
        QTest::addColumn<QString>("view");
        QTest::addColumn<QString>("kind");
        for (const View* view : allViews())
            for (const char* kind : {"plain", "edited", "recorded", "recorded with another cut"}) {
                const QString id = QString::fromStdString(view->card().id);
                QTest::newRow(qPrintable(id + ", " + kind)) << id << kind;
            }
    }

    void everyViewOfEveryKindOfPane() {
        QFETCH(QString, view);
        QFETCH(QString, kind);
        const View& drawn = viewById(view.toStdString());
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        bench->openCapture(at("made.h5"));
        executor.runAll();
        QVERIFY(bench->capture());
        const Subject subject = subjectFor(view.toStdString());
        SessionPane pane{PolicySpec::parse(kind == "edited" ? subject.edited : subject.plain), {}, {}};
        if (kind.startsWith("recorded"))
            pane = {{}, recorded(*bench, subject.plain, kind == "recorded" ? "default" : "last:100"), {}};
        bench->change(
            [&](Session& s) {
                s.panes = {{PolicySpec::parse(subject.plain), {}, {}}, pane};
                s.panesLinked = false;
                s.budget = {Budget::Unit::Fraction, 0.15};
                s.seed = 3;
                s.activePane = 1;
                s.look.stripTop = 20;
                s.look.ranges["key_projection"] = {-1.0 / 3, 2.5e-7, -0.1, 4};
            },
            "Set up");
        bench->setHovered(7);
        bench->setBrushing(true);
        executor.runAll();
        const PaneData shown = bench->viewInput().panes.at(1);
        QVERIFY2(shown.result, shown.error.c_str());
        const std::string id = PolicySpec::parse(subject.plain).policy;
        QCOMPARE(shown.policyId, id); // and so its colour
        QCOMPARE(shown.policyName.ends_with(" (recorded)"), kind.startsWith("recorded"));
        const bool plainIsEdited = subject.plain.find(',') != std::string::npos && !kind.startsWith("recorded");
        QCOMPARE(shown.variant.ends_with("edited"), kind == "edited" || plainIsEdited);
        QCOMPARE(shown.variant.find("cut 220") != std::string::npos, kind == "recorded with another cut");
        const QByteArray differs = compare(*bench, executor, drawn);
        QVERIFY2(differs.isEmpty(), differs);
    }

    // Of two captures the difference, and a picture of the second one.
    void twoCaptures() {
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        (void)bench->second();
        bench->openCapture(at("made.h5"));
        executor.runAll();
        bench->second().compareWith(at("other.h5"));
        executor.runAll();
        QVERIFY(bench->second().isOpen());
        bench->second().change([](Session& s) { select(s, {4, 5, 200}, "picked"); }, "Select");
        executor.runAll();
        for (const char* id : {"two_captures", "curves", "token_strip", "key_projection"}) {
            const QByteArray differs = compare(*bench, executor, viewById(id));
            QVERIFY2(differs.isEmpty(), (std::string(id) + ": ").c_str() + differs);
        }
        for (const char* id : {"curves", "token_strip", "key_projection", "head_grid"}) {
            const QByteArray differs = compare(bench->second(), executor, viewById(id));
            QVERIFY2(differs.isEmpty(), (std::string(id) + " of the second: ").c_str() + differs);
        }
        FigureRequest figure;
        figure.outPath = "x.svg";
        for (const char* id : {"two_captures", "curves"}) { // only a picture of both names both
            figure.viewId = id;
            const bool names = plotCommand(bench->session(), figure).find("--compare-with") != std::string::npos;
            QCOMPARE(names, figure.viewId == "two_captures");
        }
    }

    void lessonsBehindTheirStops_data() {
        QTest::addColumn<QString>("path");
        for (const LessonFile& file : lessonsIn(kvscope::testing::sourceDir() + "/resources/lessons"))
            QTest::newRow(file.lesson.title.c_str()) << QString::fromStdString(file.path);
    }

    void lessonsBehindTheirStops() {
        QFETCH(QString, path);
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        Session session = readSession(path.toStdString());
        const Lesson lesson = *lessonOf(session);
        bench->openSession(std::move(session));
        executor.runAll();
        QVERIFY(!lesson.stops.empty() && !lesson.views.empty());
        for (const LessonStop& stop : lesson.stops)
            bench->change([&](Session& s) { applySetting(s, stop.setting); }, "Stop");
        for (const std::string& id : lesson.views) {
            const QByteArray differs = compare(*bench, executor, viewById(id));
            QVERIFY2(differs.isEmpty(), (id + ": ").c_str() + differs);
        }
    }

    // The report's commands run in the folder of the capture and draw the figures above them.
    void theReportsFiguresAreThoseOfItsCommands() {
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        bench->openCapture(at("made.h5"));
        executor.runAll();
        const std::string list = recorded(*bench, "snapkv@0.2", "last:100");
        bench->change(
            [&](Session& s) {
                s.panes = {{PolicySpec::parse("keydiff,protect_first=2"), {}, {}}, {{}, list, {}}};
            },
            "Set up");
        const QString page = QString::fromStdString(
            reportPage(bench->session(), bench->capture(), bench->runner(),
                       {{"key_projection", "token_strip", "curves", "attention_map", "overlap"}, {}}, {}));
        const QString before = QDir::currentPath();
        QVERIFY(QDir::setCurrent(m_folder.path()));
        const auto inline_ = [](QString svg) { // without what only a file or only a page has
            svg.remove(0, svg.indexOf("<svg"));
            const auto dots = QRegularExpression::DotMatchesEverythingOption;
            svg.remove(QRegularExpression(" role=\"img\" aria-label=\"[^\"]*\"|<title>.*?</title>|<desc>.*?</desc>|"
                                          "<style>.*?</style>|\\w+-light-(?=clip)",
                                          dots));
            return svg.replace(QRegularExpression("\\n+"), "\n").trimmed().toUtf8();
        };
        auto figures =
            QRegularExpression("<figure id=\"(\\w+)\">.*?(<svg.*?</svg>).*?<pre><code>(kvscope plot .*?)</code>",
                               QRegularExpression::DotMatchesEverythingOption)
                .globalMatch(page);
        int count = 0;
        for (; figures.hasNext(); ++count) {
            const auto figure = figures.next();
            QString command = figure.captured(3);
            command.replace("&#39;", "'").replace("&amp;", "&");
            QCOMPARE(runWords(wordsOf(command.toStdString())), 0);
            const QByteArray differs = difference(inline_(figure.captured(2)),
                                                  inline_(QString::fromUtf8(contentOf(figure.captured(1) + ".svg"))));
            QVERIFY2(differs.isEmpty(), figure.captured(1).toUtf8() + ": " + differs);
        }
        QDir::setCurrent(before);
        QCOMPARE(count, 5);
    }
};

KVSCOPE_OFFSCREEN_TEST(ScreenAndPaperTest)
#include "screen_and_paper_test.moc"
