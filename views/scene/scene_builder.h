#pragma once

#include "views/scene/scene.h"
#include "views/scene/text_service.h"
#include "views/scene/theme.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Builds a scene, one call per drawable; the text service measures texts.
class SceneBuilder {
public:
    SceneBuilder(Scene& scene, const TextService& text) : m_scene(scene), m_text(text) {}

    void rectangle(Box box, Colour fill, Stroke stroke = {}, double radius = 0, PickId pick = {});
    void line(Point from, Point to, Stroke stroke); ///< 1 px lines land on pixel centres
    void polyline(std::vector<Point> points, Stroke stroke, bool closed = false);
    void polygon(std::vector<Point> points, Colour fill, Stroke stroke = {});
    void circle(Point centre, double radius, Colour fill, Stroke stroke = {}, PickId pick = {});
    void mark(Point at, Marker marker, double radius, Colour fill, const Stroke& stroke);
    /// Returns the width.
    double text(Point position, std::string text, const TextStyle& style, Colour colour,
                HorizontalAlign horizontal = HorizontalAlign::Left, VerticalAlign vertical = VerticalAlign::Baseline,
                double angleDegrees = 0);
    /// A text whose middle is at the height of the position, as beside a mark. Returns the width.
    double label(Point position, std::string words, const TextStyle& style, Colour colour,
                 HorizontalAlign horizontal = HorizontalAlign::Left) {
        return text(position, std::move(words), style, colour, horizontal, VerticalAlign::Middle);
    }
    /// A label on a ground in the canvas colour, so that what lies there does not run through it.
    void labelOnCanvas(Point position, const std::string& words, const TextStyle& style, Colour colour,
                       const Theme& theme, HorizontalAlign horizontal = HorizontalAlign::Left);
    void pushClip(Box box) { m_scene.items.push_back(PushClipItem{box}); }
    void popClip() { m_scene.items.push_back(PopClipItem{}); }
    /// Marks that nothing picks.
    void marks(std::string name, std::vector<Point> at, Marker marker, double radius, Colour fill, Stroke stroke = {});
    void points(PointCloudItem cloud) { m_scene.items.push_back(std::move(cloud)); }
    /// Pixels row by row, drawn without smoothing.
    void image(Box box, std::int64_t width, std::int64_t height, const std::vector<Colour>& pixels, PickId pick = {});

    double width(std::string_view text, const TextStyle& style) const { return m_text.measure(text, style).width; }
    /// Cut at the end with an ellipsis so that it fits; empty when not even that fits.
    std::string elide(const std::string& text, const TextStyle& style, double width) const;
    /// Lines of whole words, none wider than `width` unless a single word is.
    std::vector<std::string> wrap(const std::string& text, const TextStyle& style, double width) const;

    Scene& scene() { return m_scene; }
    const TextService& textService() const { return m_text; }

private:
    Scene& m_scene;
    const TextService& m_text;
};

/// Marks of one kind that are gathered first and then become a point cloud.
class GatheredMarks {
public:
    void add(Point at, std::int64_t id) {
        m_points->push_back(at);
        m_ids->push_back(id);
    }
    void reserve(std::int64_t most) {
        m_points->reserve(static_cast<std::size_t>(most));
        m_ids->reserve(static_cast<std::size_t>(most));
    }
    const std::vector<Point>& points() const { return *m_points; }

    PointCloudItem as(std::string name, PickId::Kind pickKind, Marker marker, double radius, Colour fill,
                      Stroke stroke) const {
        return {m_points, m_ids, pickKind, marker, radius, fill, std::move(stroke), std::move(name)};
    }
    /// Invisible marks, which are gathered when one is first looked for.
    static PointCloudItem later(std::function<GatheredMarks()> gather, std::string name, PickId::Kind pickKind,
                                Marker marker, double radius) {
        const Deferred<GatheredMarks> marks(
            [gather = std::move(gather)] { return std::make_shared<const GatheredMarks>(gather()); });
        return {Deferred<std::vector<Point>>([marks] { return marks->m_points; }),
                Deferred<std::vector<std::int64_t>>([marks] { return marks->m_ids; }),
                pickKind,
                marker,
                radius,
                kTransparent,
                {},
                std::move(name)};
    }

private:
    std::shared_ptr<std::vector<Point>> m_points = std::make_shared<std::vector<Point>>();
    std::shared_ptr<std::vector<std::int64_t>> m_ids = std::make_shared<std::vector<std::int64_t>>();
};

/// Where a text's baseline begins, relative to the item's position and before the rotation.
Point baselineOf(const TextItem& item, const TextExtent& extent);

/// Corners of a marker of the given radius around the origin; empty for circle, plus and cross.
std::vector<Point> markerOutline(Marker marker, double radius);

/// Plus and cross are lines: their arms around the origin, each a pair of ends; empty for the other markers.
std::vector<std::array<Point, 2>> markerArms(Marker marker, double radius);
/// The stroke of these arms: the given stroke, or the fill's colour without one.
Stroke armStroke(const Stroke& stroke, Colour fill);

} // namespace kvscope
