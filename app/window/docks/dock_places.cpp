// Docks that the user opens, enlarges and walks through.
#include "app/window/docks/dock_layout.h"
#include "app/window/style/appearance.h"

#include <QApplication>
#include <QMainWindow>
#include <QPointer>
#include <QStyle>
#include <QTimer>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

constexpr int kReadableWidth = 320, kReadableHeight = 230; ///< design pixels in which any view can be read

/// What Tab would reach first in a place; null: nothing.
QWidget* firstStop(QWidget* place) {
    if (!place) return nullptr;
    if (place->focusProxy()) return place->focusProxy();
    for (QWidget* next = place->nextInFocusChain(); next != place; next = next->nextInFocusChain())
        if (place->isAncestorOf(next) && next->isVisible() && next->isEnabled() && (next->focusPolicy() & Qt::TabFocus))
            return next;
    return nullptr;
}

bool isView(const PanelDock* dock) {
    return std::ranges::any_of(allViews(), [&](const View* view) { return dock->id() == view->card().id.c_str(); });
}

} // namespace

void DockLayout::open(PanelDock* dock) {
    giveBack();
    if (isView(dock) && dock->isHidden() && !dock->isFloating()) placeToRead(dock);
    present(dock);
    if (dock->isFloating()) dock->activateWindow();
    QTimer::singleShot(0, dock, [dock] { // its tab is there now
        dock->raise();
        if (QWidget* stop = firstStop(dock->widget())) stop->setFocus(Qt::TabFocusReason);
    });
}

PanelDock* DockLayout::roomiestView(const PanelDock* but) const {
    PanelDock* best = nullptr;
    const auto area = [](const PanelDock* dock) { return dock ? qint64(dock->width()) * dock->height() : 0; };
    for (PanelDock* one : m_docks)
        if (one != but && isView(one) && !one->isFloating() && !one->visibleRegion().isEmpty() &&
            one->width() >= px(kReadableWidth) && one->height() >= px(kReadableHeight) && area(one) > area(best))
            best = one;
    return best;
}

void DockLayout::placeToRead(PanelDock* dock) {
    if (PanelDock* beside = roomiestView(dock)) return m_window.tabifyDockWidget(beside, dock);
    // Where the layout Explore head has its map.
    PanelDock* map = this->dock(ViewPlace::BesidePane);
    if (dock != map) m_window.tabifyDockWidget(map, dock);
    const int panes = m_window.centralWidget()->isVisible() ? m_window.centralWidget()->width() : 0;
    QList<QDockWidget*> docks = {dock};
    QList<int> widths = {std::max(px(kReadableWidth), panes / 2)};
    for (PanelDock* panel : m_docks) // the panes give the room
        if (!isView(panel) && !panel->isFloating() && !panel->visibleRegion().isEmpty()) {
            docks << panel;
            widths << panel->width();
        }
    QTimer::singleShot(0, dock, [this, docks, widths] {
        foldToFit();
        m_window.resizeDocks(docks, widths, Qt::Horizontal);
    });
}

void DockLayout::maximise(PanelDock* dock) {
    if (!m_window.menuWidget()->isEnabled()) return; // a presentation covers the docks
    if (giveBack()) return;
    if (!dock && !m_window.centralWidget()->isVisible()) { // a layout without panes
        dock = roomiestView(nullptr);
        if (!dock) return;
    }
    if (dock && dock->isFloating()) return dock->fillScreen();
    m_before = m_window.saveState();
    m_sizesBefore = sizes();
    m_maximised = dock;
    for (PanelDock* other : m_docks)
        if (other != dock && !other->isFloating()) other->hide();
    if (dock) present(dock);
    emit maximisedChanged();
}

bool DockLayout::giveBack() {
    if (!m_maximised) return false;
    const QPointer<QWidget> focused = QApplication::focusWidget();
    m_maximised.reset();
    emit maximisedChanged(); // the panes are there again before the arrangement is
    m_window.restoreState(m_before);
    const QSize before = m_shared;
    arrange(m_layout, m_twoRows); // the window may have another size now
    const auto give = [this, focused, sizes = m_shared == before ? m_sizesBefore : Sizes()] {
        if (!m_maximised && !sizes.empty()) resize(sizes);
        if (focused && focused->isVisible()) focused->setFocus(Qt::OtherFocusReason);
    };
    give();
    QTimer::singleShot(0, this, give); // once more when all docks are laid out
    return true;
}

PanelDock* DockLayout::dockOf(const QWidget* inside) const {
    for (; inside; inside = inside->parentWidget())
        if (const auto found = std::ranges::find(m_docks, inside); found != m_docks.end()) return *found;
    return nullptr;
}

void DockLayout::markActive(QWidget* before, QWidget* now) {
    for (QWidget* focused : {before, now}) {
        const PanelDock* dock = dockOf(focused);
        QWidget* header = dock ? dock->titleBarWidget() : nullptr;
        if (!header) continue;
        header->setProperty("active", dock == dockOf(now));
        header->style()->unpolish(header);
        header->style()->polish(header);
    }
}

void DockLayout::holdOthers(const QPoint& separator, Qt::Orientation direction) {
    constexpr int kNear = 10; // a separator is 6 wide
    const bool across = direction == Qt::Horizontal;
    const int at = across ? separator.x() : separator.y();
    letGo();
    for (PanelDock* dock : m_docks) {
        if (dock->isFloating() || dock->visibleRegion().isEmpty()) continue;
        const QRect place = dock->geometry();
        const int begin = across ? place.left() : place.top(), end = across ? place.right() : place.bottom();
        if (std::abs(begin - at) <= px(kNear + (across ? 0 : kTabs)) || std::abs(end - at) <= px(kNear)) continue;
        QList<QDockWidget*> tabs = m_window.tabifiedDockWidgets(dock);
        for (QDockWidget* one : tabs << dock) {
            m_held.push_back({static_cast<PanelDock*>(one), one->minimumSize(), one->maximumSize()});
            across ? one->setFixedWidth(place.width()) : one->setFixedHeight(place.height());
        }
    }
}

void DockLayout::letGo() {
    for (const Held& held : std::exchange(m_held, {})) {
        held.dock->setMinimumSize(held.least);
        held.dock->setMaximumSize(held.most);
    }
}

void DockLayout::stepFocus(int by) {
    if (!m_window.menuWidget()->isEnabled()) return;
    struct Stop {
        QWidget *place, *first;
    };
    std::vector<Stop> stops;
    const auto add = [&](QWidget* place, QWidget* content) {
        if (place->visibleRegion().isEmpty()) return;
        if (QWidget* first = firstStop(content)) stops.push_back({place, first});
    };
    for (PanelDock* dock : m_docks) add(dock, dock->widget());
    add(m_window.centralWidget(), m_window.centralWidget());
    if (stops.empty()) return;
    std::ranges::sort(stops, {}, [this](const Stop& stop) {
        const QPoint at = stop.place->isWindow() ? QPoint() : stop.place->mapTo(&m_window, QPoint());
        return std::tuple(stop.place->isWindow(), at.x(), at.y()); // floating ones last
    });
    const QWidget* focused = QApplication::focusWidget();
    const auto here = std::ranges::find_if(
        stops, [&](const Stop& stop) { return stop.place == focused || stop.place->isAncestorOf(focused); });
    const auto count = std::ssize(stops);
    const auto from = here == stops.end() ? (by > 0 ? -1 : 0) : here - stops.begin();
    const Stop& next = stops[static_cast<std::size_t>((from + by + count) % count)];
    if (next.place->isWindow()) next.place->activateWindow();
    next.first->setFocus(Qt::TabFocusReason);
}

} // namespace kvscope
