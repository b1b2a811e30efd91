#include "app/window/dialogs/view_gallery.h"

#include "app/study/makers/view_data_maker.h"
#include "app/window/style/number_text.h"

#include <algorithm>

namespace kvscope {

namespace {

bool hasScope(const View& view, DataScope scope) {
    const ViewDataMaker* maker = makerFor(view);
    return maker && std::ranges::find(maker->scopes, scope) != maker->scopes.end();
}

} // namespace

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
    const int perGroup = info.numQueryHeads / info.numKvHeads;
    const bool ofQueries = hasScope(view, DataScope::QueryHead);
    std::vector<Group> groups;
    for (int kvHead = 0; kvHead < info.numKvHeads; ++kvHead) {
        if (ofQueries || groups.empty())
            groups.push_back({ofQueries ? tr("KV head %1").arg(kvHead) : fromUtf8(view.card().name), {}});
        for (int head = kvHead * perGroup; head < (kvHead + 1) * perGroup; ++head) {
            if (!ofQueries && head > kvHead * perGroup) break;
            auto* card = new ViewThumbnail(view, body());
            card->showHead(QueryHeadIndex(head),
                           ofQueries ? tr("Query head %1").arg(head) : tr("KV head %1").arg(kvHead));
            groups.back().second.push_back(card);
        }
    }
    fill(tr("Type the number of a head; Enter opens it"), std::move(groups));
}

bool HeadGallery::suits(const View& view) {
    return view.card().data.empty() || hasScope(view, DataScope::KvHead) || hasScope(view, DataScope::QueryHead);
}

} // namespace kvscope
