// Each pixel of the layer holds the fraction of the background that still shows; a mark multiplies it by 1 - opacity x
// coverage. Marks lie at 32nds of a pixel, so that the coverage of a mark is computed once per sub-pixel position.
#include "app/export/mark_layer.h"

#include <cmath>

namespace kvscope {

namespace {

/// Bilinear interpolation, with zeros beyond the edges; the centre of pixel (0, 0) lies at (0.5, 0.5).
double smoothed(const MarkerBitmap& bitmap, double x, double y) {
    const auto at = [&](double column, double row) {
        const bool inside = column >= 0 && row >= 0 && column < bitmap.size && row < bitmap.size;
        return inside ? static_cast<double>(bitmap.coverage[static_cast<std::size_t>(row * bitmap.size + column)]) : 0;
    };
    const double left = std::floor(x - 0.5), top = std::floor(y - 0.5), dx = x - 0.5 - left, dy = y - 0.5 - top;
    return (1 - dy) * ((1 - dx) * at(left, top) + dx * at(left + 1, top)) +
           dy * ((1 - dx) * at(left, top + 1) + dx * at(left + 1, top + 1));
}

} // namespace

const float* MarkLayer::Stamps::at(int phaseX, int phaseY) {
    std::vector<float>& stamp = byPhase[static_cast<std::size_t>(phaseY * kPhases + phaseX)];
    if (!stamp.empty()) return stamp.data();
    const auto texel = [](int pixel, int phase) {
        return kMarkFineness * (pixel + 0.5 - static_cast<double>(phase) / kPhases);
    };
    for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column)
            stamp.push_back(static_cast<float>(smoothed(bitmap, texel(column, phaseX), texel(row, phaseY)) / 255));
    return stamp.data();
}

MarkLayer::Stamps& MarkLayer::stampsOf(const Mark& mark, double scale) {
    constexpr std::size_t kMostMarks = 64;
    if (m_stamps.size() > kMostMarks) m_stamps.clear();
    Stamps& stamps = m_stamps[{mark.marker, mark.radius, mark.strokeWidth, scale}];
    if (stamps.side > 0) return stamps;
    const double fine = kMarkFineness * scale;
    stamps.bitmap = rasteriseMarker(mark.marker, mark.radius * fine, mark.strokeWidth * fine);
    stamps.side = static_cast<int>(std::ceil(stamps.bitmap.size / kMarkFineness)) + 1;
    return stamps;
}

MarkLayer::Picture MarkLayer::paint(const std::vector<Point>& points, const Mark& mark, const Box& clip, double scaleX,
                                    double scaleY) {
    Stamps& stamps = stampsOf(mark, scaleX);
    const int side = stamps.side;
    const double half = stamps.bitmap.size / kMarkFineness / 2;
    const int left = static_cast<int>(std::floor(clip.x * scaleX)) - side,
              top = static_cast<int>(std::floor(clip.y * scaleY)) - side,
              width = static_cast<int>(std::ceil(clip.right() * scaleX)) - left + side,
              height = static_cast<int>(std::ceil(clip.bottom() * scaleY)) - top + side;
    m_open.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 1.0F);
    const float opacity = static_cast<float>(mark.colour.a) / 255;
    for (const Point& point : points) {
        // The corner in 32nds of a pixel of the layer; with the 0.5 the conversion to int rounds.
        const double x = (point.x * scaleX - half - left) * kPhases + 0.5,
                     y = (point.y * scaleY - half - top) * kPhases + 0.5;
        if (!(x >= 0 && y >= 0 && x < (width - side) * kPhases && y < (height - side) * kPhases)) continue;
        const int column = static_cast<int>(x) / kPhases, row = static_cast<int>(y) / kPhases;
        const float* stamp = stamps.at(static_cast<int>(x) % kPhases, static_cast<int>(y) % kPhases);
        float* open = m_open.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + column;
        for (int i = 0; i < side; ++i, open += width, stamp += side)
            for (int j = 0; j < side; ++j) open[j] *= 1 - opacity * stamp[j];
    }
    std::array<QRgb, 256> shades{}; // by opacity
    for (int alpha = 0; alpha < 256; ++alpha)
        shades[static_cast<std::size_t>(alpha)] =
            qPremultiply(qRgba(mark.colour.r, mark.colour.g, mark.colour.b, alpha));
    QImage image(width, height, QImage::Format_ARGB32_Premultiplied);
    const float* open = m_open.data();
    for (int row = 0; row < height; ++row) {
        auto* pixels = reinterpret_cast<QRgb*>(image.scanLine(row));
        for (int column = 0; column < width; ++column)
            pixels[column] = shades[static_cast<std::size_t>(255.5F - 255 * *open++)];
    }
    return {std::move(image), {left, top}};
}

} // namespace kvscope
