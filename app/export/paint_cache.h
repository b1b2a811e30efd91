#pragma once

#include "app/export/mark_layer.h"
#include "app/export/text_pictures.h"

namespace kvscope {

/// What a canvas keeps from one of its pictures to the next.
struct PaintCache {
    MarkLayer marks;
    TextPictures texts;
};

} // namespace kvscope
