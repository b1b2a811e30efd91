// One place decides whether a picture waits for the next one.
#include "app/workbench/drawn_views.h"

#include <algorithm>
#include <span>

namespace kvscope {

namespace {

std::span<const PaneData> drawnPanes(const ViewInput& input, int pane) {
    const std::span<const PaneData> all(input.panes);
    if (pane < 0) return all;
    return static_cast<std::size_t>(pane) < all.size() ? all.subspan(static_cast<std::size_t>(pane), 1)
                                                       : std::span<const PaneData>();
}

/// Panes and views do not repeat what the window says once.
void shortenErrors(ViewInput& input) {
    constexpr const char* said = "The file holds no usable numbers of this layer: the message above says why.";
    bool isBroken = false;
    for (PaneData& pane : input.panes)
        if (input.capture && namesFile(pane.error, *input.capture)) {
            pane.error = said;
            isBroken = true;
        }
    if (isBroken && namesFile(input.data.error, *input.capture)) input.data.error = said;
}

bool differInBudgetAlone(const RunRequest& a, const RunRequest& b) {
    return a.capture == b.capture && a.layer == b.layer && a.cut.token == b.cut.token && a.policy == b.policy &&
           a.seed == b.seed && a.random == b.random && a.recorded == b.recorded;
}

/// What a drag of the budget has measured on the way in the place of older numbers: of all panes, or of none where that
/// would compare two steps of the drag.
ViewInput measuredSince(ViewInput drawn, const ViewInput& now) {
    const ViewInput older = drawn;
    for (std::size_t i = 0; i < drawn.panes.size(); ++i) {
        PaneData& pane = drawn.panes[i];
        if (drawn.panes.size() != now.panes.size() || !pane.result || !now.panes[i].result || !now.panes[i].measured ||
            !differInBudgetAlone(now.panes[i].measured->request, pane.result->request))
            return older;
        pane.result = pane.measured = now.panes[i].measured;
        const auto budgetIn = [](const PaneData& of) { return of.result->request.budget; };
        const bool isOneBudget = budgetIn(now.panes[i]) == budgetIn(now.panes[0]);
        if (isOneBudget && !(budgetIn(pane) == budgetIn(drawn.panes[0]))) return older;
    }
    return drawn;
}

} // namespace

bool namesFile(const std::string& error, const CaptureReader& capture) {
    const std::string& path = capture.info().path; // a live context has none
    return !path.empty() && error.find(path) != std::string::npos;
}

DrawnView DrawnViews::update(const View& view, int pane, ViewInput now, ParameterValues options) {
    shortenErrors(now);
    const std::pair key(view.card().id, pane);
    const std::span<const PaneData> panes = drawnPanes(now, pane);
    const bool isComputing = now.data.computing || std::ranges::any_of(panes, &PaneData::computing);
    const bool hasPicture = view.whyNoPicture(now, options).empty();
    if (const auto latest = m_latest.find(key); !hasPicture && isComputing && latest != m_latest.end()) {
        DrawnView& kept = latest->second;
        if (ViewInput since = measuredSince(kept.input, now);
            view.card().data.empty() && view.whyNoPicture(since, kept.options).empty())
            kept.input = std::move(since);
        kept.input.focus = std::move(now.focus);
        kept.input.opened = std::move(now.opened);
        kept.input.cursor = now.cursor;
        kept.isOutdated = true;
        return kept;
    }
    DrawnView drawn{std::move(now), std::move(options), false};
    drawn.isOutdated = (pane >= 0 || view.card().data.empty()) &&
                       std::ranges::any_of(drawnPanes(drawn.input, pane), &PaneData::outdated);
    if (hasPicture)
        m_latest.insert_or_assign(key, drawn);
    else
        m_latest.erase(key);
    return drawn;
}

void DrawnViews::forget(const View& view) {
    std::erase_if(m_latest, [&](const auto& entry) { return entry.first.first == view.card().id; });
}

void DrawnViews::clear() { m_latest.clear(); }

} // namespace kvscope
