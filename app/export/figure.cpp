// Arranges scenes as a figure: panels side by side under their titles.
#include "app/export/figure.h"

#include "core/base/error.h"
#include "core/run/head_means.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"
#include "views/scene/scene_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kTitleHeight = 40, kHeadingHeight = 22;

struct Mover {
    Point by;
    Point moved(Point p) const { return {p.x + by.x, p.y + by.y}; }
    Box moved(Box b) const { return {b.x + by.x, b.y + by.y, b.width, b.height}; }
    void operator()(RectangleItem& item) const { item.box = moved(item.box); }
    void operator()(PolylineItem& item) const { movePoints(item.points); }
    void operator()(PolygonItem& item) const { movePoints(item.points); }
    void operator()(CircleItem& item) const { item.centre = moved(item.centre); }
    void operator()(TextItem& item) const { item.position = moved(item.position); }
    void operator()(ImageItem& item) const { item.box = moved(item.box); }
    void operator()(PointCloudItem& item) const {
        if (!item.points) return;
        auto points = std::make_shared<std::vector<Point>>(*item.points);
        movePoints(*points);
        item.points = std::move(points);
    }
    void operator()(PushClipItem& item) const { item.box = moved(item.box); }
    void operator()(PopClipItem&) const {}
    void movePoints(std::vector<Point>& points) const {
        for (Point& p : points) p = moved(p);
    }
};

/// "error 0.116 · mass 89.6 % · kept 249 tokens (25.0 %) · needle 12/16": of the selection, as findings count it.
std::string factsOf(const ViewInput& input, const PaneData& pane) {
    const RunResult& result = *pane.result;
    std::string facts = "kept " + keptBudget(result, input.kvHead);
    if (result.fidelity)
        facts =
            fmt::format("error {} · mass {} · {}", formatFixed(meanErrorOf(result, *input.capture, input.kvHead), 3),
                        formatPercent(meanMassOf(result, *input.capture, input.kvHead)), facts);
    const bool chosen = !input.focus.selected.empty();
    const auto [hit, of] =
        keptAmong(input, pane, chosen ? input.focus.selected : tokensOfKind(*input.capture, SegmentKind::Needle));
    if (of > 0) facts += fmt::format(" · {} {}/{}", chosen ? selectionWord(input.focus) : "needle", hit, of);
    return facts;
}

void drawTitle(SceneBuilder& builder, const ViewInput& input, const PaneData& pane, bool withLetter, const Box& box,
               ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    builder.rectangle({box.x + 8, box.y + 4, box.width - 16, 2}, policyStyle(pane.policyId, themeId).colour);
    const TextStyle bold{FontFace::Interface, 12, FontWeight::SemiBold}, plain{FontFace::Interface, 11};
    const std::string title = withLetter ? std::string(1, pane.letter) + "  " + paneTitle(pane) : paneTitle(pane);
    builder.text({box.x + 8, box.y + 20}, builder.elide(title, bold, box.width - 16), bold, theme.text1);
    if (pane.result)
        builder.text({box.x + 8, box.y + 35}, builder.elide(factsOf(input, pane), plain, box.width - 16), plain,
                     theme.text2);
}

/// Panes side by side while that leaves them wide, else in rows: as many columns as give the largest panels, a little
/// wider than high. Ties go to fewer rows.
std::size_t columnsFor(std::size_t panes, double width, double height) {
    const auto rowsFor = [&](std::size_t columns) { return (panes + columns - 1) / columns; };
    std::size_t best = panes;
    double largest = -1;
    for (std::size_t columns = panes; columns > 0; --columns) {
        if (columns > 1 && rowsFor(columns) == rowsFor(columns - 1)) continue; // places would stay empty
        const double side = std::min(width / static_cast<double>(columns),
                                     1.3 * (height / static_cast<double>(rowsFor(columns)) - kTitleHeight));
        if (side > largest) {
            largest = side;
            best = columns;
        }
    }
    return best;
}

/// Copies the drawables of `part` into `whole`, moved by an offset.
void placeScene(Scene& whole, const Scene& part, Point offset) {
    for (Drawable item : part.items) {
        std::visit(Mover{offset}, item);
        whole.items.push_back(std::move(item));
    }
}

} // namespace

Scene buildFigure(const View& view, ViewInput input, const ParameterValues& options,
                  const std::vector<std::size_t>& panes, const Viewport& viewport) {
    if (!view.card().perPane) return view.buildScene(input, options, viewport);
    if (panes.empty()) throw Error({"there is no pane to draw", "", "Add a policy"});
    Scene figure = blankScene(viewport);
    SceneBuilder builder(figure, *viewport.text);
    const std::size_t columns = columnsFor(panes.size(), viewport.width, viewport.height),
                      rows = (panes.size() + columns - 1) / columns;
    const double width = viewport.width / static_cast<double>(columns),
                 height = viewport.height / static_cast<double>(rows);
    for (std::size_t i = 0; i < panes.size(); ++i) {
        const Box box{width * static_cast<double>(i % columns), height * static_cast<double>(i / columns), width,
                      kTitleHeight};
        drawTitle(builder, input, input.panes[panes[i]], panes.size() > 1, box, viewport.theme);
        Viewport panel = viewport;
        panel.width = width;
        panel.height = height - kTitleHeight;
        input.activePane = static_cast<int>(panes[i]);
        const Scene scene = view.buildScene(input, options, panel);
        placeScene(figure, scene, {box.x, box.y + kTitleHeight});
        if (i == 0) {
            figure.plot = {scene.plot.x, scene.plot.y + kTitleHeight, scene.plot.width, scene.plot.height};
            figure.yDown = scene.yDown;
            figure.xMin = scene.xMin, figure.xMax = scene.xMax, figure.yMin = scene.yMin, figure.yMax = scene.yMax;
        }
    }
    return figure;
}

PanelGrid::PanelGrid(std::size_t panels, double allWidth, double allHeight)
    : columns(columnsFor(panels, allWidth, allHeight)), width(allWidth / static_cast<double>(columns)),
      height(allHeight / std::ceil(static_cast<double>(panels) / static_cast<double>(columns)) - kHeadingHeight) {}

Scene placePanels(const PanelGrid& grid, const std::vector<std::pair<std::string, Scene>>& panels,
                  const Viewport& viewport) {
    Scene figure = blankScene(viewport);
    SceneBuilder builder(figure, *viewport.text);
    const TextStyle bold{FontFace::Interface, 12, FontWeight::SemiBold};
    for (std::size_t i = 0; i < panels.size(); ++i) {
        const auto& [title, scene] = panels[i];
        const Point at{grid.width * static_cast<double>(i % grid.columns),
                       (grid.height + kHeadingHeight) * static_cast<double>(i / grid.columns)};
        builder.text({at.x + 8, at.y + 16}, builder.elide(title, bold, grid.width - 16), bold,
                     themeOf(viewport.theme).text1);
        placeScene(figure, scene, {at.x, at.y + kHeadingHeight});
    }
    return figure;
}

} // namespace kvscope
