// Small pictures of all views of this session, by the question that they answer.
#include "app/window/dialogs/view_gallery.h"

#include "app/study/session_requests.h"
#include "app/window/style/number_text.h"

namespace kvscope {

ViewGallery::ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent)
    : ThumbnailSheet(workbench, text, parent) {
    setObjectName("viewGallery");
    setWindowTitle(tr("Views"));
    std::vector<Group> groups;
    for (const char* name : kViewGroups) {
        groups.push_back({fromUtf8(name), {}});
        for (const View* view : allViews())
            if (kViewGroups[static_cast<std::size_t>(view->card().group)] == name)
                groups.back().second.push_back(new ViewThumbnail(*view, body()));
    }
    fill(tr("Type what you look for: a name, a question, a paper; Enter opens the first"), std::move(groups));
}

HeadGallery::HeadGallery(Workbench& workbench, const View& view, const TextService& text, QWidget* parent)
    : ThumbnailSheet(workbench, text, parent) {
    setObjectName("headGallery");
    setWindowTitle(
        tr("%1: all heads of layer %2").arg(fromUtf8(view.card().name)).arg(workbench.session().layer.value));
    const CaptureInfo& info = workbench.capture()->info();
    const LayerInfo& layer = info.layerInfo(workbench.session().layer);
    const std::vector<QueryHeadIndex> heads = headsOf(view, layer);
    const bool ofQueries = std::ssize(heads) > info.numKvHeads;
    std::vector<Group> groups;
    for (const QueryHeadIndex head : heads) {
        const QString kvHead = tr("KV head %1").arg(layer.gqaGroupOf[static_cast<std::size_t>(head.value)]);
        if (groups.empty() || (ofQueries && groups.back().first != kvHead))
            groups.push_back({ofQueries ? kvHead : fromUtf8(view.card().name), {}});
        auto* card = new ViewThumbnail(view, body());
        card->showHead(head, ofQueries ? tr("Query head %1").arg(head.value) : kvHead);
        groups.back().second.push_back(card);
    }
    fill(tr("Type the number of a head; Enter opens it"), std::move(groups));
    connect(&workbench, &Workbench::captureChanged, this, &QDialog::reject); // its heads are the old capture's
}

} // namespace kvscope
