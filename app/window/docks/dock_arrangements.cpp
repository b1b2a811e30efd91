// The default arrangement of every layout: capture and panes on the left, the active pane's policy or the lesson on the
// right, views between. A dock hidden in a layout still has a place, where the View menu shows it.
#include "app/window/docks/dock_layout.h"

#include "app/study/session.h"
#include "app/window/style/appearance.h"

#include <QMainWindow>
#include <QTimer>

#include <algorithm>
#include <array>
#include <utility>

namespace kvscope {

namespace {

constexpr std::array kPlaced = {"capture",     "panes",   "parameters",       "explanation", "fidelity",     "why",
                                "token_strip", "overlap", "error_difference", "metrics",     "attention_map"};
constexpr int kHeader = 28;
// Views with a step sequence, and views that show one step in detail, in order of preference.
const std::vector<const char*> kStepViews = {"merge_tree", "block_timeline", "clustering",   "calibration",
                                             "leverage",   "score_plane",    "attention_map"};
const std::vector<const char*> kDetails = {"walk", "token_profile", "token_strip", "curves", "overlap"};

} // namespace

void DockLayout::arrangeByDefault() {
    // All docks are docked before any is removed: Qt hides and shows a dock at setFloating and lays out the window
    // meanwhile.
    for (PanelDock* dock : m_docks)
        if (dock->isFloating())
            dock->setFloating(false);
    for (PanelDock* dock : m_docks)
        m_window.removeDockWidget(dock);
    m_inFront.clear();
    if (m_layout == WindowLayout::Teach)
        arrangeTeach();
    else if (m_layout == WindowLayout::WholeModel)
        arrangeModel();
    else
        arrangePanes();
    shareSpace();
    // Repeated when the tab bars exist and have their heights.
    QTimer::singleShot(0, this, [this] {
        shareSpace();
        for (PanelDock* dock : std::exchange(m_inFront, {}))
            dock->raise();
    });
}

void DockLayout::arrangePanes() {
    // Explore head shows the attention map beside the pane and the text below both.
    m_window.setCorner(Qt::BottomLeftCorner,
                       m_layout == WindowLayout::ExploreHead ? Qt::BottomDockWidgetArea : Qt::LeftDockWidgetArea);
    placeLeft();
    placeRight();
    placeBottom();
    std::vector<PanelDock*> shown;
    for (const char* id : kPlaced)
        if (m_layout == WindowLayout::ExploreHead || dock(id) != dock("attention_map"))
            shown.push_back(dock(id));
    hideAllBut(shown);
    if (m_size == WindowSize::Narrow)
        toggleLeft();
    if (m_size != WindowSize::Narrow && !hasOneRow())
        m_inFront.push_back(dock("error_difference"));
    for (const char* front : {"parameters", "fidelity", "overlap", hasOneRow() ? "token_strip" : "overlap"})
        m_inFront.push_back(dock(front));
}

PanelDock* DockLayout::firstOf(const std::vector<const char*>& ids) const {
    const auto found = std::find_if(ids.begin(), ids.end(), [this](const char* id) { return dock(id) != nullptr; });
    return found == ids.end() ? nullptr : dock(*found);
}

void DockLayout::placeTabs(const std::vector<const char*>& ids, PanelDock* first) {
    for (const char* id : ids)
        if (PanelDock* one = dock(id); one && one != first)
            m_window.tabifyDockWidget(first, one);
}

void DockLayout::hideAllBut(const std::vector<PanelDock*>& shown) {
    for (PanelDock* dock : m_docks)
        dock->setVisible(std::find(shown.begin(), shown.end(), dock) != shown.end());
}

void DockLayout::arrangeTeach() {
    m_window.setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("lessons"));
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("lesson"));
    m_window.splitDockWidget(dock("lesson"), dock("explanation"), Qt::Vertical);
    for (const char* other : {"parameters", "fidelity", "why"})
        m_window.tabifyDockWidget(dock("explanation"), dock(other));
    // A dock with tabs cannot be split, so the three places come first, then their tabs.
    PanelDock *stepView = firstOf(kStepViews), *detail = firstOf(kDetails);
    m_window.splitDockWidget(dock("lessons"), stepView, Qt::Horizontal);
    m_window.splitDockWidget(stepView, detail, Qt::Vertical);
    m_window.splitDockWidget(detail, dock("steps"), Qt::Vertical);
    placeTabs(kStepViews, stepView);
    placeTabs(kDetails, detail);
    for (const char* other : {"capture", "panes"})
        m_window.tabifyDockWidget(dock("lessons"), dock(other));
    std::vector<PanelDock*> shown = {dock("lessons"),    dock("lesson"),   dock("explanation"),
                                     dock("parameters"), dock("fidelity"), dock("steps")};
    for (PanelDock* other : m_docks) {
        const bool placed = m_window.dockWidgetArea(other) != Qt::NoDockWidgetArea;
        if (!placed)
            m_window.tabifyDockWidget(detail, other);
        const bool ours = m_window.tabifiedDockWidgets(stepView).contains(other) ||
                          m_window.tabifiedDockWidgets(detail).contains(other);
        if (placed && ours)
            shown.push_back(other);
    }
    shown.insert(shown.end(), {stepView, detail});
    hideAllBut(shown);
    if (m_size == WindowSize::Narrow)
        toggleLeft();
    m_inFront = {stepView, detail, dock("explanation")};
}

void DockLayout::arrangeModel() {
    m_window.setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("capture"));
    m_window.splitDockWidget(dock("capture"), dock("head_grid"), Qt::Horizontal);
    m_window.splitDockWidget(dock("capture"), dock("panes"), Qt::Vertical);
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("curves"));
    m_window.splitDockWidget(dock("curves"), dock("worst_heads"), Qt::Vertical);
    for (const char* other : {"parameters", "explanation", "fidelity", "why", "lessons", "lesson"})
        m_window.tabifyDockWidget(dock("worst_heads"), dock(other));
    for (PanelDock* other : m_docks)
        if (m_window.dockWidgetArea(other) == Qt::NoDockWidgetArea)
            m_window.tabifyDockWidget(dock("worst_heads"), other);
    hideAllBut({dock("head_grid"), dock("curves"), dock("worst_heads")});
}

void DockLayout::placeLeft() {
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("capture"));
    // Explore head shows the attention map beside the pane; Compare policies needs its room.
    m_window.splitDockWidget(dock("capture"), dock("attention_map"), Qt::Horizontal);
    m_window.splitDockWidget(dock("capture"), dock("panes"), Qt::Vertical);
    if (!whyDockIsOnTheRight())
        m_window.splitDockWidget(dock("panes"), dock("why"), Qt::Vertical);
}

void DockLayout::placeRight() {
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("parameters"));
    m_window.splitDockWidget(dock("parameters"), dock("fidelity"), Qt::Vertical);
    if (whyDockIsOnTheRight())
        m_window.tabifyDockWidget(dock("fidelity"), dock("why"));
    if (m_size == WindowSize::Wide) {
        m_window.addDockWidget(Qt::RightDockWidgetArea, dock("explanation"));
        m_window.splitDockWidget(dock("parameters"), dock("explanation"), Qt::Horizontal);
    } else {
        m_window.tabifyDockWidget(dock("parameters"), dock("explanation"));
    }
}

void DockLayout::placeBottom() {
    m_window.addDockWidget(Qt::BottomDockWidgetArea, dock("overlap"));
    if (hasOneRow())
        m_window.tabifyDockWidget(dock("overlap"), dock("token_strip"));
    else
        m_window.splitDockWidget(dock("overlap"), dock("token_strip"), Qt::Vertical);
    PanelDock* numbers = dock("overlap"); // beside it, or behind it when there is room for one only
    if (m_size != WindowSize::Narrow && !hasOneRow()) {
        m_window.splitDockWidget(dock("overlap"), dock("error_difference"), Qt::Horizontal);
        numbers = dock("error_difference");
        if (m_size == WindowSize::Wide)
            m_window.splitDockWidget(numbers, dock("metrics"), Qt::Horizontal);
    }
    for (const char* other : {"error_difference", "metrics"})
        if (dock(other) != numbers && m_window.dockWidgetArea(dock(other)) == Qt::NoDockWidgetArea)
            m_window.tabifyDockWidget(numbers, dock(other));
    for (PanelDock* view : viewsWithoutPlace())
        m_window.tabifyDockWidget(dock("overlap"), view);
}

bool DockLayout::hasOneRow() const {
    return m_layout == WindowLayout::ExploreHead || m_short; // tabbed below the panes
}

bool DockLayout::whyDockIsOnTheRight() const {
    return m_size == WindowSize::Narrow || m_layout == WindowLayout::ExploreHead; // the left is folded or short
}

std::vector<PanelDock*> DockLayout::viewsWithoutPlace() const {
    std::vector<PanelDock*> views;
    for (PanelDock* dock : m_docks)
        if (std::find(kPlaced.begin(), kPlaced.end(), dock->id()) == kPlaced.end())
            views.push_back(dock);
    return views;
}

void DockLayout::shareSpace() {
    if (m_byHand)
        return;
    m_shared = m_window.size();
    if (m_layout == WindowLayout::Teach)
        shareTeach();
    else if (m_layout == WindowLayout::WholeModel)
        shareModel();
    else
        sharePanes();
}

void DockLayout::shareTeach() {
    const bool wide = m_size == WindowSize::Wide, narrow = m_size == WindowSize::Narrow;
    const int left = narrow ? 0 : wide ? 288 : 248, right = wide ? 400 : narrow ? 288 : 312;
    const int middle = static_cast<int>(m_window.width() / appearance().scale) - left - right - (narrow ? 44 : 0) - 12;
    const int height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    const int player = kHeader + (narrow ? 130 : 140), detail = (narrow ? 170 : 212) + kTabs;
    const auto present = [this](const std::vector<const char*>& ids) {
        const auto found =
            std::find_if(ids.begin(), ids.end(), [this](const char* id) { return dock(id) && !dock(id)->isHidden(); });
        return found == ids.end() ? nullptr : dock(*found);
    };
    PanelDock *stepView = present(kStepViews), *close = present(kDetails);
    if (stepView)
        m_window.resizeDocks({dock("lessons"), stepView, dock("lesson")},
                             {std::max(1, px(left)), px(middle), px(right)}, Qt::Horizontal);
    if (stepView && close)
        m_window.resizeDocks({stepView, close, dock("steps")},
                             {px(std::max(200, height - player - detail)), px(detail), px(player)}, Qt::Vertical);
    m_window.resizeDocks({dock("lesson"), dock("explanation")}, {px(height * 0.6), px(height * 0.4)}, Qt::Vertical);
}

void DockLayout::shareModel() {
    const int width = static_cast<int>(m_window.width() / appearance().scale) - 44,
              height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    m_window.resizeDocks({dock("head_grid"), dock("curves")}, {px(width * 0.53), px(width * 0.47)}, Qt::Horizontal);
    m_window.resizeDocks({dock("curves"), dock("worst_heads")}, {px(height * 0.6), px(height * 0.4)}, Qt::Vertical);
}

void DockLayout::sharePanes() {
    const bool wide = m_size == WindowSize::Wide, narrow = m_size == WindowSize::Narrow;
    const int right = wide ? 360 : narrow ? 288 : 312;
    const int left = wide ? 288 : 248;
    m_window.resizeDocks({dock("capture"), dock("parameters")}, {px(left), px(right)}, Qt::Horizontal);
    if (m_layout == WindowLayout::ExploreHead) {
        const int rest = static_cast<int>(m_window.width() / appearance().scale) - right - (wide ? 400 : 0) -
                         (narrow ? 44 : left) - 24;
        m_window.resizeDocks({dock("attention_map")}, {px(rest / 2.0)}, Qt::Horizontal);
    }
    if (wide)
        m_window.resizeDocks({dock("parameters"), dock("explanation")}, {px(right), px(400)}, Qt::Horizontal);
    const int text = kHeader + (wide     ? 262
                                : narrow ? 114
                                         : 138),
              row = kHeader + (narrow ? 134 + kTabs
                               : wide ? 158
                                      : 150 + kTabs);
    // The parameters get the remaining height: they are the longest panel and scroll well.
    const int fidelity = 212, why = 196, panes = 176; // four policies and the row that adds one
    const int height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    m_window.resizeDocks({dock("parameters"), dock("fidelity")}, {px(std::max(200, height - fidelity)), px(fidelity)},
                         Qt::Vertical);
    if (whyDockIsOnTheRight())
        m_window.resizeDocks({dock("capture"), dock("panes")}, {px(height - panes), px(panes)}, Qt::Vertical);
    else
        m_window.resizeDocks({dock("capture"), dock("panes"), dock("why")},
                             {px(std::max(200, height - panes - why)), px(panes), px(why)}, Qt::Vertical);
    if (hasOneRow())
        return m_window.resizeDocks({dock("token_strip")}, {px(text + kTabs)}, Qt::Vertical);
    m_window.resizeDocks({dock("overlap"), dock("token_strip")}, {px(row), px(text)}, Qt::Vertical);
    if (wide)
        m_window.resizeDocks({dock("overlap"), dock("error_difference"), dock("metrics")}, {px(700), px(560), px(500)},
                             Qt::Horizontal); // the first place is that of views called in
    else if (!narrow)
        m_window.resizeDocks({dock("overlap"), dock("error_difference")}, {px(500), px(460)}, Qt::Horizontal);
}

} // namespace kvscope
