#pragma once

#include "views/scene/scene.h"

#include <QImage>

#include <map>
#include <memory>
#include <vector>

namespace kvscope {

/// Images as QPainter copies and scales them fastest, kept while they are drawn.
class ImagePictures {
public:
    /// Once per frame: forgets what the last frame did not draw.
    void beginFrame();
    const QImage& of(const ImageItem& item); ///< premultiplied

private:
    struct Entry {
        std::shared_ptr<const std::vector<std::uint8_t>> pixels; ///< owned, so that its address stays a unique key
        QImage image;
        bool isUsed = false;
    };
    std::map<const void*, Entry> m_images;
};

/// The item's own pixels as an image, which must not outlive them.
QImage imageOf(const ImageItem& item);

} // namespace kvscope
