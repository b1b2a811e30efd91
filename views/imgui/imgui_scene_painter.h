#pragma once

#include "views/imgui/texture_pages.h"
#include "views/scene/scene.h"
#include "views/scene/text_service.h"

struct ImDrawList;

namespace kvscope {

/// Paints scenes into a draw list, in scene coordinates; the renderer scales them to device pixels. Text is rasterised
/// at `deviceScale` and snapped to device pixels. Needs the GL context current in which it was first used, also when it
/// is destroyed.
class ImGuiScenePainter {
public:
    explicit ImGuiScenePainter(const TextService& text) : m_text(text), m_textures(text) {}

    void paint(const Scene& scene, ImDrawList& list, double deviceScale);

private:
    void paintText(const TextItem& item, ImDrawList& list, double deviceScale);
    void paintCloud(const PointCloudItem& item, ImDrawList& list, double deviceScale);

    const TextService& m_text;
    TexturePages m_textures;
};

} // namespace kvscope
