#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/capture/memory_capture.h"
#include "core/capture/open_capture.h"
#include "core/policies/policy.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/run_request.h"
#include "tests/support/source_dir.h"
#include "views/common/view_facts.h"
#include "views/key_projection/projection_data.h"
#include "views/view.h"

#include <string>
#include <vector>

namespace kvscope::view_fixture {

inline const LayerRunner& runner() {
    static const LayerRunner shared = testing::cpuRunner(2);
    return shared;
}

/// What the window would ask for.
inline ViewDataRequest dataRequest(const ViewInput& input, const ParameterValues& options) {
    ViewDataRequest request;
    request.capture = input.capture;
    request.layer = input.layer;
    request.kvHead = input.kvHead;
    request.queryHead = input.queryHead;
    request.cut = input.cut;
    for (const PaneData& pane : input.panes) request.panes.push_back({pane.result->request, {}});
    request.activePane = input.activePane;
    request.selected = input.focus.selected;
    request.options = options;
    return request;
}

/// The data that a view asks for, computed as the window would.
inline void fillData(ViewInput& input, const View& view, const ParameterValues& options) {
    input.data.value = makerFor(view)->make(runner(), dataRequest(input, options), {}, [](const auto&) {});
}

/// What the window would hand to a view: real policies run on a real capture.
inline ViewInput makeInput(std::shared_ptr<const CaptureReader> capture, const std::vector<std::string>& specs,
                           int layer = 3, int kvHead = 1) {
    ViewInput input;
    input.capture = capture;
    input.layer = LayerIndex(layer);
    input.kvHead = KvHeadIndex(kvHead);
    input.queryHead = QueryHeadIndex(kvHead * (capture->info().numQueryHeads / capture->info().numKvHeads));
    input.cut = Cut::resolve("default", *capture);
    for (const std::string& text : specs) {
        const PolicySpec spec = PolicySpec::parse(text);
        RunRequest request;
        request.capture = capture;
        request.layer = input.layer;
        request.policy = spec;
        request.budget = spec.budget.value_or(Budget{});
        request.cut = input.cut;
        request.measure = false; // no view here shows a measure
        PaneData pane;
        pane.letter = static_cast<char>('A' + input.panes.size());
        pane.policyId = spec.policy;
        pane.policyName = policyById(spec.policy).card().name;
        pane.variant = spec.variant;
        pane.result = runner().run(request, {});
        input.panes.push_back(pane);
    }
    fillData(input, viewById("key_projection"), ParameterValues(viewById("key_projection").card().options));
    return input;
}

inline std::shared_ptr<const CaptureReader> needleCapture() {
    static const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
    return capture;
}

inline ViewInput needleInput(const std::vector<std::string>& specs) {
    ViewInput input = makeInput(needleCapture(), specs);
    input.focus.selected = tokensOfKind(*input.capture, SegmentKind::Needle);
    input.focus.selectionName = "needle";
    return input;
}

inline ParameterValues optionsOf(const View& view, const std::vector<std::pair<std::string, std::string>>& set = {}) {
    ParameterValues options(view.card().options);
    for (const auto& [id, text] : set) options.setText(id, text);
    return options;
}

/// The sample's needle input with the data of a view.
inline ViewInput inputFor(const View& view, const std::vector<std::string>& specs, const ParameterValues& options) {
    ViewInput input = needleInput(specs);
    input.data = {};
    if (!view.card().data.empty()) fillData(input, view, options);
    return input;
}

inline RunRequest needleRequest(const std::string& spec, int layer = 3, std::uint64_t seed = 0) {
    RunRequest request = runRequest(needleCapture(), spec);
    request.policy.budget.reset();
    request.layer = LayerIndex(layer);
    request.seed = seed;
    return request;
}

inline std::shared_ptr<const RunResult> measured(const std::string& spec, int layer, std::uint64_t seed = 0) {
    return runner().run(needleRequest(spec, layer, seed), {});
}

inline Viewport viewport(double width, double height, const TextService& text, ThemeId theme = ThemeId::Light) {
    Viewport v;
    v.width = width;
    v.height = height;
    v.theme = theme;
    v.text = &text;
    return v;
}

} // namespace kvscope::view_fixture
