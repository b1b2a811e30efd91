// Runs a session without a window, with the requests of app/study that the window makes too.
#include "app/report/headless.h"

#include "app/export/figure.h"
#include "app/study/compared_capture.h"
#include "app/study/makers/view_data_maker.h"
#include "app/study/session_requests.h"
#include "core/base/error.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

PaneData runPane(const Session& session, std::size_t pane, const PaneRequest& request, bool required,
                 const LayerRunner& runner, const Checkpoint& checkpoint) {
    try {
        return paneDataOf(session, pane, runner.run(resolvePane(request), checkpoint));
    } catch (const Error& error) {
        if (required) throw;
        PaneData data = paneDataOf(session, pane, nullptr);
        data.error = error.what();
        return data;
    }
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
    viewport.scroll = session.look.stripScroll;
    return viewport;
}

SessionFigure drawFigure(const Session& session, const FigureRequest& figure, ViewInput input,
                         const TextService& text) {
    const View& view = viewById(figure.viewId);
    if (input.panes.empty()) // its command could not draw it either
        throw Error({.sentence = "the session has no pane to draw", .place = "panes", .remedy = "Add a policy"});
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

SessionFigure drawAllHeads(const Session& session, std::shared_ptr<const CaptureReader> capture, FigureRequest figure,
                           const LayerRunner& runner, const Checkpoint& checkpoint, const TextService& text,
                           const std::shared_ptr<const RandomSource>& random) {
    const View& view = viewById(figure.viewId);
    const LayerInfo& layer = capture->info().layerInfo(session.layer);
    const std::vector<QueryHeadIndex> heads = headsOf(view, layer);
    if (heads.empty())
        throw Error({.sentence = fmt::format("the view {} is not about one head", figure.viewId),
                     .place = "--all-heads",
                     .remedy = "Leave it out"});
    const Viewport whole = figureViewport(session, figure, text);
    const PanelGrid grid(heads.size(), figure.width, figure.height);
    figure.width = grid.width;
    figure.height = grid.height;
    ViewInput input = headlessInput(session, capture, figure.pane, runner, checkpoint.part(0, 0.5), random);
    if (view.card().perPane && !figure.pane) figure.pane = static_cast<std::size_t>(session.activePane);
    std::vector<std::pair<std::string, Scene>> panels;
    for (const QueryHeadIndex head : heads) {
        Session one = session;
        chooseQueryHead(one, head, *capture);
        input.kvHead = one.kvHead;
        input.queryHead = one.queryHead;
        input.data =
            headlessData(one, figure, input, runner, checkpoint.part(0.5, 1).step(panels.size(), heads.size()), random);
        const bool ofQueries = std::ssize(heads) > capture->info().numKvHeads;
        panels.emplace_back(ofQueries ? fmt::format("Query head {}, KV head {}", head.value, one.kvHead.value)
                                      : fmt::format("KV head {}", one.kvHead.value),
                            drawFigure(one, figure, input, text).scene);
    }
    SessionFigure drawn;
    drawn.finding = fmt::format("{} heads of layer {}.", heads.size(), session.layer.value);
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
    const auto draw = [&](Session part, const std::shared_ptr<const CaptureReader>& of, const Checkpoint& progress) {
        fitToCapture(part, *of);
        ViewInput input = figureInput(part, of, half, runner, progress);
        const TokenIndex seen = input.cut.token;
        const SessionFigure drawn = drawFigure(part, half, std::move(input), text);
        return std::tuple(drawn, seen);
    };
    const auto [first, seenFirst] = draw(session, capture, checkpoint.part(0, 0.5));
    const auto [second, seenSecond] = draw(comparedSession(session), other, checkpoint.part(0.5, 1));
    const std::string &a = capture->info().fileName, &b = other->info().fileName;
    const auto titled = [](const char* number, const std::string& name, TokenIndex seen) {
        return fmt::format("{}  {}, {} tokens seen", number, name, formatCount(seen));
    };
    SessionFigure both;
    both.finding = fmt::format("{}: {}\n{}: {}", a, first.finding, b, second.finding);
    both.title =
        fmt::format("{}. {}: {}. {}: {}", viewById(figure.viewId).card().name, a, first.finding, b, second.finding);
    both.scene =
        placePanels(grid, {{titled("1", a, seenFirst), first.scene}, {titled("2", b, seenSecond), second.scene}},
                    figureViewport(session, figure, text));
    return both;
}

} // namespace kvscope
