// A run is rasterised as for the OpenGL painter, then tinted once.
#include "app/export/text_pictures.h"

#include "app/text/qt_text_service.h"

#include <cmath>

namespace kvscope {

namespace {

QImage tinted(const TextBitmap& bitmap, Colour colour) {
    QImage image(bitmap.width, bitmap.height, QImage::Format_ARGB32_Premultiplied);
    for (int y = 0; y < bitmap.height; ++y) {
        auto* pixels = reinterpret_cast<QRgb*>(image.scanLine(y));
        const std::size_t row = static_cast<std::size_t>(y) * static_cast<std::size_t>(bitmap.width);
        for (std::size_t x = 0; x < static_cast<std::size_t>(bitmap.width); ++x) {
            Colour pixel = colour;
            double coverage = 0;
            if (bitmap.colourPixels.empty()) {
                coverage = bitmap.coverage[row + x] / 255.0;
            } else { // emoji keep their colours
                const std::uint32_t own = bitmap.colourPixels[row + x];
                const auto channel = [&](int c) { return static_cast<std::uint8_t>(own >> (8 * c)); };
                pixel = {channel(0), channel(1), channel(2), colour.a};
                coverage = channel(3) / 255.0;
            }
            pixels[x] =
                qPremultiply(qRgba(pixel.r, pixel.g, pixel.b, static_cast<int>(std::lround(coverage * pixel.a))));
        }
    }
    return image;
}

} // namespace

void TextPictures::beginFrame() {
    constexpr qsizetype kMostBytes = 16 << 20;
    if (m_bytes > kMostBytes) {
        std::erase_if(m_pictures, [this](const auto& entry) {
            const bool isDrawn = entry.second.frame == m_frame;
            if (!isDrawn) m_bytes -= entry.second.image.sizeInBytes();
            return !isDrawn;
        });
    }
    ++m_frame;
}

const TextPictures::Picture& TextPictures::of(const TextItem& item, double scale) {
    const auto& [face, size, weight, italic] = item.style;
    const Colour& c = item.colour;
    const auto [entry, isNew] =
        m_pictures.try_emplace({item.text, face, size, weight, italic, qRgba(c.r, c.g, c.b, c.a), scale});
    Picture& picture = entry->second;
    picture.frame = m_frame;
    if (!isNew) return picture;
    const TextBitmap bitmap = rasterisedText(item.text, item.style, scale);
    picture.image = tinted(bitmap, c);
    picture.corner = {static_cast<int>(std::lround(bitmap.left * scale)),
                      static_cast<int>(std::lround(bitmap.top * scale))};
    picture.extent = extentOf(item.text, item.style);
    m_bytes += picture.image.sizeInBytes();
    return picture;
}

} // namespace kvscope
