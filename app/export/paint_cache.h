#pragma once

#include "app/export/image_pictures.h"
#include "app/export/mark_layer.h"
#include "app/export/text_pictures.h"

namespace kvscope {

/// What a canvas keeps from one frame to the next.
struct PaintCache {
    MarkLayer marks;
    TextPictures texts;
    ImagePictures images;

    void beginFrame() {
        texts.beginFrame();
        images.beginFrame();
    }
};

} // namespace kvscope
