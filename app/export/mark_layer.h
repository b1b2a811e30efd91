#pragma once

#include "views/scene/marker_bitmap.h"
#include "views/scene/scene.h"

#include <QImage>
#include <QPoint>

#include <array>
#include <map>
#include <tuple>
#include <vector>

namespace kvscope {

/// Paints many equal marks of one colour as one picture of the pixels they cover. Marks of one colour give the same
/// picture in any order: the background is weighted by the product of what each mark lets through.
class MarkLayer {
public:
    struct Mark {
        Marker marker = Marker::Circle;
        double radius = 2, strokeWidth = 0; ///< logical pixels; a width draws the outline alone
        Colour colour;
    };
    struct Picture {
        QImage image;  ///< premultiplied
        QPoint corner; ///< where it lies, in device pixels
    };
    /// Paints the marks that touch `clip`. `scaleX`, `scaleY`: device pixels per logical pixel.
    Picture paint(const std::vector<Point>& points, const Mark& mark, const Box& clip, double scaleX, double scaleY);

private:
    static constexpr int kPhases = 32; ///< sub-pixel positions of a mark, in each direction
    /// The coverage of a mark's pixels, by the sub-pixel position of its corner.
    struct Stamps {
        int side = 0; ///< pixels
        MarkerBitmap bitmap;
        std::array<std::vector<float>, kPhases * kPhases> byPhase; ///< [side, side], made when first needed

        const float* at(int phaseX, int phaseY);
    };
    Stamps& stampsOf(const Mark& mark, double scale);

    std::map<std::tuple<Marker, double, double, double>, Stamps> m_stamps;
    std::vector<float> m_open; ///< [height, width] fraction of the background that shows
};

} // namespace kvscope
