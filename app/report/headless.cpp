// Runs a session without a window, with the requests of app/study that the window makes too.
#include "app/report/headless.h"

#include "app/export/figure.h"
#include "app/study/compared_capture.h"
#include "app/study/makers/view_data_maker.h"
#include "app/study/session_requests.h"
#include "core/base/error.h"
#include "core/base/random_source.h"
#include "views/common/colour_scale.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

PaneData runPane(const Session& session, std::size_t pane, const PaneRequest& request, bool required,
                 const LayerRunner& runner, const Checkpoint& checkpoint) {
    try {
        PaneData data = paneDataOf(session, pane, runner.run(resolvePane(request), checkpoint));
        if (required && !data.error.empty()) throw Error({data.error});
        return data;
    } catch (const Error& error) {
        if (required) throw;
        PaneData data = paneDataOf(session, pane, nullptr);
        data.error = error.what();
        return data;
    }
}

/// One of several pictures side by side.
struct Part {
    Session session;
    ViewInput input;
};

void shareRange(const View& view, std::vector<Part>& parts) {
    std::vector<Session*> sessions;
    std::vector<const ViewInput*> inputs;
    for (Part& part : parts) {
        sessions.push_back(&part.session);
        inputs.push_back(&part.input);
    }
    kvscope::shareRange(view, sessions, inputs);
}

} // namespace

ViewInput headlessInput(const Session& session, std::shared_ptr<const CaptureReader> capture,
                        std::optional<std::size_t> onlyPane, const LayerRunner& runner, const Checkpoint& checkpoint,
                        std::shared_ptr<const RandomSource> random) {
    const Cut cut = Cut::resolve(session.cut, *capture);
    ViewInput input = viewInputOf(session, capture, cut);
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane) {
        input.panes.push_back(runPane(session, pane, paneRequestOf(session, pane, capture, cut, random),
                                      onlyPane.value_or(pane) == pane, runner,
                                      checkpoint.step(pane, session.panes.size())));
    }
    input.activePane = static_cast<int>(onlyPane.value_or(static_cast<std::size_t>(session.activePane)));
    return input;
}

DataState headlessData(const Session& session, const FigureRequest& figure, const ViewInput& input,
                       const LayerRunner& runner, const Checkpoint& checkpoint,
                       const std::shared_ptr<const RandomSource>& random) {
    const View& view = viewById(figure.viewId);
    const ViewDataMaker* maker = makerFor(view);
    if (!maker) return {};
    ViewDataRequest request =
        dataRequestFor(view, session, dataRequestOf(session, input.capture, input.cut, random),
                       std::lround(figure.width * figure.scale), std::lround(figure.height * figure.scale));
    request.activePane = input.activePane;
    if (maker->dependsOn(DataScope::Compared)) request.compared = openCompared(session, *input.capture);
    return {.value = maker->make(runner, request, checkpoint, [](const auto&) {}),
            .computing = false,
            .progress = 1,
            .error = {}};
}

ViewInput figureInput(const Session& session, std::shared_ptr<const CaptureReader> capture, const FigureRequest& figure,
                      const LayerRunner& runner, const Checkpoint& checkpoint,
                      const std::shared_ptr<const RandomSource>& random) {
    ViewInput input = headlessInput(session, std::move(capture), figure.pane, runner, checkpoint.part(0, 0.5), random);
    input.data = headlessData(session, figure, input, runner, checkpoint.part(0.5, 1), random);
    return input;
}

Viewport figureViewport(const Session& session, const FigureRequest& figure, const TextService& text) {
    Viewport viewport;
    viewport.width = figure.width;
    viewport.height = figure.height;
    viewport.pixelScale = figure.scale;
    viewport.theme = themeByName(figure.theme);
    viewport.text = &text;
    viewport.forExport = true;
    viewport.range = shownRange(session, viewById(figure.viewId));
    viewport.top = session.look.stripTop;
    return viewport;
}

SessionFigure drawFigure(const Session& session, const FigureRequest& figure, ViewInput input,
                         const TextService& text) {
    const View& view = viewById(figure.viewId);
    if (input.panes.empty()) // its command could not draw it either
        throw Error({"the session has no pane to draw", "panes", "Add a policy"});
    const ParameterValues options = viewOptions(session, view);
    input.focus.hovered = -1;
    input.focus.brushing = false;
    input.activePane = static_cast<int>(figure.pane.value_or(static_cast<std::size_t>(session.activePane)));
    if (figure.pane && !view.card().perPane) {
        input.panes = {input.panes.at(*figure.pane)};
        input.activePane = 0;
    }
    std::vector<std::size_t> panes(figure.pane ? 1 : input.panes.size());
    std::iota(panes.begin(), panes.end(), figure.pane.value_or(0));
    SessionFigure drawn;
    drawn.finding = view.finding(input, options);
    drawn.title = view.card().name + ". " + drawn.finding;
    drawn.scene = buildFigure(view, std::move(input), options, panes, figureViewport(session, figure, text));
    return drawn;
}

void shareRange(const View& view, const std::vector<Session*>& sessions, const std::vector<const ViewInput*>& inputs) {
    const ParameterValues options = withCommonRange(view, inputs, viewOptions(*sessions.front(), view));
    if (!options.has(kValueRangeOption) || options.isDefault(kValueRangeOption)) return;
    for (Session* session : sessions)
        setViewOption(*session, view.card().id, kValueRangeOption, options.text(kValueRangeOption));
}

SessionFigure drawAllHeads(const Session& session, std::shared_ptr<const CaptureReader> capture, FigureRequest figure,
                           const LayerRunner& runner, const Checkpoint& checkpoint, const TextService& text,
                           const std::shared_ptr<const RandomSource>& random) {
    const View& view = viewById(figure.viewId);
    const LayerInfo& layer = capture->info().layerInfo(session.layer);
    const std::vector<QueryHeadIndex> heads = headsOf(view, layer);
    if (heads.empty())
        throw Error({fmt::format("the view {} is not about one head", figure.viewId), "--all-heads", "Leave it out"});
    const Viewport whole = figureViewport(session, figure, text);
    const PanelGrid grid(heads.size(), figure.width, figure.height);
    figure.width = grid.width;
    figure.height = grid.height;
    ViewInput input = headlessInput(session, capture, figure.pane, runner, checkpoint.part(0, 0.5), random);
    if (view.card().perPane && !figure.pane) figure.pane = static_cast<std::size_t>(session.activePane);
    std::vector<Part> parts;
    for (const QueryHeadIndex head : heads) {
        Session one = session;
        chooseQueryHead(one, head, *capture);
        input.kvHead = one.kvHead;
        input.queryHead = one.queryHead;
        input.data =
            headlessData(one, figure, input, runner, checkpoint.part(0.5, 1).step(parts.size(), heads.size()), random);
        parts.push_back({std::move(one), input});
    }
    shareRange(view, parts);
    std::vector<std::pair<std::string, Scene>> panels;
    const bool ofQueries = std::ssize(heads) > capture->info().numKvHeads;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        const int kvHead = parts[i].session.kvHead.value;
        panels.emplace_back(ofQueries ? fmt::format("Query head {}, KV head {}", heads[i].value, kvHead)
                                      : fmt::format("KV head {}", kvHead),
                            drawFigure(parts[i].session, figure, parts[i].input, text).scene);
    }
    SessionFigure drawn;
    drawn.finding = fmt::format("{} of layer {}.", formatCounted(std::ssize(heads), "head"), session.layer.value);
    drawn.title = view.card().name + ". " + drawn.finding;
    drawn.scene = placePanels(grid, panels, whole);
    return drawn;
}

SessionFigure drawBothCaptures(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                               const std::shared_ptr<const CaptureReader>& other, const FigureRequest& figure,
                               const LayerRunner& runner, const Checkpoint& checkpoint, const TextService& text) {
    const PanelGrid grid(2, figure.width, figure.height);
    FigureRequest half = figure;
    half.width = grid.width;
    half.height = grid.height;
    std::vector<Part> parts{{session, {}}, {comparedSession(session), {}}};
    for (std::size_t i = 0; i < 2; ++i) {
        const auto& of = i == 0 ? capture : other;
        fitToCapture(parts[i].session, *of);
        parts[i].input = figureInput(parts[i].session, of, half, runner, checkpoint.step(i, 2));
    }
    shareRange(viewById(figure.viewId), parts);
    const SessionFigure first = drawFigure(parts[0].session, half, parts[0].input, text),
                        second = drawFigure(parts[1].session, half, parts[1].input, text);
    const std::string &a = capture->info().fileName, &b = other->info().fileName;
    const auto titled = [&parts](std::size_t i, const std::string& name) {
        return fmt::format("{}  {}, {} tokens seen", i + 1, name, formatCount(parts[i].input.cut.token));
    };
    SessionFigure both;
    both.finding = fmt::format("{}: {}\n{}: {}", a, first.finding, b, second.finding);
    both.title =
        fmt::format("{}. {}: {}. {}: {}", viewById(figure.viewId).card().name, a, first.finding, b, second.finding);
    both.scene = placePanels(grid, {{titled(0, a), first.scene}, {titled(1, b), second.scene}},
                             figureViewport(session, figure, text));
    return both;
}

} // namespace kvscope
