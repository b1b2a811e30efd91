// What a user waits for, on the sample and on the screen: from a new window to the first whole picture, and from a step
// of the budget slider to the frame that shows its result. Run it where there is a display (or under xvfb-run).
#include "app/text/qt_text_service.h"
#include "app/window/canvas/pane_header.h"
#include "app/window/appearance.h"
#include "app/window/canvas_area.h"
#include "app/window/main_window.h"
#include "core/engine/engine.h"

#include <benchmark/benchmark.h>

#include <QApplication>
#include <QStandardPaths>
#include <QSurfaceFormat>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace kvscope;

const std::string kSample = std::string(KVSCOPE_SOURCE_DIR) + "/sample_data/needle-1k.h5";

/// A window as the program composes it.
struct Shown {
    QtTextService text;
    WorkerPool workers{2};
    Workbench bench{std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine())),
                    [this](Scheduler::Task task) { workers.run(std::move(task)); },
                    [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); }};
    MainWindow window{bench, text};

    Shown() {
        window.resize(1440, 900);
        window.show();
        window.openPath(QString::fromStdString(kSample));
        waitForPicture({});
    }

    std::vector<CanvasWidget*> canvases() const {
        std::vector<CanvasWidget*> all;
        for (PaneFrame* pane : window.canvases()->panes())
            all.push_back(pane->canvas()->canvas());
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
        for (const CanvasWidget* canvas : canvases())
            drawn.push_back(canvas->framesDrawn());
        return drawn;
    }

    /// Until there is a result in every pane and every pane has drawn a frame since.
    void waitForPicture(const std::vector<int>& before) {
        while (!hasResults())
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        const std::vector<int> seen = before.empty() ? std::vector<int>(canvases().size(), 0) : before;
        const auto drawn = [&] {
            const std::vector<int> now = frames();
            return std::equal(now.begin(), now.end(), seen.begin(), seen.end(), std::greater<>());
        };
        while (!drawn())
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }
};

void windowOnTheSample(benchmark::State& state) {
    for (auto _ : state) {
        const Shown shown;
        benchmark::DoNotOptimize(&shown);
    }
}

/// Another budget every time, so that no choice comes from the cache.
void budgetStepToFrame(benchmark::State& state) {
    Shown shown;
    for (int i = 0; i < 50; ++i) // what else the first second does
        QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    int step = 0;
    const std::vector<int> first = shown.frames();
    for (auto _ : state) {
        const std::vector<int> before = shown.frames();
        const double fraction = 0.1 + 0.0005 * (step++ % 1600);
        shown.bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, fraction}); }, "Budget", "budget");
        shown.waitForPicture(before);
    }
    const std::vector<int> last = shown.frames();
    const double frames = std::accumulate(last.begin(), last.end(), 0.0) - std::accumulate(first.begin(), first.end(), 0.0);
    state.counters["frames_per_pane"] = benchmark::Counter(frames / static_cast<double>(last.size()), benchmark::Counter::kAvgIterations);
}

BENCHMARK(windowOnTheSample)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(budgetStepToFrame)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace

int main(int argc, char** argv) {
    QStandardPaths::setTestModeEnabled(true); // the user's settings stay as they are
    QSurfaceFormat format;
    format.setVersion(3, 3);
    format.setProfile(QSurfaceFormat::CoreProfile);
    format.setSwapInterval(0);
    QSurfaceFormat::setDefaultFormat(format);
    QApplication application(argc, argv);
    QApplication::setStyle(kvscope::makeChromeStyle());
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
