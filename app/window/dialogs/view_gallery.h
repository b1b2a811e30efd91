#pragma once

#include "app/window/dialogs/thumbnail_sheet.h"

namespace kvscope {

/// All views of the session, grouped by the question that they answer.
class ViewGallery : public ThumbnailSheet {
    Q_OBJECT

public:
    ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent);
};

/// One view for all heads of the layer: for all query heads, by KV head, where it is about one of them.
class HeadGallery : public ThumbnailSheet {
    Q_OBJECT

public:
    /// A capture is open, and the view is about one head (`headsOf`).
    HeadGallery(Workbench& workbench, const View& view, const TextService& text, QWidget* parent);
};

} // namespace kvscope
