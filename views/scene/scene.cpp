// Picking: drawables are searched from the top, so that the visible one is found.
#include "views/scene/scene.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

double distanceToSegment(Point p, Point a, Point b) {
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double length = dx * dx + dy * dy;
    const double t = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
    return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

namespace {

/// The pick of one drawable at the point, or none.
struct Probe {
    Point point;
    double tolerance;

    PickId operator()(const RectangleItem& item) const {
        return item.box.grown(tolerance).contains(point) ? item.pick : PickId{};
    }
    PickId operator()(const PolylineItem& item) const {
        for (std::size_t i = 1; i < item.points.size(); ++i)
            if (distanceToSegment(point, item.points[i - 1], item.points[i]) <= tolerance + item.stroke.width / 2)
                return item.pick;
        return {};
    }
    PickId operator()(const PolygonItem&) const { return {}; }
    PickId operator()(const CircleItem& item) const {
        const double distance = std::hypot(point.x - item.centre.x, point.y - item.centre.y);
        return distance <= item.radius + tolerance ? item.pick : PickId{};
    }
    PickId operator()(const TextItem&) const { return {}; } // text is picked through the rectangle behind it
    PickId operator()(const ImageItem& item) const {
        if (!item.box.contains(point)) return {};
        if (item.pick.kind != PickId::Kind::Cell) return item.pick;
        const auto column = static_cast<std::int64_t>((point.x - item.box.x) / item.box.width * item.width);
        const auto row = static_cast<std::int64_t>((point.y - item.box.y) / item.box.height * item.height);
        return {PickId::Kind::Cell, row * item.width + column};
    }
    PickId operator()(const PointCloudItem& item) const {
        if (item.pickKind == PickId::Kind::None || !item.points) return {};
        double best = (item.radius + tolerance) * (item.radius + tolerance);
        std::int64_t nearest = -1;
        const std::vector<Point>& points = *item.points;
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double dx = points[i].x - point.x, dy = points[i].y - point.y;
            if (const double squared = dx * dx + dy * dy; squared <= best) {
                best = squared;
                nearest = static_cast<std::int64_t>(i);
            }
        }
        if (nearest < 0) return {};
        return {item.pickKind, item.ids ? (*item.ids)[nearest] : nearest};
    }
    PickId operator()(const PushClipItem&) const { return {}; }
    PickId operator()(const PopClipItem&) const { return {}; }
};

/// For every drawable, whether the clips around it let the point through.
std::vector<bool> visibleThroughClips(const Scene& scene, Point point) {
    std::vector<bool> visible, stack{true};
    for (const Drawable& item : scene.items) {
        if (const auto* push = std::get_if<PushClipItem>(&item))
            stack.push_back(stack.back() && push->box.contains(point));
        else if (std::holds_alternative<PopClipItem>(item) && stack.size() > 1)
            stack.pop_back();
        visible.push_back(stack.back());
    }
    return visible;
}

} // namespace

PickId pickAt(const Scene& scene, Point point, double tolerance) {
    const std::vector<bool> visible = visibleThroughClips(scene, point);
    for (std::size_t i = scene.items.size(); i-- > 0;) {
        if (!visible[i]) continue;
        if (const PickId pick = std::visit(Probe{point, tolerance}, scene.items[i]); pick.kind != PickId::Kind::None)
            return pick;
    }
    return {};
}

std::optional<Box> boxOfPick(const Scene& scene, PickId pick) {
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick == pick) return box->box;
    return std::nullopt;
}

std::optional<std::pair<std::int64_t, std::int64_t>> tokensInBoxes(const Scene& scene) {
    std::optional<std::pair<std::int64_t, std::int64_t>> ends;
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick.kind == PickId::Kind::Token)
            ends = {ends ? ends->first : box->pick.index, box->pick.index};
    return ends;
}

} // namespace kvscope
