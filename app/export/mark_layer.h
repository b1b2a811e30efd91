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

/// Paints many equal marks of one colour as one picture of the pixels they cover. Marks of one colour hide the ground
/// as if one after the other were blended over it, in any order: only the product of what they let through counts.
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
    /// The marks that touch `clip`. `scaleX`, `scaleY`: device pixels for a logical one.
    Picture paint(const std::vector<Point>& points, const Mark& mark, const Box& clip, double scaleX, double scaleY);

private:
    static constexpr int kPhases = 32; ///< places of a mark between two pixels, in both directions
    /// The coverage of a mark's pixels, by the place of its corner between pixels.
    struct Stamps {
        int side = 0; ///< pixels
        MarkerBitmap bitmap;
        std::array<std::vector<float>, kPhases * kPhases> byPhase; ///< [side, side], made when first needed

        const float* at(int phaseX, int phaseY);
    };
    Stamps& stampsOf(const Mark& mark, double scale);

    std::map<std::tuple<Marker, double, double, double>, Stamps> m_stamps;
    std::vector<float> m_open; ///< [height, width] share of the ground that shows
};

} // namespace kvscope
