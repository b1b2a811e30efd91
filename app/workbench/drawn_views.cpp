// One place decides whether a picture waits for the next one.
#include "app/workbench/drawn_views.h"

#include "core/run/run.h"

#include <algorithm>
#include <optional>
#include <span>

namespace kvscope {

namespace {

std::span<const PaneData> drawnPanes(const ViewInput& input, int pane) {
    const std::span<const PaneData> all(input.panes);
    if (pane < 0) return all;
    return static_cast<std::size_t>(pane) < all.size() ? all.subspan(static_cast<std::size_t>(pane), 1)
                                                       : std::span<const PaneData>();
}

bool namesFile(const std::string& error, const CaptureReader& capture) {
    const std::string& path = capture.info().path; // a live context has none
    return !path.empty() && error.find(path) != std::string::npos;
}

/// Shortens errors about the capture's file, which the window states once.
void shortenErrors(ViewInput& input) {
    constexpr const char* said = "The file holds no usable numbers of this layer: the message above says why.";
    if (!isLayerBroken(input)) return;
    for (PaneData& pane : input.panes) pane.error = said;
    if (namesFile(input.data.error, *input.capture)) input.data.error = said;
}

bool differInBudgetAlone(const RunRequest& a, const RunRequest& b) {
    return a.capture == b.capture && a.layer == b.layer && a.cut.token == b.cut.token && a.policy == b.policy &&
           a.seed == b.seed && a.random == b.random && a.recorded == b.recorded;
}

/// `drawn` with the results that a drag of the budget has measured since then. Empty unless all panes have one, and
/// panes of equal budget have theirs from the same step of the drag: a picture may compare them.
std::optional<ViewInput> measuredSince(ViewInput drawn, const ViewInput& now) {
    if (drawn.panes.size() != now.panes.size()) return std::nullopt;
    const auto budgetIn = [](const PaneData& of) { return of.result->request.budget; };
    for (std::size_t i = 0; i < drawn.panes.size(); ++i) {
        PaneData& pane = drawn.panes[i];
        const PaneData& newer = now.panes[i];
        if (!pane.result || !newer.result || !newer.measured ||
            !differInBudgetAlone(newer.measured->request, pane.result->request))
            return std::nullopt;
        pane.result = pane.measured = newer.measured;
        const bool isOneBudget = budgetIn(newer) == budgetIn(now.panes[0]);
        if (isOneBudget && !(budgetIn(pane) == budgetIn(drawn.panes[0]))) return std::nullopt;
    }
    return drawn;
}

} // namespace

bool isLayerBroken(const ViewInput& input) {
    return input.capture && !input.panes.empty() && std::ranges::all_of(input.panes, [&](const PaneData& pane) {
               return namesFile(pane.error, *input.capture);
           });
}

DrawnView DrawnViews::update(const View& view, int pane, ViewInput now, ParameterValues options) {
    shortenErrors(now);
    const std::pair key(view.card().id, pane);
    const std::span<const PaneData> panes = drawnPanes(now, pane);
    const bool isComputing = now.data.computing || std::ranges::any_of(panes, &PaneData::computing);
    const bool hasPicture = view.whyNoPicture(now, options).empty();
    if (const auto latest = m_latest.find(key); !hasPicture && isComputing && latest != m_latest.end()) {
        DrawnView& kept = latest->second;
        if (view.card().data.empty()) // all that it shows is in the results
            if (auto since = measuredSince(kept.input, now); since && view.whyNoPicture(*since, kept.options).empty())
                kept.input = *std::move(since);
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
