// From a ready result to a scene, for every view at n = 32,768: what each frame of a drag pays besides painting. The
// data of a view are computed once; only building the scene is timed.
#include "app/report/headless.h"
#include "app/text/qt_text_service.h"
#include "core/engine/engine.h"
#include "core/run/run.h"
#include "tests/support/memory_synthetic.h"

#include <benchmark/benchmark.h>

#include <QGuiApplication>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kvscope;

constexpr std::int64_t kTokens = 32768;

/// Views of one policy's steps need that policy; the others compare two.
std::vector<std::string> policiesFor(const std::string& view) {
    static const std::map<std::string, std::vector<std::string>> own = {
        {"merge_tree", {"balancekv_stream@0.25"}},
        {"walk", {"balancekv@0.25"}},
        {"clustering", {"subgen@0.25"}},
        {"leverage", {"leverage@0.25"}},
        {"score_plane", {"compactor@0.25"}},
        {"block_timeline", {"keydiff,prompt_block=512@0.25"}},
        {"theory", {"balancekv@0.25", "subgen@0.25"}},
    };
    const auto found = own.find(view);
    return found == own.end() ? std::vector<std::string>{"keydiff@0.25", "snapkv@0.25"} : found->second;
}

/// A view with everything that it shows.
struct Ready {
    Session session;
    ViewInput input;
    ParameterValues options;

    explicit Ready(const View& view) {
        static const std::shared_ptr<const CaptureReader> capture =
            makeSyntheticCapture({.tokens = kTokens, .layers = 1, .queryHeads = 4, .kvHeads = 2, .queryWindow = 0});
        static const LayerRunner runner(makeCpuEngine());
        session.cut = "last:64";
        for (const std::string& policy : policiesFor(view.card().id))
            session.panes.push_back({PolicySpec::parse(policy), {}, {}});
        options = viewOptions(session, view);
        input = headlessInput(session, capture, {}, runner, {});
        input.data =
            headlessData(session, {.viewId = view.card().id, .pane = {}, .width = 1200, .height = 800, .outPath = {}},
                         input, runner, {});
    }
};

void buildScene(benchmark::State& state, const View& view) {
    static const QtTextService text;
    static std::map<std::string, std::unique_ptr<Ready>> made;
    std::unique_ptr<Ready>& ready = made[view.card().id];
    try {
        if (!ready) ready = std::make_unique<Ready>(view);
    } catch (const std::exception& error) {
        state.SkipWithError(error.what());
        return;
    }
    Viewport viewport;
    viewport.width = 1200;
    viewport.height = 800;
    viewport.text = &text;
    for (auto _ : state) benchmark::DoNotOptimize(view.buildScene(ready->input, ready->options, viewport));
    state.SetLabel(view.finding(ready->input, ready->options).substr(0, 60)); // that it shows something
}

} // namespace

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    const QGuiApplication application(argc, argv);
    for (const View* view : allViews())
        benchmark::RegisterBenchmark(view->card().id.c_str(), [view](benchmark::State& state) {
            buildScene(state, *view);
        })->Unit(benchmark::kMillisecond);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
