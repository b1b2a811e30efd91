#pragma once

#include "views/imgui/texture_pages.h"
#include "views/scene/scene.h"
#include "views/scene/text_service.h"

#include <array>
#include <cstddef>
#include <vector>

struct ImDrawList;

namespace kvscope {

/// Paints scenes into a draw list, in scene coordinates; the renderer scales them to device pixels. Text is rasterised
/// at `deviceScale` and snapped to device pixels. The GL context in which a painter was first used must be current in
/// every later use and when the painter is destroyed.
class ImGuiScenePainter {
public:
    explicit ImGuiScenePainter(const TextService& text) : m_text(text), m_textures(text) {}

    void paint(const Scene& scene, ImDrawList& list, double deviceScale);

private:
    void paintText(const TextItem& item, ImDrawList& list, double deviceScale);
    void paintImage(const ImageItem& item, ImDrawList& list);
    void paintCloud(const PointCloudItem& item, ImDrawList& list, double deviceScale);
    void paintCircle(const CircleItem& item, ImDrawList& list, double deviceScale);

    const TextService& m_text;
    TexturePages m_textures;
};

/// Ear clipping of any simple polygon (either winding): indices of its triangles. O(n^3) at worst. Fewer than three
/// points give nothing; a polygon that crosses itself gives only the triangles found up to there.
std::vector<std::array<std::size_t, 3>> triangulate(const std::vector<Point>& points);

/// Whether all corners turn the same way, once round: such a polygon is filled in one piece, without seams between
/// triangles.
bool isConvex(const std::vector<Point>& points);

/// The line, cut where ImGui's joints look wrong: at a sharp turn they thin both segments out, and beside a segment
/// that is hardly longer than the line is wide they bulge. Every piece begins where the one before ends. A closed line
/// comes back to its first point.
std::vector<std::vector<Point>> jointPieces(const std::vector<Point>& line, double width, bool closed);

/// The drawn pieces of a dashed line: on, off, on ... lengths repeat along the whole line.
std::vector<std::vector<Point>> dashes(const std::vector<Point>& line, const std::vector<double>& pattern, bool closed);

} // namespace kvscope
