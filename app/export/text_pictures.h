#pragma once

#include "views/scene/scene.h"
#include "views/scene/text_service.h"

#include <QImage>
#include <QPoint>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace kvscope {

/// Runs of text as pictures, kept from one frame to the next: QPainter alone would shape every run anew.
class TextPictures {
public:
    struct Picture {
        QImage image;  ///< premultiplied, in the text's colour
        QPoint corner; ///< device pixels from where the baseline begins
        TextExtent extent;
        std::uint64_t frame = 0; ///< the last one that drew it
    };

    /// Once per frame: when all runs take too much memory, forgets those that the last frame did not draw.
    void beginFrame();
    /// `scale`: device pixels per logical pixel.
    const Picture& of(const TextItem& item, double scale);

private:
    using Key = std::tuple<std::string, FontFace, double, FontWeight, bool, std::uint32_t, double>;

    std::map<Key, Picture> m_pictures;
    qsizetype m_bytes = 0; ///< of their pixels
    std::uint64_t m_frame = 0;
};

} // namespace kvscope
