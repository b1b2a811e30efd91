// Two captures in one session: what both share and what each has of its own, and that the difference is that of the
// results of either capture alone.
#include <QTest>

#include "app/study/compared_capture.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/write_aside.h"
#include "app/workbench/second_workbench.h"
#include "core/base/error.h"
#include "core/capture/h5_writer.h"
#include "core/capture/open_capture.h"
#include "core/capture/synthetic_capture.h"
#include "core/metrics/fidelity.h"
#include "tests/app/manual_workbench.h"
#include "tests/app/program.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"
#include "views/two_captures/two_captures_data.h"
#include "views/view.h"

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kvscope;
using kvscope::testing::ManualExecutor;
using kvscope::testing::manualWorkbench;

class ComparedCaptureTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }

    /// A workbench on a capture, compared with another one, with everything computed.
    std::unique_ptr<Workbench> comparing(ManualExecutor& executor, const char* other,
                                         const char* first = "first.h5") const {
        auto bench = manualWorkbench(executor);
        (void)bench->second();
        bench->showView(viewById("two_captures"));
        bench->openCapture(at(first));
        executor.runAll();
        bench->change(
            [](Session& s) {
                s.panes = {{PolicySpec::parse("keydiff"), {}, {}}, {PolicySpec::parse("snapkv"), {}, {}}};
                s.budget = {Budget::Unit::Fraction, 0.25};
            },
            "Set up");
        bench->second().compareWith(at(other));
        executor.runAll();
        return bench;
    }

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        SyntheticSpec spec{.tokens = 300, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16};
        const auto write = [&](const char* name) { writeSyntheticCapture(spec, at(name), 0, false, {}); };
        write("first.h5");
        write("same.h5");
        spec.tokens = 420, spec.seed = 5;
        write("longer.h5");
        spec.layers = 3;
        write("deeper.h5");
        spec.layers = 2, spec.queryHeads = 8;
        write("wider.h5");
    }

    void onlyPromptsOfOneModelAreCompared_data() {
        QTest::addColumn<QString>("other");
        QTest::addColumn<QStringList>("words");
        QTest::newRow("itself") << "first.h5" << QStringList{"open already"};
        QTest::newRow("layers") << "deeper.h5"
                                << QStringList{"first.h5 has layers 0, 1,", "deeper.h5 has layers 0, 1, 2"};
        QTest::newRow("heads") << "wider.h5" << QStringList{"4 query heads", "8 query heads"};
    }
    void onlyPromptsOfOneModelAreCompared() {
        QFETCH(QString, other);
        QFETCH(QStringList, words);
        const auto first = openCapture(at("first.h5"));
        const auto second = openCapture(at(other.toUtf8()));
        const std::string message = errorMessage([&] { checkComparable(*first, *second); });
        for (const QString& word : words) QVERIFY2(QString::fromStdString(message).contains(word), message.c_str());
        checkComparable(*first, *openCapture(at("longer.h5"))); // lengths may differ
        // In a window: one message, and nothing is compared.
        ManualExecutor executor;
        const auto bench = manualWorkbench(executor);
        bench->openCapture(at("first.h5"));
        executor.runAll();
        QSignalSpy failed(bench.get(), &Workbench::failed);
        const Session before = bench->session();
        bench->second().compareWith(at(other.toUtf8()));
        executor.runAll();
        QCOMPARE(failed.size(), 1);
        QVERIFY(!bench->second().isOpen());
        QVERIFY(bench->session() == before);
    }

    void settingsAreSharedAndTokensAreNot() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        SecondWorkbench& second = bench->second();
        QVERIFY(second.isOpen());
        bench->change([](Session& s) { select(s, {250, 251}, "here"); }, "Select");
        QCOMPARE(second.session().selectionName, std::string("needle")); // its own
        second.change([](Session& s) { select(s, {350}, "there"); }, "Select");
        QCOMPARE(bench->session().selectionName, std::string("here"));
        QCOMPARE(bench->session().compared.selected, std::vector<TokenIndex>{350});
        QCOMPARE(second.session().selectionName, std::string("there"));
        second.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        QCOMPARE(bench->session().budget.value, 0.5);
        bench->change([](Session& s) { s.layer = LayerIndex(0), s.activePane = 1; }, "Layer");
        QCOMPARE(second.session().layer, LayerIndex(0));
        QCOMPARE(second.session().activePane, 1);
        executor.runAll();
        const auto kept = [](const Workbench& shown) {
            const auto result = shown.viewInput().panes.at(1).result;
            return result ? result->requested * 1000 + result->visible : -1;
        };
        QCOMPARE(kept(*bench) / 1000, (kept(*bench) % 1000 + 1) / 2); // half of its own tokens
        QCOMPARE(kept(second) / 1000, (kept(second) % 1000 + 1) / 2);
        QVERIFY(kept(second) > kept(*bench) && kept(*bench) > 0);
        // Zoom and scroll belong to one capture, and are no steps.
        const std::string undo = bench->history().undoLabel();
        second.setRange(viewById("curves"), Viewport::Range{0, 0.5, 0, 1});
        QVERIFY(bench->session().look.ranges.empty());
        QCOMPARE(bench->session().look.comparedRanges.size(), std::size_t{1});
        QCOMPARE(bench->history().undoLabel(), undo);
        bench->setCursor(400);
        QCOMPARE(*second.session().look.cursor, *bench->session().look.cursor);
    }

    void undoClosesAndOpensTheSecondCapture() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        QCOMPARE(bench->history().undoLabel(), std::string("Compare with longer.h5"));
        bench->undo();
        executor.runAll();
        QVERIFY(!bench->second().isOpen() && bench->capture());
        bench->redo();
        executor.runAll();
        QVERIFY(bench->second().isOpen());
        bench->second().stopComparing();
        executor.runAll();
        QVERIFY(!bench->second().isOpen());
        QVERIFY(bench->second().viewInput().panes.empty());
        QVERIFY(bench->session().compared == ComparedCapture{});
        // Another capture closes the comparison, and says so.
        bench->undo();
        executor.runAll();
        QSignalSpy carried(bench.get(), &Workbench::carriedOver);
        bench->openCapture(at("same.h5"));
        executor.runAll();
        QVERIFY(!bench->second().isOpen());
        QCOMPARE(carried.size(), 1);
    }

    void aMissingSecondCaptureIsSaidOnce() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        QSignalSpy failed(bench.get(), &Workbench::failed);
        bench->change([&](Session& s) { s.compared.path = at("nowhere.h5"); }, "Gone");
        executor.runAll();
        bench->change([](Session& s) { s.seed = 7; }, "Seed");
        executor.runAll();
        QCOMPARE(failed.size(), 1);
        QVERIFY(!bench->second().isOpen());
        QVERIFY(!bench->viewInput(viewById("two_captures")).data.error.empty());
    }

    void aSecondCaptureThatWasMissingIsComparedWithLater() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        bench->change([&](Session& s) { s.compared.path = at("late.h5"); }, "Not yet there");
        executor.runAll();
        QVERIFY(!bench->second().isOpen());
        QVERIFY(QFile::copy(QString::fromStdString(at("longer.h5")), QString::fromStdString(at("late.h5"))));
        bench->second().compareWith(at("late.h5"));
        executor.runAll();
        QVERIFY(bench->second().isOpen());
        QCOMPARE(bench->second().capture()->info().fileName, std::string("late.h5"));
    }

    /// Its path is the same, its heads need not be.
    void aReloadedFirstCaptureIsCheckedAgain() {
        const auto write = [&](const char* what) {
            const QString mine = QString::fromStdString(at("mine.h5"));
            QFile::remove(mine);
            QVERIFY(QFile::copy(QString::fromStdString(at(what)), mine));
        };
        write("first.h5");
        bool isUnchecked = false;
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5", "mine.h5");
        QVERIFY(bench->second().isOpen());
        connect(bench.get(), &Workbench::captureChanged, this, [&] {
            const auto request = bench->request();
            isUnchecked = isUnchecked || (request && request->compared);
        });
        QSignalSpy failed(bench.get(), &Workbench::failed);
        write("wider.h5");
        bench->reload();
        executor.runAll();
        QCOMPARE(bench->capture()->info().numQueryHeads, 8);
        QVERIFY(!isUnchecked && !bench->second().isOpen());
        QCOMPARE(failed.size(), 1);
        QVERIFY2(failed[0][0].toString().contains("8 query heads"), qPrintable(failed[0][0].toString()));
        write("first.h5");
        bench->reload();
        executor.runAll();
        QVERIFY(!isUnchecked && bench->second().isOpen());
        QCOMPARE(failed.size(), 1);
        QVERIFY(dataAs<TwoCapturesData>(bench->viewInput(viewById("two_captures"))));
    }

    /// A canvas that shows the second capture takes a step back as one that shows the first.
    void undoOfTheSecondCaptureIsThatOfTheSession() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        Workbench& shown = bench->second();
        shown.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        shown.undo();
        QCOMPARE(bench->session().budget.value, 0.25);
        shown.redo();
        QCOMPARE(bench->session().budget.value, 0.5);
    }

    // The oracle is the result of each capture alone.
    void theDifferenceIsThatOfTheTwoResults() {
        for (const char* other : {"longer.h5", "same.h5"}) {
            ManualExecutor executor;
            const auto bench = comparing(executor, other);
            const auto data = dataAs<TwoCapturesData>(bench->viewInput(viewById("two_captures")));
            QVERIFY2(data, bench->viewInput(viewById("two_captures")).data.error.c_str());
            QCOMPARE(data->panes.size(), std::size_t{2});
            const ViewInput first = bench->viewInput(), second = bench->second().viewInput();
            for (std::size_t p = 0; p < 2; ++p) {
                const TwoCapturesData::Pane& pane = data->panes[p];
                const RunResult &a = *first.panes[p].result, &b = *second.panes[p].result;
                QCOMPARE(pane.heads.size(), std::size_t{4});
                double sumA = 0, sumB = 0;
                for (std::size_t head = 0; head < 4; ++head) {
                    QCOMPARE(pane.heads[head].first, a.fidelity->meanOutputError[head]);
                    QCOMPARE(pane.heads[head].second, b.fidelity->meanOutputError[head]);
                    if (static_cast<int>(head) / 2 != bench->session().kvHead.value)
                        continue; // two query heads a group
                    sumA += a.fidelity->meanOutputError[head], sumB += b.fidelity->meanOutputError[head];
                }
                QVERIFY(std::abs(pane.first - sumA / 2) < 1e-12 && std::abs(pane.second - sumB / 2) < 1e-12);
                const auto keptOf = [&](const RunResult& result) {
                    return static_cast<double>(result.selection.heads[bench->session().kvHead.value].kept.size());
                };
                QCOMPARE(pane.keptFirst, keptOf(a));
                QCOMPARE(pane.keptSecond, keptOf(b));
                if (std::string(other) == "same.h5") QCOMPARE(pane.second - pane.first, 0.0);
            }
        }
    }

    // They are numbers without tokens: nothing else would tell that they are another prompt's.
    void importedScoresBelongToOneCapture() {
        std::vector<float> numbers(2 * 2 * 300);
        std::iota(numbers.begin(), numbers.end(), 0.0f);
        h5::Writer scores(at("scores.h5"));
        scores.put("x", std::span<const float>(numbers), {2, 2, 300});
        scores.close();
        const std::string imported = "imported,file=" + at("scores.h5") + ":/x@0.5";
        const testing::Program program;
        const auto path = [&](const char* name) { return QString::fromStdString(at(name)); };
        const QStringList run = {"--policy", QString::fromStdString(imported), "--out"};
        for (const QStringList& command :
             {QStringList{"sweep", path("first.h5"), path("same.h5")} + run + QStringList{"t.csv"},
              QStringList{"measure", path("first.h5"), "--compare-with", path("same.h5")} + run + QStringList{"t.csv"},
              QStringList{"calibrate", path("first.h5"), path("same.h5"), "--proxy", "--policy",
                          QString::fromStdString(imported).remove("@0.5"), "--out", "t.csv"},
              QStringList{"plot", "token_strip", path("first.h5"), "--compare-with", path("same.h5")} + run +
                  QStringList{"t.svg"},
              QStringList{"report", path("first.h5"), "--views", "curves", "--compare-with", path("same.h5")} + run +
                  QStringList{"t.html"}}) {
            const testing::Program::Outcome outcome = program.run(command);
            QVERIFY2(outcome.code == 2, qPrintable(command.join(' ')));
            QVERIFY2(outcome.error.contains("belong"), outcome.error);
            QCOMPARE(program.written(), QStringList());
        }
        QCOMPARE(program.run(QStringList{"measure", path("first.h5")} + run + QStringList{"t.csv"}).code, 0);
        // In a window the pane of the first capture goes on.
        ManualExecutor executor;
        const auto bench = comparing(executor, "same.h5");
        bench->change([&](Session& s) { s.panes[0].policy = PolicySpec::parse(imported); }, "Import");
        executor.runAll();
        QVERIFY(bench->viewInput().panes.at(0).result);
        QVERIFY(!bench->second().viewInput().panes.at(0).result);
        QVERIFY(bench->second().viewInput().panes.at(1).result);
        const auto data = dataAs<TwoCapturesData>(bench->viewInput(viewById("two_captures")));
        QVERIFY(data && data->panes[0].refusal.find("imported scores") == 0 && data->panes[1].refusal.empty());
        // Another capture has none of them, and that is said.
        const CarriedSession carried = carriedTo(*openCapture(at("same.h5")), bench->session());
        QCOMPARE(carried.session.panes.size(), std::size_t{1});
        QCOMPARE(carried.session.panes[0].policy.policy, std::string("snapkv"));
        QVERIFY(std::ranges::count(carried.adapted, "1 pane of imported scores belongs to the previous capture and is "
                                                    "not shown.") == 1);
    }

    void noFileReplacesEitherCapture() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "same.h5");
        NoticeStrip notices;
        for (const char* name : {"first.h5", "same.h5", "other.h5"}) {
            bool written = false;
            submitWriting(*bench, notices, QString::fromStdString(at(name)), [&](const Checkpoint&) {
                written = true;
                return std::function<void()>();
            });
            executor.runAll();
            const bool isRefused = notices.messages().back().contains("this file is read by the work");
            QCOMPARE(written, name == std::string("other.h5"));
            QCOMPARE(isRefused, !written);
        }
    }

    void theActivePaneStaysActive() {
        Session before = firstSession(*openCapture(at("first.h5")));
        before.panes = {{PolicySpec::parse("imported,file=scores.h5:/s"), {}, {}},
                        {PolicySpec::parse("snapkv"), {}, {}},
                        {PolicySpec::parse("streaming_llm"), {}, {}}};
        before.activePane = 1;
        const Session after = carriedTo(*openCapture(at("same.h5")), before).session;
        QCOMPARE(after.panes.size(), std::size_t{2});
        QCOMPARE(after.panes.at(static_cast<std::size_t>(after.activePane)).policy.policy, std::string("snapkv"));
    }

    void theWholeModelHasEveryHead() {
        ManualExecutor executor;
        const auto bench = comparing(executor, "longer.h5");
        bench->change([](Session& s) { setViewOption(s, "two_captures", "heads", "model"); }, "Heads");
        executor.runAll();
        const auto data = dataAs<TwoCapturesData>(bench->viewInput(viewById("two_captures")));
        QVERIFY(data);
        QCOMPARE(data->panes[0].heads.size(), std::size_t{8});
        const View& view = viewById("two_captures");
        const ViewTable table = view.table(bench->viewInput(view), viewOptions(bench->session(), view));
        QCOMPARE(table.rowCount, std::int64_t{2 * (1 + 8)});
    }
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(ComparedCaptureTest)
#include "compared_capture_test.moc"
