// Token texts are many and small: packed on shelves of a few large textures they cost one draw call a page instead of
// one each.
#include "views/imgui/texture_pages.h"

#include "views/scene/marker_bitmap.h"

#include <GL/gl.h>

#include <algorithm>
#include <array>

namespace kvscope {

namespace {

constexpr int kPageSize = 1024;
constexpr std::size_t kMostPages = 16;
// GL 1.2, missing in some gl.h: no smoothing across the edge of a texture.
constexpr GLint kClampToEdge = 0x812F;

std::uint32_t makeTexture(int width, int height, const void* rgba, GLint filter) {
    GLuint texture = 0;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, filter);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, filter);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, kClampToEdge);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, kClampToEdge);
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, rgba);
    return texture;
}

void deleteTexture(std::uint32_t texture) {
    const GLuint name = texture;
    glDeleteTextures(1, &name);
}

/// White with the coverage as alpha, for tinting by the vertex colour; coloured glyphs as they are.
std::vector<std::uint8_t> pixelsOf(const TextBitmap& bitmap) {
    const std::size_t count = static_cast<std::size_t>(bitmap.width) * static_cast<std::size_t>(bitmap.height);
    std::vector<std::uint8_t> rgba(count * 4, 255);
    for (std::size_t i = 0; i < count; ++i) {
        if (bitmap.colourPixels.empty()) {
            rgba[4 * i + 3] = bitmap.coverage[i];
            continue;
        }
        for (std::size_t c = 0; c < 4; ++c)
            rgba[4 * i + c] = static_cast<std::uint8_t>(bitmap.colourPixels[i] >> (8 * c));
    }
    return rgba;
}

std::string keyOf(const std::string& utf8, const TextStyle& style, double scale) {
    const std::array<double, 5> rest{static_cast<double>(style.face), style.size, static_cast<double>(style.weight),
                                     style.italic ? 1.0 : 0.0, scale};
    return utf8 + std::string(reinterpret_cast<const char*>(rest.data()), sizeof(rest));
}

} // namespace

TexturePages::~TexturePages() {
    clearText();
    for (const auto& [name, image] : m_images) deleteTexture(image.texture);
}

void TexturePages::clearText() {
    for (const Page& page : m_pages) deleteTexture(page.texture);
    m_pages.clear();
    m_runs.clear();
}

void TexturePages::beginFrame() {
    if (m_pages.size() > kMostPages) clearText();
    std::erase_if(m_images, [](const auto& entry) {
        if (!entry.second.used) deleteTexture(entry.second.texture);
        return !entry.second.used;
    });
    for (auto& [name, image] : m_images) image.used = false;
}

TexturePages::Page& TexturePages::addPage(int width, int height) {
    const std::vector<std::uint8_t> empty(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4, 0);
    m_pages.push_back({makeTexture(width, height, empty.data(), GL_LINEAR), width, height, 0, 0, 0});
    return m_pages.back();
}

TexturePages::Page& TexturePages::pageFor(int width, int height) {
    if (width >= kPageSize || height >= kPageSize) { // a long sentence at a large scale has a page of its own
        Page& own = addPage(width + 1, height + 1);
        if (m_pages.size() < 2) return own;
        std::swap(own, m_pages[m_pages.size() - 2]); // the open page stays the last one
        return m_pages[m_pages.size() - 2];
    }
    // One transparent pixel between neighbours, or the smoothing of one run would pick up the next.
    if (!m_pages.empty()) {
        Page& page = m_pages.back();
        if (page.x + width + 1 > page.width) {
            page.x = 0;
            page.y += page.shelfHeight + 1;
            page.shelfHeight = 0;
        }
        if (page.x + width + 1 <= page.width && page.y + height + 1 <= page.height) return page;
    }
    return addPage(kPageSize, kPageSize);
}

TexturePatch TexturePages::place(const std::vector<std::uint8_t>& rgba, int width, int height, int rowLength) {
    Page& page = pageFor(width, height);
    glBindTexture(GL_TEXTURE_2D, page.texture);
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, rowLength);
    glTexSubImage2D(GL_TEXTURE_2D, 0, page.x, page.y, width, height, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
    const auto u = [&](int x) { return static_cast<float>(x) / static_cast<float>(page.width); };
    const auto v = [&](int y) { return static_cast<float>(y) / static_cast<float>(page.height); };
    TexturePatch patch;
    patch.texture = page.texture;
    patch.u0 = u(page.x), patch.v0 = v(page.y), patch.u1 = u(page.x + width), patch.v1 = v(page.y + height);
    page.x += width + 1;
    page.shelfHeight = std::max(page.shelfHeight, height);
    return patch;
}

TexturePatch TexturePages::text(const std::string& utf8, const TextStyle& style, double scale) {
    const std::string key = keyOf(utf8, style, scale);
    if (const auto known = m_runs.find(key); known != m_runs.end()) return known->second;
    const TextBitmap bitmap = m_text.rasterise(utf8, style, scale);
    GLint largest = 0; // texture
    glGetIntegerv(GL_MAX_TEXTURE_SIZE, &largest);
    const int most = std::max<int>(kPageSize, largest) - 1, width = std::min(bitmap.width, most),
              height = std::min(bitmap.height, most);
    if (width <= 0 || height <= 0) return m_runs[key] = {};
    TexturePatch patch = place(pixelsOf(bitmap), width, height, bitmap.width);
    patch.left = bitmap.left, patch.top = bitmap.top;
    patch.width = width / scale, patch.height = height / scale;
    patch.coloured = !bitmap.colourPixels.empty();
    return m_runs[key] = patch;
}

TexturePatch TexturePages::mark(Marker marker, double radius, double strokeWidth, double scale) {
    const double fine = kMarkFineness * scale;
    const std::array<double, 4> parts{static_cast<double>(marker), radius, strokeWidth, scale};
    const std::string key = '\1' + std::string(reinterpret_cast<const char*>(parts.data()), sizeof(parts));
    if (const auto known = m_runs.find(key); known != m_runs.end()) return known->second;
    const MarkerBitmap bitmap = rasteriseMarker(marker, radius * fine, strokeWidth * fine);
    std::vector<std::uint8_t> rgba(bitmap.coverage.size() * 4, 255);
    for (std::size_t i = 0; i < bitmap.coverage.size(); ++i) rgba[4 * i + 3] = bitmap.coverage[i];
    TexturePatch patch = place(rgba, bitmap.size, bitmap.size, bitmap.size);
    patch.width = patch.height = bitmap.size / fine;
    patch.left = patch.top = -patch.width / 2;
    return m_runs[key] = patch;
}

std::uint32_t TexturePages::image(const ImageItem& item) {
    if (!item.rgba || item.width <= 0 || item.height <= 0) return 0;
    Image& image = m_images[item.rgba.get()];
    if (!image.pixels) {
        image.pixels = item.rgba;
        image.texture = makeTexture(item.width, item.height, item.rgba->data(), GL_NEAREST);
    }
    image.used = true;
    return image.texture;
}

} // namespace kvscope
