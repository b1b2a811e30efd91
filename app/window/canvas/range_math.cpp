// Converts between screen coordinates (y down) and data ranges (mostly y up).
#include "app/window/canvas/range_math.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace kvscope {

namespace {

Box boxBetween(Point a, Point b) {
    return {std::min(a.x, b.x), std::min(a.y, b.y), std::abs(a.x - b.x), std::abs(a.y - b.y)};
}

double xData(const ShownPlot& s, double x) {
    return s.range.xMin + (x - s.plot.x) / s.plot.width * (s.range.xMax - s.range.xMin);
}

double yData(const ShownPlot& s, double y) {
    const double down = (y - s.plot.y) / s.plot.height * (s.range.yMax - s.range.yMin);
    return s.yDown ? s.range.yMin + down : s.range.yMax - down;
}

/// Calls `use(token, point, shown)` for every mark of a token; marks outside the clip are not shown.
void forEachTokenMark(const Scene& scene, const std::function<void(TokenIndex, Point, bool)>& use) {
    std::vector<Box> clips;
    const auto mark = [&](const PickId& pick, Point at) {
        if (pick.kind == PickId::Kind::Token)
            use(static_cast<TokenIndex>(pick.index), at,
                std::ranges::all_of(clips, [&](const Box& clip) { return clip.contains(at); }));
    };
    for (const Drawable& item : scene.items) {
        if (const auto* clip = std::get_if<PushClipItem>(&item))
            clips.push_back(clip->box);
        else if (std::holds_alternative<PopClipItem>(item))
            clips.pop_back();
        else if (const auto* circle = std::get_if<CircleItem>(&item))
            mark(circle->pick, circle->centre);
        else if (const auto* box = std::get_if<RectangleItem>(&item))
            mark(box->pick, {box->box.x + box->box.width / 2, box->box.y + box->box.height / 2});
        else if (const auto* cloud = std::get_if<PointCloudItem>(&item)) {
            const std::vector<Point>& points = *cloud->points;
            const std::vector<std::int64_t>* ids = cloud->ids ? &*cloud->ids : nullptr;
            for (std::size_t i = 0; i < points.size(); ++i)
                mark({cloud->pickKind, ids ? (*ids)[i] : static_cast<std::int64_t>(i)}, points[i]);
        }
    }
}

/// Tokens with a mark on the screen at which `holds` is true; ascending, each once.
template <class Predicate> std::vector<TokenIndex> tokensWhere(const Scene& scene, const Predicate& holds) {
    std::vector<TokenIndex> tokens;
    forEachTokenMark(scene, [&](TokenIndex token, Point at, bool shown) {
        if (shown && holds(at)) tokens.push_back(token);
    });
    std::ranges::sort(tokens);
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens;
}

/// An axis range keeps its previous ends if rounding would displace the marks in it (it is narrower than `kLeastShare`
/// of its larger end), or if an end is not a number or too far away.
Viewport::Range limited(Viewport::Range range, const Viewport::Range& before) {
    constexpr double kLeastShare = 1e-9, kFarthest = 1e15;
    const auto holds = [](double low, double high) {
        const double farthest = std::max(std::abs(low), std::abs(high));
        return high - low > kLeastShare * farthest && farthest < kFarthest;
    };
    if (!holds(range.xMin, range.xMax)) range.xMin = before.xMin, range.xMax = before.xMax;
    if (!holds(range.yMin, range.yMax)) range.yMin = before.yMin, range.yMax = before.yMax;
    return range;
}

} // namespace

ShownPlot ShownPlot::of(const Scene& scene) {
    ShownPlot shown{scene.plot, {scene.xMin, scene.xMax, scene.yMin, scene.yMax}, scene.yDown, false};
    shown.valid = scene.plot.width > 1 && scene.plot.height > 1 && scene.xMin < scene.xMax && scene.yMin < scene.yMax;
    return shown;
}

Viewport::Range zoomAt(const ShownPlot& shown, Point at, double factor, ZoomAxes axes) {
    Viewport::Range range = shown.range;
    const double x = xData(shown, at.x), y = yData(shown, at.y);
    if (axes != ZoomAxes::Y) {
        range.xMin = x - (x - range.xMin) / factor;
        range.xMax = x + (range.xMax - x) / factor;
    }
    if (axes != ZoomAxes::X) {
        range.yMin = y - (y - range.yMin) / factor;
        range.yMax = y + (range.yMax - y) / factor;
    }
    return limited(range, shown.range);
}

Viewport::Range panBy(const ShownPlot& shown, double dx, double dy) {
    const double x = dx / shown.plot.width * (shown.range.xMax - shown.range.xMin);
    const double y = (shown.yDown ? -dy : dy) / shown.plot.height * (shown.range.yMax - shown.range.yMin);
    return {shown.range.xMin - x, shown.range.xMax - x, shown.range.yMin + y, shown.range.yMax + y};
}

Viewport::Range zoomToBox(const ShownPlot& shown, Point a, Point b) {
    const Box box = boxBetween(a, b);
    const double top = yData(shown, box.y), bottom = yData(shown, box.bottom());
    return limited({xData(shown, box.x), xData(shown, box.right()), std::min(top, bottom), std::max(top, bottom)},
                   shown.range);
}

std::vector<TokenIndex> tokensInBox(const Scene& scene, Point a, Point b) {
    return tokensWhere(scene, [box = boxBetween(a, b)](Point at) { return box.contains(at); });
}

std::vector<TokenIndex> tokensInLasso(const Scene& scene, const Lasso& lasso) {
    return tokensWhere(scene, [inside = Lasso::Inside(lasso.path())](Point at) { return inside.contains(at); });
}

std::optional<Viewport::Range> rangeAround(const Scene& scene, const std::vector<TokenIndex>& tokens) {
    const ShownPlot shown = ShownPlot::of(scene);
    if (!shown.valid || tokens.empty()) return std::nullopt;
    if (shown.yDown) {
        const double first = tokens.front(), last = tokens.back() + 1, margin = std::max(4.0, 0.1 * (last - first));
        return Viewport::Range{std::max(0.0, first - margin), last + margin, shown.range.yMin, shown.range.yMax};
    }
    constexpr double far = std::numeric_limits<double>::infinity();
    Viewport::Range around{far, -far, far, -far};
    forEachTokenMark(scene, [&](TokenIndex token, Point at, bool) {
        if (!std::ranges::binary_search(tokens, token)) return;
        const double x = xData(shown, at.x), y = yData(shown, at.y);
        around = {std::min(around.xMin, x), std::max(around.xMax, x), std::min(around.yMin, y),
                  std::max(around.yMax, y)};
    });
    if (around.xMin > around.xMax) return std::nullopt;
    // A single token gets a twentieth of the present range.
    const auto widen = [](double& low, double& high, double least) {
        const double grow = std::max(0.1 * (high - low), (least - (high - low)) / 2);
        low -= grow;
        high += grow;
    };
    widen(around.xMin, around.xMax, (shown.range.xMax - shown.range.xMin) / 20);
    widen(around.yMin, around.yMax, (shown.range.yMax - shown.range.yMin) / 20);
    return around;
}

std::optional<TokenIndex> readTokenAt(const Scene& scene, Point at) {
    std::optional<TokenIndex> nearest;
    const auto outside = [](double value, double low, double high) {
        return std::max({0.0, low - value, value - high});
    };
    std::pair best{std::numeric_limits<double>::infinity(), 0.0}; // the line first, then the place in it
    for (const Drawable& item : scene.items) {
        const auto* token = std::get_if<RectangleItem>(&item);
        if (!token || token->pick.kind != PickId::Kind::Token) continue;
        const Box& box = token->box;
        const std::pair distance{outside(at.y, box.y, box.bottom()), outside(at.x, box.x, box.right())};
        if (distance >= best) continue;
        best = distance;
        nearest = static_cast<TokenIndex>(token->pick.index);
    }
    return nearest;
}

std::optional<Point> positionOfToken(const Scene& scene, TokenIndex token) {
    std::optional<Point> found;
    forEachTokenMark(scene, [&](TokenIndex candidate, Point at, bool) {
        if (candidate == token && !found) found = at;
    });
    return found;
}

} // namespace kvscope
