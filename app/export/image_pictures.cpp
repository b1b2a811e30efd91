// Qt has fast paths only for premultiplied pixels: with them a map of 32,768 tokens takes a quarter of the time.
#include "app/export/image_pictures.h"

namespace kvscope {

QImage imageOf(const ImageItem& item) {
    return {item.rgba->data(), item.width, item.height, item.width * 4, QImage::Format_RGBA8888};
}

void ImagePictures::beginFrame() {
    std::erase_if(m_images, [](const auto& entry) { return !entry.second.isUsed; });
    for (auto& [pixels, entry] : m_images) entry.isUsed = false;
}

const QImage& ImagePictures::of(const ImageItem& item) {
    Entry& entry = m_images[item.rgba.get()];
    if (!entry.pixels) entry = {item.rgba, imageOf(item).convertToFormat(QImage::Format_ARGB32_Premultiplied), false};
    entry.isUsed = true;
    return entry.image;
}

} // namespace kvscope
