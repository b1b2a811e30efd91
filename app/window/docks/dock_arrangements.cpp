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

constexpr std::array kPanels = {"capture", "panes", "parameters", "explanation", "fidelity", "why", "metrics"};
constexpr std::array kViews = {ViewPlace::Text, ViewPlace::BelowPanes, ViewPlace::BesideRow, ViewPlace::BesidePane};
constexpr int kHeader = 28;

void DockLayout::arrangeByDefault() {
    // All docks are docked before any is removed: Qt hides and shows a dock at setFloating and lays out the window
    // meanwhile.
    for (PanelDock* dock : m_docks)
        if (dock->isFloating()) dock->setFloating(false);
    for (PanelDock* dock : m_docks) m_window.removeDockWidget(dock);
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
        for (PanelDock* dock : std::exchange(m_inFront, {})) dock->raise();
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
    for (const char* id : kPanels) shown.push_back(dock(id));
    for (const ViewPlace place : kViews)
        if (m_layout == WindowLayout::ExploreHead || place != ViewPlace::BesidePane) shown.push_back(dock(place));
    hideAllBut(shown);
    if (m_size == WindowSize::Narrow) foldLeft();
    if (m_size != WindowSize::Narrow && !hasOneRow()) m_inFront.push_back(dock(ViewPlace::BesideRow));
    for (PanelDock* front : {dock("parameters"), dock("fidelity"), dock(ViewPlace::BelowPanes),
                             dock(hasOneRow() ? ViewPlace::Text : ViewPlace::BelowPanes)})
        m_inFront.push_back(front);
}

PanelDock* DockLayout::dock(ViewPlace place) const { return dock(QString::fromStdString(viewAt(place).card().id)); }

std::vector<PanelDock*> DockLayout::teachingDocks(TeachingRole first, TeachingRole others) const {
    std::vector<PanelDock*> docks;
    for (const TeachingRole role : {first, others})
        for (const View* view : allViews())
            if (view->card().teaching == role) docks.push_back(dock(QString::fromStdString(view->card().id)));
    return docks;
}

void DockLayout::placeTabs(const std::vector<PanelDock*>& docks) {
    for (std::size_t i = 1; i < docks.size(); ++i) m_window.tabifyDockWidget(docks.front(), docks[i]);
}

void DockLayout::hideAllBut(const std::vector<PanelDock*>& shown) {
    for (PanelDock* dock : m_docks) dock->setVisible(std::ranges::find(shown, dock) != shown.end());
}

void DockLayout::arrangeTeach() {
    m_window.setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("lessons"));
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("lesson"));
    for (const char* other :
         {"explanation", "parameters", "fidelity", "why"}) // tabs: a lesson's text and question need the full height
        m_window.tabifyDockWidget(dock("lesson"), dock(other));
    // A dock that has tabs cannot be split any more, so the three places are made before their tabs.
    const std::vector<PanelDock*> steps = stepDocks(), details = detailDocks();
    PanelDock *stepView = steps.front(), *detail = details.front();
    m_window.splitDockWidget(dock("lessons"), stepView, Qt::Horizontal);
    m_window.splitDockWidget(stepView, detail, Qt::Vertical);
    m_window.splitDockWidget(detail, dock("steps"), Qt::Vertical);
    placeTabs(steps);
    placeTabs(details);
    for (const char* other : {"capture", "panes"}) m_window.tabifyDockWidget(dock("lessons"), dock(other));
    std::vector<PanelDock*> shown = {dock("lessons"),    dock("lesson"),   dock("explanation"),
                                     dock("parameters"), dock("fidelity"), dock("steps")};
    for (PanelDock* other : m_docks) {
        const bool placed = m_window.dockWidgetArea(other) != Qt::NoDockWidgetArea;
        if (!placed) m_window.tabifyDockWidget(detail, other);
        const bool ours = m_window.tabifiedDockWidgets(stepView).contains(other) ||
                          m_window.tabifiedDockWidgets(detail).contains(other);
        if (placed && ours) shown.push_back(other);
    }
    shown.insert(shown.end(), {stepView, detail});
    hideAllBut(shown);
    if (m_size == WindowSize::Narrow) foldLeft();
    m_inFront = {stepView, detail, dock("lesson")};
}

void DockLayout::arrangeModel() {
    m_window.setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("capture"));
    m_window.splitDockWidget(dock("capture"), dock(ViewPlace::Model), Qt::Horizontal);
    m_window.splitDockWidget(dock("capture"), dock("panes"), Qt::Vertical);
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock(ViewPlace::ModelSide));
    m_window.splitDockWidget(dock(ViewPlace::ModelSide), dock("worst_heads"), Qt::Vertical);
    for (const char* other : {"parameters", "explanation", "fidelity", "why", "lessons", "lesson"})
        m_window.tabifyDockWidget(dock("worst_heads"), dock(other));
    for (PanelDock* other : m_docks)
        if (m_window.dockWidgetArea(other) == Qt::NoDockWidgetArea)
            m_window.tabifyDockWidget(dock("worst_heads"), other);
    hideAllBut({dock(ViewPlace::Model), dock(ViewPlace::ModelSide), dock("worst_heads")});
}

void DockLayout::placeLeft() {
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("capture"));
    // The map stands beside the pane whose head is explored; comparing policies needs its room.
    m_window.splitDockWidget(dock("capture"), dock(ViewPlace::BesidePane), Qt::Horizontal);
    m_window.splitDockWidget(dock("capture"), dock("panes"), Qt::Vertical);
    if (!whyDockIsOnTheRight()) m_window.splitDockWidget(dock("panes"), dock("why"), Qt::Vertical);
}

void DockLayout::placeRight() {
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("parameters"));
    m_window.splitDockWidget(dock("parameters"), dock("fidelity"), Qt::Vertical);
    if (whyDockIsOnTheRight()) m_window.tabifyDockWidget(dock("fidelity"), dock("why"));
    if (m_size == WindowSize::Wide) {
        m_window.addDockWidget(Qt::RightDockWidgetArea, dock("explanation"));
        m_window.splitDockWidget(dock("parameters"), dock("explanation"), Qt::Horizontal);
    } else {
        m_window.tabifyDockWidget(dock("parameters"), dock("explanation"));
    }
}

void DockLayout::placeBottom() {
    m_window.addDockWidget(Qt::BottomDockWidgetArea, dock(ViewPlace::BelowPanes));
    if (hasOneRow())
        m_window.tabifyDockWidget(dock(ViewPlace::BelowPanes), dock(ViewPlace::Text));
    else
        m_window.splitDockWidget(dock(ViewPlace::BelowPanes), dock(ViewPlace::Text), Qt::Vertical);
    PanelDock* numbers = dock(ViewPlace::BelowPanes); // further docks become its tabs, or stand beside it if they fit
    if (m_size != WindowSize::Narrow && !hasOneRow()) {
        m_window.splitDockWidget(dock(ViewPlace::BelowPanes), dock(ViewPlace::BesideRow), Qt::Horizontal);
        numbers = dock(ViewPlace::BesideRow);
        if (m_size == WindowSize::Wide) m_window.splitDockWidget(numbers, dock("metrics"), Qt::Horizontal);
    }
    for (PanelDock* other : {dock(ViewPlace::BesideRow), dock("metrics")})
        if (other != numbers && m_window.dockWidgetArea(other) == Qt::NoDockWidgetArea)
            m_window.tabifyDockWidget(numbers, other);
    for (PanelDock* other : m_docks) // all without a place of their own
        if (m_window.dockWidgetArea(other) == Qt::NoDockWidgetArea)
            m_window.tabifyDockWidget(dock(ViewPlace::BelowPanes), other);
}

bool DockLayout::hasOneRow() const {
    return m_layout == WindowLayout::ExploreHead || m_short; // tabbed below the panes
}

bool DockLayout::whyDockIsOnTheRight() const {
    return m_size == WindowSize::Narrow || m_layout == WindowLayout::ExploreHead; // the left is folded or short
}

void DockLayout::shareSpace() {
    if (m_byHand) return;
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
    const int left = narrow ? 0 : wide ? 288 : 248, right = wide ? 400 : 312;
    const int middle = static_cast<int>(m_window.width() / appearance().scale) - left - right - (narrow ? 44 : 0) - 12;
    const int height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    const int player = kHeader + (narrow ? 130 : 140), detail = (narrow ? 170 : 212) + kTabs;
    const auto present = [](const std::vector<PanelDock*>& docks) {
        const auto found = std::ranges::find_if(docks, [](PanelDock* dock) { return !dock->isHidden(); });
        return found == docks.end() ? nullptr : *found;
    };
    PanelDock *stepView = present(stepDocks()), *close = present(detailDocks());
    if (stepView)
        m_window.resizeDocks({dock("lessons"), stepView, dock("lesson")},
                             {std::max(1, px(left)), px(middle), px(right)}, Qt::Horizontal);
    if (stepView && close)
        m_window.resizeDocks({stepView, close, dock("steps")},
                             {px(std::max(200, height - player - detail)), px(detail), px(player)}, Qt::Vertical);
}

void DockLayout::shareModel() {
    const int width = static_cast<int>(m_window.width() / appearance().scale) - 44,
              height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    m_window.resizeDocks({dock(ViewPlace::Model), dock(ViewPlace::ModelSide)}, {px(width * 0.53), px(width * 0.47)},
                         Qt::Horizontal);
    m_window.resizeDocks({dock(ViewPlace::ModelSide), dock("worst_heads")}, {px(height * 0.6), px(height * 0.4)},
                         Qt::Vertical);
}

void DockLayout::sharePanes() {
    const bool wide = m_size == WindowSize::Wide, narrow = m_size == WindowSize::Narrow;
    const int right = wide ? 360 : narrow ? 288 : 312;
    const int left = wide ? 288 : 248;
    m_window.resizeDocks({dock("capture"), dock("parameters")}, {px(left), px(right)}, Qt::Horizontal);
    if (m_layout == WindowLayout::ExploreHead) {
        const int rest = static_cast<int>(m_window.width() / appearance().scale) - right - (wide ? 400 : 0) -
                         (narrow ? 44 : left) - 24;
        m_window.resizeDocks({dock(ViewPlace::BesidePane)}, {px(rest / 2.0)}, Qt::Horizontal);
    }
    if (wide) m_window.resizeDocks({dock("parameters"), dock("explanation")}, {px(right), px(400)}, Qt::Horizontal);
    const int text = kHeader + (wide     ? 262
                                : narrow ? 114
                                         : 138),
              row = kHeader + (narrow ? 134 + kTabs
                               : wide ? 158
                                      : 150 + kTabs);
    // The parameters get the remaining height: they are the longest panel and scroll well.
    const int height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    const int fidelity = wide ? 212 : 248; // labels take two lines where it is narrow
    const int panes = 176;                 // four policies and the row that adds one
    const int why = std::clamp(height - panes - 480, 196, 400);
    m_window.resizeDocks({dock("parameters"), dock("fidelity")}, {px(std::max(200, height - fidelity)), px(fidelity)},
                         Qt::Vertical);
    if (whyDockIsOnTheRight())
        m_window.resizeDocks({dock("capture"), dock("panes")}, {px(height - panes), px(panes)}, Qt::Vertical);
    else
        m_window.resizeDocks({dock("capture"), dock("panes"), dock("why")},
                             {px(std::max(200, height - panes - why)), px(panes), px(why)}, Qt::Vertical);
    if (hasOneRow()) return m_window.resizeDocks({dock(ViewPlace::Text)}, {px(text + kTabs)}, Qt::Vertical);
    m_window.resizeDocks({dock(ViewPlace::BelowPanes), dock(ViewPlace::Text)}, {px(row), px(text)}, Qt::Vertical);
    if (wide)
        m_window.resizeDocks({dock(ViewPlace::BelowPanes), dock(ViewPlace::BesideRow), dock("metrics")},
                             {px(620), px(520), px(620)},
                             Qt::Horizontal); // views that are opened later become tabs of the first
    else if (!narrow)
        m_window.resizeDocks({dock(ViewPlace::BelowPanes), dock(ViewPlace::BesideRow)}, {px(500), px(460)},
                             Qt::Horizontal);
}

} // namespace kvscope
