// Another engine in the middle of a session: what is shown is computed again, pictures stay until then, and an engine
// that cannot be had leaves everything as it was and says so in one line.
#include <QTest>

#include "app/window/actions/engine_controller.h"
#include "app/window/panels/status_line.h"
#include "core/base/error.h"
#include "core/engine/forwarding_engine.h"
#include "tests/app/click_entry.h"
#include "tests/app/manual_workbench.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QMenu>
#include <QSettings>
#include <QSignalSpy>
#include <QTimer>

using namespace kvscope;
using kvscope::testing::kSample;
using kvscope::testing::ManualExecutor;
using kvscope::testing::OpenWindow;

namespace {

/// The CPU engine under another name, with something to say.
class OtherEngine final : public ForwardingEngine {
public:
    explicit OtherEngine(Arithmetic arithmetic = Arithmetic::Exact, std::string notice = {})
        : OtherEngine(makeCpuEngine(1, {}, arithmetic), std::move(notice)) {}
    static inline int s_failed = 0;
    std::string name() const override { return "other"; }
    EngineState state() const override {
        EngineState state;
        state.device = "a device of the test";
        state.delegated = {{"attentionMap", 2}};
        state.fallbacks = {{"anchor", 1}, {"rowNorms", s_failed}};
        state.failure = "rowNorms of [2, 30, 4]: unspecified launch failure";
        state.notice = m_notice;
        return state;
    }

private:
    OtherEngine(std::shared_ptr<const Engine> engine, std::string notice)
        : ForwardingEngine(*engine), m_engine(std::move(engine)), m_notice(std::move(notice)) {}
    std::shared_ptr<const Engine> m_engine;
    std::string m_notice;
};

/// Engines as a machine with LibTorch but without a GPU has them.
std::unique_ptr<Engine> makeHere(const EngineChoice& choice) {
    if (choice.name == "cpu") return makeCpuEngine(1, {}, choice.arithmetic);
    if (choice.name == "torch")
        return std::make_unique<OtherEngine>(choice.arithmetic, "memory is full: smaller batches");
    throw Error(
        {.sentence = "this machine has no NVIDIA driver", .place = "engine " + choice.name, .remedy = "Use another"});
}

/// A workbench by hand with what chooses its engine.
struct EngineFixture {
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = kvscope::testing::manualWorkbench(executor);
    NoticeStrip notices;
    EngineController controller{*bench, notices, nullptr, makeHere};
    StatusLine line{*bench, controller};
    EngineChooser* chooser = line.findChild<EngineChooser*>("engineChooser");

    void open() {
        bench->openCapture(kSample);
        executor.runAll();
    }
};

std::vector<std::string> enginesShown(const Workbench& bench) {
    std::vector<std::string> names;
    for (const PaneData& pane : bench.viewInput().panes) names.push_back(pane.result ? pane.result->engine : "none");
    return names;
}

const std::vector<std::string> kAllCpu = {"cpu", "cpu", "cpu"}, kAllOther = {"other", "other", "other"};

/// Opens the chooser's menu with the mouse and picks an entry with it, as a user does.
void pick(EngineChooser& chooser, const QString& entry) {
    bool picked = false;
    QTimer::singleShot(0, &chooser, [&] {
        QMenu* menu = chooser.menu();
        QVERIFY(QTest::qWaitForWindowExposed(menu));
        QAction* action = menu->findChild<QAction*>(entry);
        QVERIFY2(action && action->isEnabled(), qPrintable(entry));
        testing::clickEntry(*menu, action);
        picked = true;
    });
    QTest::mouseClick(&chooser, Qt::LeftButton);
    QVERIFY(picked);
}

} // namespace

class EngineChoiceTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    void everythingShownIsComputedAgain() {
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        bench->openCapture(kSample);
        executor.runAll();
        QCOMPARE(enginesShown(*bench), kAllCpu);
        const auto kept = bench->viewInput().panes[0].result->selection;
        QSignalSpy changed(bench.get(), &Workbench::engineChanged);
        bench->useEngine([] { return std::make_unique<OtherEngine>(); });
        QCOMPARE(bench->runner().engine().name(), std::string("cpu")); // it is made on a worker
        executor.runTask();
        while (executor.deliver()) {
        }
        QCOMPARE(changed.count(), 1);
        QCOMPARE(bench->runner().engine().name(), std::string("other"));
        QCOMPARE(enginesShown(*bench), kAllCpu); // the old pictures stay
        QVERIFY(bench->viewInput().panes[0].computing);
        executor.runAll();
        QCOMPARE(enginesShown(*bench), kAllOther);
        QVERIFY(bench->viewInput().panes[0].result->selection.sameLists(kept));
        bench->change([](Session& s) { s.kvHead = KvHeadIndex(1); }, "Head");
        bench->change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        executor.runAll();
        bench->undo();
        executor.runAll();
        QCOMPARE(enginesShown(*bench), kAllOther); // nothing the old engine computed comes back
    }

    void whatIsUnderWayOnTheOldEngineNeverArrives() {
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        bench->openCapture(kSample);
        executor.runTask(); // the file
        while (executor.deliver()) {
        }
        while (executor.runTask()) { // panes: computed, and their results wait for the owner's thread
        }
        auto late = std::exchange(executor.deliveries, {});
        bench->useEngine([] { return std::make_unique<OtherEngine>(); });
        executor.runTask();
        while (executor.deliver()) {
        }
        executor.deliveries = std::move(late);
        while (executor.deliver()) {
        }
        for (const std::string& engine : enginesShown(*bench)) QVERIFY(engine != "cpu");
        executor.runAll();
        QCOMPARE(enginesShown(*bench), kAllOther);
    }

    void aCaptureThatIsOpenedMeanwhileDoesNotStopIt() {
        ManualExecutor executor;
        const auto bench = kvscope::testing::manualWorkbench(executor);
        int made = 0;
        bench->openCapture(kSample);
        bench->useEngine([&] { return ++made, std::make_unique<OtherEngine>(); });
        executor.runAll();
        QCOMPARE(made, 1);
        QCOMPARE(bench->runner().engine().name(), std::string("other"));
        QCOMPARE(enginesShown(*bench), kAllOther);
    }

    void anEngineThatIsNotThereChangesNothing() {
        EngineFixture d;
        d.open();
        d.controller.choose("cuda");
        QVERIFY(!d.chooser->isEnabled());
        QVERIFY2(d.line.text().contains("opening NVIDIA GPU"), qPrintable(d.line.text()));
        d.executor.runAll();
        QVERIFY(d.chooser->isEnabled());
        QCOMPARE(d.notices.messages().size(), 1);
        QVERIFY2(d.notices.messages()[0].startsWith("Computing goes on with CPU: this machine has no NVIDIA driver"),
                 qPrintable(d.notices.messages()[0]));
        QVERIFY(!d.notices.messages()[0].contains('\n'));
        QCOMPARE(d.controller.current().name, std::string("cpu"));
        QCOMPARE(enginesShown(*d.bench), kAllCpu);
        QVERIFY(!QSettings().contains("engine"));
        d.controller.choose("torch"); // the line has had its time
        d.executor.runAll();
        QVERIFY(d.notices.messages().isEmpty());
        QCOMPARE(enginesShown(*d.bench), kAllOther);
    }

    void aChoiceByHandIsRememberedAndTheOptionIsNot() {
        {
            EngineFixture d;
            d.controller.start({.name = "torch", .threads = 2}); // --engine torch
            d.executor.runAll();
            QCOMPARE(d.controller.current().name, std::string("torch"));
            QCOMPARE(d.controller.current().threads, 2);
            QVERIFY(!QSettings().contains("engine"));
            d.controller.choose("torch"); // now it is chosen
        }
        {
            EngineFixture d;
            d.controller.start({.name = {}, .threads = 0});
            d.executor.runAll();
            QCOMPARE(d.bench->runner().engine().name(), std::string("other"));
        }
        {
            EngineFixture d;
            d.controller.start({.name = "cpu", .threads = 0}); // --engine cpu
            QVERIFY(!d.executor.runTask());
            d.controller.choose("torch");
            d.controller.choose("cpu");
            d.executor.runAll();
            QCOMPARE(d.bench->runner().engine().name(), std::string("cpu"));
            QCOMPARE(QSettings().value("engine").toString(), QString("cpu"));
        }
    }

    void theArithmeticIsTheSessions() {
        EngineFixture d;
        d.open();
        QVERIFY2(d.line.text().contains("CPU · exact index contract"), qPrintable(d.line.text()));
        QCOMPARE(d.chooser->property("tone").toString(), QString("plain"));
        d.controller.chooseArithmetic(Arithmetic::Fast);
        QVERIFY(d.bench->session().arithmetic == Arithmetic::Fast);
        d.executor.runAll();
        QVERIFY2(d.line.text().contains("CPU · fast float, outside the index contract"), qPrintable(d.line.text()));
        QCOMPARE(d.chooser->property("tone").toString(), QString("warning"));
        for (const PaneData& pane : d.bench->viewInput().panes) QVERIFY(pane.result->arithmetic.find("fast") == 0);
        d.controller.choose("torch"); // another engine, still fast
        d.executor.runAll();
        QVERIFY(d.bench->viewInput().panes[0].result->arithmetic.find("fast") == 0);
        d.bench->undo();
        d.executor.runAll();
        QVERIFY(d.controller.current().arithmetic == Arithmetic::Exact);
        QCOMPARE(d.controller.current().name, std::string("torch")); // undo leaves the machine's side alone
        QVERIFY(d.bench->viewInput().panes[0].result->arithmetic.find("exact") == 0);
    }

    void anArithmeticChosenWhileAnEngineFailsIsKept() {
        EngineFixture d;
        d.open();
        d.controller.choose("cuda");
        d.controller.chooseArithmetic(Arithmetic::Fast);
        d.executor.runAll();
        QCOMPARE(d.controller.current().name, std::string("cpu"));
        QVERIFY(d.controller.current().arithmetic == Arithmetic::Fast);
        QCOMPARE(d.notices.messages().size(), 1); // still says why
        QVERIFY(!d.controller.opening());
    }

    void aSessionOpensWithItsArithmetic() {
        EngineFixture d;
        d.open();
        Session saved = d.bench->session();
        saved.arithmetic = Arithmetic::Fast;
        d.bench->openSession(saved);
        d.executor.runAll();
        QVERIFY(d.controller.current().arithmetic == Arithmetic::Fast);
        QVERIFY(d.bench->viewInput().panes[0].result->arithmetic.find("fast") == 0);
        d.bench->openCapture(kvscope::testing::sourceDir() + "/sample_data/fewshot-1k.h5"); // stays, like the theme
        d.executor.runAll();
        QVERIFY(d.bench->session().arithmetic == Arithmetic::Fast);
    }

    void theStatusBarNamesEngineAndNotice() {
        EngineFixture d;
        d.controller.choose("torch");
        d.executor.runAll();
        QVERIFY2(d.line.text().contains("OTHER"), qPrintable(d.line.text()));
        QVERIFY2(d.line.text().contains("memory is full: smaller batches"), qPrintable(d.line.text()));
        for (const int calls : {3, 4}) { // counted as they come
            OtherEngine::s_failed = calls;
            emit d.bench->sessionChanged();
            QCOMPARE(d.chooser->toolTip(),
                     QString("Computes on: a device of the test\n"
                             "No code for the device, computed on the CPU: attentionMap (2 calls)\n"
                             "Failed on the device, computed on the CPU: anchor (1 call), rowNorms (%1 calls)\n"
                             "The last failure: rowNorms of [2, 30, 4]: unspecified launch failure")
                         .arg(calls));
        }
    }

    void theMenuSaysWhatIsMissing() {
        EngineFixture d;
        QMenu* menu = d.chooser->menu();
        for (int again = 0; again < 2; ++again) { // filled anew each time
            emit menu->aboutToShow();
            const auto offers = engineOffers();
            QCOMPARE(menu->actions().size(), static_cast<qsizetype>(offers.size() + 3)); // a line and two arithmetics
            for (std::size_t i = 0; i < offers.size(); ++i) {
                const QAction* action = menu->actions().at(static_cast<qsizetype>(i));
                QCOMPARE(action->isEnabled(), offers[i].missing.empty());
                QVERIFY(action->text().contains(QString::fromStdString(offers[i].missing)));
                QCOMPARE(action->isChecked(), offers[i].name == "cpu");
            }
            QVERIFY(menu->findChild<QAction*>("arithmetic_exact")->isChecked());
            QVERIFY(!menu->findChild<QAction*>("arithmetic_fast")->isChecked());
        }
    }

    void inTheWindowByMouse() {
        OpenWindow open;
        const auto chooser = [&] { return open.window.findChild<EngineChooser*>("engineChooser"); };
        QVERIFY(chooser() && chooser()->isVisible());
        const auto kept = open.bench.viewInput().panes[0].result->selection;
        pick(*chooser(), "arithmetic_fast");
        QVERIFY(open.bench.session().arithmetic == Arithmetic::Fast);
        QTRY_VERIFY_WITH_TIMEOUT(!open.window.engines().opening(), 60'000);
        open.waitForResults();
        QVERIFY2(chooser()->text().startsWith("CPU · fast"), qPrintable(chooser()->text()));
        QCOMPARE(open.bench.viewInput().panes[0].result->arithmetic, open.bench.runner().engine().arithmetic());
        // The theme builds the chrome anew; what was chosen is not part of it.
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
        open.finish();
        QVERIFY2(chooser()->text().startsWith("CPU · fast"), qPrintable(chooser()->text()));
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier); // leaves the theme alone
        QTRY_VERIFY_WITH_TIMEOUT(chooser()->text().startsWith("CPU · exact"), 60'000);
        open.waitForResults();
        QVERIFY(open.bench.viewInput().panes[0].result->selection.sameLists(kept));
    }

    void theOtherEnginesInTheWindow_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"torch", "cuda"}) QTest::newRow(name) << name;
    }
    /// Those that this build and this machine have: the same lists in the window.
    void theOtherEnginesInTheWindow() {
        QFETCH(QString, name);
        for (const EngineOffer& offer : engineOffers())
            if (offer.name == name.toStdString() && !offer.missing.empty()) QSKIP(offer.missing.c_str());
        OpenWindow open;
        const auto kept = open.bench.viewInput().panes[0].result->selection;
        pick(*open.window.findChild<EngineChooser*>("engineChooser"), "engine_" + name);
        QTRY_VERIFY_WITH_TIMEOUT(!open.window.engines().opening(), 60000);
        QVERIFY2(open.window.notices().messages().isEmpty(), qPrintable(open.window.notices().messages().join('\n')));
        open.waitForResults();
        QCOMPARE(open.bench.viewInput().panes[0].result->engine, name.toStdString());
        QVERIFY(open.bench.viewInput().panes[0].result->selection.sameLists(kept));
        QVERIFY(open.bench.runner().engine().state().fallbacks.empty());
        QCOMPARE(QSettings().value("engine").toString(), name);
    }
};

KVSCOPE_WINDOW_TEST(EngineChoiceTest)
#include "engine_choice_test.moc"
