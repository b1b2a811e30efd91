// Where the focus goes: from place to place by a key, and away from what is hidden.
#include "app/window/docks/dock_layout.h"
#include "app/window/widgets/small_widgets.h"

#include <QApplication>
#include <QMainWindow>
#include <QTimer>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kvscope {

QWidget* firstTabStop(QWidget* place) {
    if (!place) return nullptr;
    for (QWidget* next = place->nextInFocusChain(); next != place; next = next->nextInFocusChain())
        if (place->isAncestorOf(next) && next->isVisible() && next->isEnabled() && (next->focusPolicy() & Qt::TabFocus))
            return next;
    return nullptr;
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
        repolish(header);
    }
    if (before && now && before->window() == &m_window && now->window() == &m_window) keepFocus(before, now);
}

void DockLayout::keepFocus(QWidget* before, QWidget* now) {
    const auto hasIt = [this](const QWidget* one) { return one && one->isVisibleTo(&m_window) && one->isEnabled(); };
    if (hasIt(before)) return; // the user moved the focus
    m_hidTo = now;
    if (std::exchange(m_keepsFocus, true)) return; // the next tab stop was hidden, too
    const auto keep = [this, hasIt, before = QPointer(before), dock = QPointer(dockOf(before))] {
        m_keepsFocus = false;
        if (QApplication::focusWidget() != m_hidTo) return;
        QWidget* place = dock && !dock->visibleRegion().isEmpty() ? dock->widget() : nullptr;
        if (PanelDock* view = place || hasIt(m_window.centralWidget()) ? nullptr : roomiestView(nullptr))
            place = view->widget();
        QWidget* to = hasIt(before) ? before.data() : firstTabStop(place);
        (to ? to : m_window.centralWidget())->setFocus(Qt::OtherFocusReason);
    };
    // Docks that change places are hidden meanwhile, and new widgets that have been given the focus are shown later.
    QTimer::singleShot(0, this, [this, keep] { QTimer::singleShot(0, this, keep); });
}

void DockLayout::stepFocus(int by) {
    if (!m_window.menuWidget()->isEnabled()) return;
    struct Stop {
        QWidget *place, *first;
    };
    std::vector<Stop> stops;
    const auto add = [&](QWidget* place, QWidget* content) {
        if (place->visibleRegion().isEmpty()) return;
        if (QWidget* first = firstTabStop(content)) stops.push_back({place, first});
    };
    for (PanelDock* dock : m_docks) add(dock, dock->widget());
    if (QWidget* middle = m_window.centralWidget(); !middle->visibleRegion().isEmpty())
        stops.push_back({middle, middle}); // gives the focus to what is active in it
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
