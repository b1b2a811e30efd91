// What a user waits for, on the screen: from a new window to the first whole picture; from a step of the budget slider
// to the frame that shows its tokens, and its numbers, on the sample and on 32,768 tokens with 8 KV heads; there also
// from another parameter of a policy to its tokens; on 131,072 tokens from a movement of the hand to the frame that
// follows it, in the attention map on 32,768. Run it where there is a display (or under xvfb-run).
#include "app/window/canvas/pane_header.h"
#include "app/window/canvas_area.h"
#include "app/window/style/appearance.h"
#include "core/capture/synthetic_capture.h"
#include "tests/app/window_parts.h"
#include "tests/bench/cpu_time.h"
#include "tests/support/source_dir.h"

#include <benchmark/benchmark.h>

#include <QApplication>
#include <QMouseEvent>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QWheelEvent>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace kvscope;
using kvscope::testing::CpuTime;

const std::string kSample = kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5";

struct Shown : kvscope::testing::WindowParts {
    explicit Shown(const std::string& capture = kSample) : WindowParts(0, &machineClock()) {
        window.resize(1440, 900);
        window.show();
        window.openPath(QString::fromStdString(capture));
        waitForPicture({});
    }

    /// What else the first second does.
    static void settle() {
        for (int i = 0; i < 50; ++i) QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    }

    /// Until no job is left: the exact map of a long capture comes seconds after the first picture.
    void finishJobs() const {
        for (settle(); jobs->pending > 0; settle()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }

    std::vector<CanvasWidget*> canvases() const {
        std::vector<CanvasWidget*> all;
        for (PaneFrame* pane : window.canvases()->panes()) all.push_back(pane->canvas()->canvas());
        return all;
    }

    bool hasResults() const {
        const ViewInput input = bench.viewInput();
        return bench.capture() && !input.panes.empty() &&
               std::all_of(input.panes.begin(), input.panes.end(),
                           [](const PaneData& pane) { return pane.result && !pane.computing; });
    }

    std::vector<int> frames() const {
        std::vector<int> drawn;
        for (const CanvasWidget* canvas : canvases()) drawn.push_back(canvas->framesDrawn());
        return drawn;
    }

    /// Until there is a result in every pane and every pane has drawn a frame since.
    void waitForPicture(const std::vector<int>& before) {
        while (!hasResults()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        const std::vector<int> seen = before.empty() ? std::vector<int>(canvases().size(), 0) : before;
        const auto drawn = [&] {
            const std::vector<int> now = frames();
            return std::equal(now.begin(), now.end(), seen.begin(), seen.end(), std::greater<>());
        };
        while (!drawn()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }
};

void windowOnTheSample(benchmark::State& state) {
    for (auto _ : state) {
        const Shown shown;
        benchmark::DoNotOptimize(&shown);
    }
}

enum class Until { Kept, Numbers };
constexpr int kSteps = 60; ///< of a drag; the window is made once for them

/// The steps of a drag: wall time, and CPU time by threads, each as the middle and the 95th of 100.
class Steps {
public:
    /// A step ends when each pane has drawn what it keeps now; its numbers may come later, or belong to the step.
    Steps(Shown& shown, Until until) : m_shown(shown), m_until(until) {
        QObject::connect(&shown.bench, &Workbench::paneChanged, &m_listener, [this](int pane) {
            const PaneData data = m_shown.bench.viewInput().panes[pane];
            if (!data.result || data.outdated) return;
            if (m_until == Until::Numbers) m_framesBefore.erase(pane);
            m_framesBefore.try_emplace(pane, m_shown.frames()[pane]);
        });
    }

    void step(const std::function<void(Session&)>& edit) {
        m_framesBefore.clear();
        const CpuTime before = CpuTime::now();
        const auto start = std::chrono::steady_clock::now();
        m_shown.bench.change(edit, "Step", "step");
        do QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        while (!isDrawn());
        const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
        const CpuTime used = CpuTime::now() - before;
        for (const auto& [name, value] : std::map<std::string, double>{{"wall", wall.count()},
                                                                       {"cpu", used.all()},
                                                                       {"window", used.window},
                                                                       {"workers", used.workers},
                                                                       {"painters", used.painters},
                                                                       {"llvmpipe", used.llvmpipe}})
            m_milliseconds[name].push_back(value);
    }
    void report(benchmark::State& state) {
        for (auto& [name, all] : m_milliseconds) {
            std::ranges::sort(all);
            const auto at = [&](double share) { return all[static_cast<std::size_t>(share * double(all.size() - 1))]; };
            state.counters[name + "_50"] = at(0.5);
            state.counters[name + "_95"] = at(0.95);
        }
        const CpuTime start = CpuTime::now();
        for (CanvasWidget* canvas : m_shown.window.findChildren<CanvasWidget*>())
            if (canvas->isVisible()) {
                canvas->invalidate();
                const Scene* scene = &canvas->scene();
                benchmark::DoNotOptimize(scene);
            }
        state.counters["scenes"] = (CpuTime::now() - start).window; // its part of `window`, where all are drawn
    }

private:
    bool isDrawn() const {
        const std::vector<int> now = m_shown.frames();
        return m_framesBefore.size() == now.size() && (m_until == Until::Kept || m_shown.hasResults()) &&
               std::ranges::all_of(m_framesBefore, [&](const auto& pane) { return now[pane.first] > pane.second; });
    }

    Shown& m_shown;
    Until m_until;
    QObject m_listener;
    std::map<int, int> m_framesBefore; ///< by pane, when it got what it draws at the end of the step
    std::map<std::string, std::vector<double>> m_milliseconds;
};

/// Another budget every time, so that no choice comes from the cache; scores do.
void budgetSteps(benchmark::State& state, Shown& shown, Until until) {
    shown.finishJobs();
    Steps steps(shown, until);
    int step = 0;
    for (auto _ : state) {
        const Budget budget{Budget::Unit::Fraction, 0.1 + 0.0005 * (step++ % 1600)};
        steps.step([&](Session& s) { setBudget(s, budget); });
    }
    steps.report(state);
}

void budgetStepToKept(benchmark::State& state) {
    Shown shown;
    budgetSteps(state, shown, Until::Kept);
}

void budgetStepToNumbers(benchmark::State& state) {
    Shown shown;
    budgetSteps(state, shown, Until::Numbers);
}

/// On a thread of the workers' priority: TBB starts its own threads here, which the measures use later, and they
/// inherit it. In the program a worker is the first to need them.
void writeCapture(const SyntheticSpec& what, const std::string& path) {
    std::thread([&] {
        static_cast<void>(nice(10));
        writeSyntheticCapture(what, path, 0, false, {});
    }).join();
}

/// The size of the requirements: 32,768 tokens, 8 KV heads, 32 query heads, d = 128.
struct LargeCapture {
    QTemporaryDir folder;
    std::unique_ptr<Shown> shown;

    LargeCapture() {
        const std::string path = folder.filePath("large.h5").toStdString();
        writeCapture(
            {.tokens = 32'768, .layers = 1, .queryHeads = 32, .kvHeads = 8, .headDim = 128, .queryWindow = 320}, path);
        shown = std::make_unique<Shown>(path);
        shown->waitForPicture({});
    }
};

void budgetStepOf32768ToKept(benchmark::State& state) {
    const LargeCapture capture;
    budgetSteps(state, *capture.shown, Until::Kept);
}

void budgetStepOf32768ToNumbers(benchmark::State& state) {
    const LargeCapture capture;
    budgetSteps(state, *capture.shown, Until::Numbers);
}

/// A capture of any size, for one that takes minutes to write; its memory, too. All panes of a new window, or one
/// policy with the views of a head (projection, strip and map).
void budgetStepOfGivenToKept(benchmark::State& state, const std::string& path, bool oneHead) {
    Shown shown(path);
    if (oneHead) {
        shown.bench.change(
            [](Session& s) {
                s.layout = WindowLayout::ExploreHead;
                s.panes.resize(1);
            },
            "Layout");
        Shown::settle();
        shown.waitForPicture({});
    }
    budgetSteps(state, shown, Until::Kept);
    rusage own{};
    getrusage(RUSAGE_SELF, &own);
    state.counters["peak_MiB"] = static_cast<double>(own.ru_maxrss) / 1024;
}

/// Another cut every time: all keys before it are scored again.
void scoresOf32768ToKept(benchmark::State& state, const std::string& policy) {
    const LargeCapture capture;
    Shown& shown = *capture.shown;
    shown.bench.change([&](Session& s) { s.panes = {{PolicySpec::parse(policy), {}, {}}}; }, "Policy");
    Shown::settle();
    Steps steps(shown, Until::Kept);
    int step = 0;
    for (auto _ : state) steps.step([&](Session& s) { s.cut = "last:" + std::to_string(64 + step++ % 250); });
    steps.report(state);
}

/// One pane of a capture too long to be drawn token by token.
struct LongCapture {
    QTemporaryDir folder;
    std::unique_ptr<Shown> shown;
    CanvasWidget* canvas = nullptr; ///< that the hand moves on

    explicit LongCapture(std::int64_t tokens = 131'072, std::int64_t queries = 64) {
        const std::string path = folder.filePath("long.h5").toStdString();
        writeCapture({.tokens = tokens, .layers = 1, .queryHeads = 2, .kvHeads = 1, .queryWindow = queries}, path);
        shown = std::make_unique<Shown>(path);
        shown->bench.change([](Session& s) { s.panes.resize(1); }, "Panes");
        Shown::settle();
        shown->waitForPicture({});
        canvas = shown->canvases().front();
    }

    /// Until the canvas has drawn what the event asked for.
    void sendAndWait(QEvent& event) const {
        const int before = canvas->framesDrawn();
        QCoreApplication::sendEvent(canvas, &event);
        while (canvas->framesDrawn() == before) QCoreApplication::processEvents(QEventLoop::AllEvents, 1);
    }
    void turnWheel(int steps) const {
        const QPointF middle = canvas->rect().center();
        QWheelEvent event(middle, canvas->mapToGlobal(middle), {}, {0, 120 * steps}, Qt::NoButton, {},
                          Qt::NoScrollPhase, false);
        sendAndWait(event);
    }
    void label(benchmark::State& state) const {
        for (const Drawable& item : canvas->scene().items)
            if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "kept")
                state.SetLabel(std::to_string(cloud->points->size()) + " kept, every frame exact");
    }

    /// Drags to and fro, a frame for every movement.
    void pan(benchmark::State& state, double reach) const {
        const QPointF middle = canvas->rect().center();
        const auto mouse = [&](QEvent::Type type, const QPointF& at, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, canvas->mapToGlobal(at),
                              type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton, buttons, {});
            type == QEvent::MouseMove ? sendAndWait(event) : (void)QCoreApplication::sendEvent(canvas, &event);
        };
        mouse(QEvent::MouseButtonPress, middle, Qt::LeftButton);
        mouse(QEvent::MouseMove, middle + QPointF(20, 0), Qt::LeftButton); // beyond what counts as a click
        int step = 0;
        for (auto _ : state) {
            ++step;
            mouse(QEvent::MouseMove, middle + QPointF(20 + reach * std::sin(0.1 * step), 3 * (step % 2)),
                  Qt::LeftButton);
        }
        mouse(QEvent::MouseButtonRelease, middle, Qt::NoButton);
    }
};

void panAmong131072(benchmark::State& state) {
    const LongCapture capture;
    capture.pan(state, 40);
    capture.label(state);
}

void zoomAmong131072(benchmark::State& state) {
    const LongCapture capture;
    int step = 0;
    for (auto _ : state) // two in, two out
        capture.turnWheel(step++ % 4 < 2 ? 1 : -1);
    capture.label(state);
}

/// Within tiles that are there: the exact map of a part, moved by less than a tile.
void panTheMapOf32768(benchmark::State& state) {
    LongCapture capture(32'768, 0);
    Shown& shown = *capture.shown;
    shown.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
    Shown::settle();
    for (const ViewDock* dock : shown.window.canvases()->docks())
        if (dock->canvas()->view().card().id == "attention_map") capture.canvas = dock->canvas()->canvas();
    const auto exact = [&] {
        const ViewInput input = shown.bench.viewInput(viewById("attention_map"));
        return input.data.value && !input.data.computing;
    };
    const auto waitForTiles = [&] {
        do Shown::settle();
        while (!exact());
    };
    waitForTiles();
    for (int i = 0; i < 4; ++i) capture.turnWheel(1);
    waitForTiles();
    capture.pan(state, 8);
}

void redraw131072(benchmark::State& state) {
    const LongCapture capture;
    for (auto _ : state) {
        capture.canvas->invalidate();
        const QImage* picture = &capture.canvas->picture();
        benchmark::DoNotOptimize(picture);
    }
    capture.label(state);
}

BENCHMARK(redraw131072)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(panAmong131072)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(zoomAmong131072)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(panTheMapOf32768)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(windowOnTheSample)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(budgetStepToKept)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(kSteps);
BENCHMARK(budgetStepToNumbers)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(kSteps);
BENCHMARK(budgetStepOf32768ToKept)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(kSteps);
BENCHMARK(budgetStepOf32768ToNumbers)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(kSteps);
BENCHMARK_CAPTURE(scoresOf32768ToKept, keydiff, "keydiff")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(kSteps);
BENCHMARK_CAPTURE(scoresOf32768ToKept, key_norm, "key_norm")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(kSteps);

} // namespace

int main(int argc, char** argv) {
    QStandardPaths::setTestModeEnabled(true); // the user's settings stay as they are
    kvscope::testing::useFormatOfTheProgram();
    QApplication application(argc, argv);
    QApplication::setStyle(kvscope::makeChromeStyle());
    if (const char* given = std::getenv("KVSCOPE_BENCH_CAPTURE"))
        for (const bool oneHead : {false, true})
            benchmark::RegisterBenchmark(oneHead ? "budgetStepOfGivenHeadToKept" : "budgetStepOfGivenToKept",
                                         budgetStepOfGivenToKept, std::string(given), oneHead)
                ->Unit(benchmark::kMillisecond)
                ->UseRealTime()
                ->Iterations(24);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
