#pragma once

#include "core/base/deferred.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvscope {

/// Straight (not premultiplied) colour, 0..255.
struct Colour {
    std::uint8_t r = 0, g = 0, b = 0, a = 255;
    friend bool operator==(const Colour&, const Colour&) = default;
};
constexpr Colour kTransparent{0, 0, 0, 0};

struct Point {
    double x = 0, y = 0;
};
struct Box {
    double x = 0, y = 0, width = 0, height = 0;
    double right() const { return x + width; }
    double bottom() const { return y + height; }
    Point centre() const { return {x + width / 2, y + height / 2}; }
    Box grown(double by) const { return {x - by, y - by, width + 2 * by, height + 2 * by}; } ///< on every side
    bool contains(Point p) const { return p.x >= x && p.x < right() && p.y >= y && p.y < bottom(); }
};

/// What a drawable represents, for hover and click. Token marks use Token with the index.
struct PickId {
    enum class Kind : std::uint8_t { None, Token, Cell, Node, Handle, Legend };
    Kind kind = Kind::None;
    std::int64_t index = -1;
    friend bool operator==(const PickId&, const PickId&) = default;
};

struct Stroke {
    Colour colour = kTransparent;
    double width = 1;
    std::vector<double> dash; ///< lengths in logical pixels, empty: solid
};

/// All coordinates are logical pixels, origin top left, y down.
struct RectangleItem {
    Box box;
    Colour fill = kTransparent;
    Stroke stroke;
    double radius = 0;
    PickId pick;
};
struct PolylineItem {
    std::vector<Point> points;
    Stroke stroke;
    bool closed = false;
    PickId pick;
};
struct PolygonItem {
    std::vector<Point> points;
    Colour fill;
    Stroke stroke;
}; ///< any simple polygon
struct CircleItem {
    Point centre;
    double radius = 1;
    Colour fill = kTransparent;
    Stroke stroke;
    PickId pick;
};

enum class FontFace { Interface, Monospace };
enum class FontWeight { Regular = 400, Medium = 500, SemiBold = 600, Bold = 700 };
struct TextStyle {
    FontFace face = FontFace::Interface;
    double size = 11; ///< logical pixels
    FontWeight weight = FontWeight::Regular;
    bool italic = false;
    friend bool operator==(const TextStyle&, const TextStyle&) = default;
};
enum class HorizontalAlign { Left, Centre, Right };
enum class VerticalAlign { Top, Middle, Baseline, Bottom };
struct TextItem {
    Point position;   ///< the anchor named by the alignments
    std::string text; ///< UTF-8, one line
    TextStyle style;
    Colour colour;
    HorizontalAlign horizontal = HorizontalAlign::Left;
    VerticalAlign vertical = VerticalAlign::Baseline;
    double angleDegrees = 0; ///< clockwise about the position
};

/// Straight RGBA, row-major, drawn without smoothing.
struct ImageItem {
    Box box;
    int width = 0, height = 0;
    std::shared_ptr<const std::vector<std::uint8_t>> rgba;
    PickId pick; ///< with kind Cell the index is that of the pixel, row by row
};

enum class Marker { Circle, Square, Diamond, TriangleUp, TriangleDown, Hexagon, Star, Plus, Cross };
/// Many equal marks in one item; mark i has pick {pickKind, ids[i]} (ids empty: i).
struct PointCloudItem {
    Deferred<std::vector<Point>> points; ///< painters do not ask for those of invisible marks
    Deferred<std::vector<std::int64_t>> ids;
    PickId::Kind pickKind = PickId::Kind::None;
    Marker marker = Marker::Circle;
    double radius = 2;
    Colour fill = kTransparent;
    Stroke stroke;
    std::string name; ///< "kept", "evicted": name of the layer in the text form and in tests
};

struct PushClipItem {
    Box box;
};
struct PopClipItem {};

using Drawable = std::variant<RectangleItem, PolylineItem, PolygonItem, CircleItem, TextItem, ImageItem, PointCloudItem,
                              PushClipItem, PopClipItem>;

/// A picture as a list of drawables, drawn in order.
struct Scene {
    double width = 0, height = 0;
    Colour background;
    std::vector<Drawable> items;
    Box plot; ///< the data area, for zoom and pan; empty box: none
    /// Data ranges shown in `plot` after fitting and padding; empty when the view has no axes.
    double xMin = 0, xMax = 0, yMin = 0, yMax = 0;
    bool yDown = false; ///< yMin lies at the top of the plot (maps), else at its bottom

    /// The data under a point of the plot, which must not be empty.
    Point dataAt(Point pixel) const {
        const double down = (pixel.y - plot.y) / plot.height * (yMax - yMin);
        return {xMin + (pixel.x - plot.x) / plot.width * (xMax - xMin), yDown ? yMin + down : yMax - down};
    }
};

double distanceToSegment(Point p, Point a, Point b);

/// The pick of the topmost drawable that has one, within `tolerance` pixels of the point.
PickId pickAt(const Scene& scene, Point point, double tolerance);

/// The box of the rectangle with this pick.
std::optional<Box> boxOfPick(const Scene& scene, PickId pick);

/// The first and the last of the tokens that stand in boxes, as in a text; nothing if there are none.
std::optional<std::pair<std::int64_t, std::int64_t>> tokensInBoxes(const Scene& scene);

} // namespace kvscope
