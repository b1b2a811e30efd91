#pragma once

#include "views/scene/scene.h"
#include "views/scene/text_service.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kvscope {

/// Where a run of text or a mark lies: a rectangle of a texture page and its place relative to the baseline origin, or
/// to the middle of the mark.
struct TexturePatch {
    std::uint32_t texture = 0; ///< 0: nothing to draw
    float u0 = 0, v0 = 0, u1 = 0, v1 = 0;
    double left = 0, top = 0, width = 0, height = 0; ///< logical pixels
    bool coloured = false;                           ///< emoji: drawn as it is, not tinted
};

/// Rasterised text, marks and images as OpenGL textures, made when first asked for and kept while they are used. Every
/// member needs the context current in which the object was first used; destroy it in that context too.
class TexturePages {
public:
    explicit TexturePages(const TextService& text) : m_text(text) {}
    ~TexturePages();
    TexturePages(const TexturePages&) = delete;
    TexturePages& operator=(const TexturePages&) = delete;

    /// Once per frame: forgets images that the last frame did not draw, and all text when it fills too many pages.
    void beginFrame();
    TexturePatch text(const std::string& utf8, const TextStyle& style, double scale);
    /// A mark, filled (stroke width 0) or as an outline; one textured square instead of dozens of triangles.
    TexturePatch mark(Marker marker, double radius, double strokeWidth, double scale);
    std::uint32_t image(const ImageItem& image);

private:
    struct Page {
        std::uint32_t texture = 0;
        int width = 0, height = 0;
        int x = 0, y = 0, shelfHeight = 0; ///< where the next run goes
    };
    struct Image {
        std::shared_ptr<const std::vector<std::uint8_t>> pixels; ///< owned, so that its address stays a unique key
        std::uint32_t texture = 0;
        bool used = false;
    };
    Page& pageFor(int width, int height);
    /// Puts width x height pixels of rows of `rowLength` on a page: texture and coordinates of the patch.
    TexturePatch place(const std::vector<std::uint8_t>& rgba, int width, int height, int rowLength);
    Page& addPage(int width, int height);
    void clearText();

    const TextService& m_text;
    std::vector<Page> m_pages;
    std::unordered_map<std::string, TexturePatch> m_runs; ///< of text, and marks
    std::map<const void*, Image> m_images;
};

} // namespace kvscope
