// An arrangement is Qt's own state of docks and separators; only the defaults are written here. They follow the regions
// of the design: what is open on the left, the active pane's policy on the right, the views for all panes below.
#include "app/window/docks/dock_desk.h"

#include "app/session/session.h"
#include "app/window/appearance.h"

#include <QChildEvent>
#include <QMainWindow>
#include <QSettings>
#include <QTabBar>
#include <QTimer>

#include <algorithm>
#include <array>

namespace kvscope {

namespace {

constexpr int kStateVersion = 1; // of the docks' names; another one starts from the defaults
constexpr std::array kPlaced = {"capture", "panes", "parameters", "explanation", "fidelity", "why", "token_strip", "overlap", "metrics", "attention_map"};
constexpr int kHeader = 28, kTabs = 26;

const char* wordOf(WindowSize size) {
    return size == WindowSize::Narrow ? "narrow" : size == WindowSize::Wide ? "wide" : "normal";
}

} // namespace

DockDesk::DockDesk(QMainWindow& window) : QObject(&window), m_window(window) {
    m_window.setDockOptions(QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
    m_window.installEventFilter(this);
    m_window.setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    for (const auto& [corner, area] : {std::pair{Qt::TopLeftCorner, Qt::LeftDockWidgetArea}, {Qt::BottomLeftCorner, Qt::LeftDockWidgetArea},
                                       {Qt::TopRightCorner, Qt::RightDockWidgetArea}, {Qt::BottomRightCorner, Qt::RightDockWidgetArea}})
        m_window.setCorner(corner, area);
}

bool DockDesk::eventFilter(QObject* watched, QEvent* event) {
    // Qt makes the tab bars by itself and shortens their words even where there is room.
    if (event->type() == QEvent::ChildPolished)
        if (auto* bar = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) {
            bar->setElideMode(Qt::ElideNone);
            bar->setDrawBase(false);
        }
    return QObject::eventFilter(watched, event);
}

PanelDock* DockDesk::add(const QString& id, const QString& title) {
    auto* dock = new PanelDock(id, title, &m_window);
    m_docks.push_back(dock);
    return dock;
}

PanelDock* DockDesk::dock(const QString& id) const {
    const auto found = std::find_if(m_docks.begin(), m_docks.end(), [&](PanelDock* d) { return d->id() == id; });
    return found == m_docks.end() ? nullptr : *found;
}

QString DockDesk::settingsKey() const {
    return QString("docks/%1-%2").arg(m_layout == WindowLayout::ExploreHead ? "explore" : "compare", wordOf(m_size));
}

void DockDesk::arrange(WindowLayout layout, WindowSize size) {
    if (m_arranged && layout == m_layout && size == m_size)
        return;
    if (m_arranged)
        remember();
    m_layout = layout;
    m_size = size;
    m_arranged = true;
    // The default first: docks that the settings do not know yet have a place then.
    arrangeByDefault();
    m_window.restoreState(QSettings().value(settingsKey()).toByteArray(), kStateVersion);
}

void DockDesk::remember() {
    if (m_arranged)
        QSettings().setValue(settingsKey(), m_window.saveState(kStateVersion));
}

void DockDesk::reset() {
    QSettings().remove(settingsKey());
    arrangeByDefault();
}

void DockDesk::arrangeByDefault() {
    for (PanelDock* dock : m_docks) {
        dock->setFloating(false);
        m_window.removeDockWidget(dock);
    }
    // A head is explored with its map beside the pane and the text below both.
    m_window.setCorner(Qt::BottomLeftCorner, m_layout == WindowLayout::ExploreHead ? Qt::BottomDockWidgetArea : Qt::LeftDockWidgetArea);
    placeLeft();
    placeRight();
    placeBottom();
    for (PanelDock* dock : m_docks)
        dock->show();
    dock("attention_map")->setVisible(m_layout == WindowLayout::ExploreHead);
    for (PanelDock* view : viewsWithoutPlace())
        view->hide();
    if (m_size == WindowSize::Narrow)
        toggleLeft();
    for (const char* front : {"parameters", "fidelity", "overlap", m_layout == WindowLayout::ExploreHead ? "token_strip" : "overlap"})
        dock(front)->raise();
    shareSpace();
    // Once more when the tab bars have their heights.
    QTimer::singleShot(0, this, &DockDesk::shareSpace);
}

void DockDesk::placeLeft() {
    m_window.addDockWidget(Qt::LeftDockWidgetArea, dock("capture"));
    // The map stands beside the pane whose head is explored; comparing policies needs its room.
    m_window.splitDockWidget(dock("capture"), dock("attention_map"), Qt::Horizontal);
    m_window.splitDockWidget(dock("capture"), dock("panes"), Qt::Vertical);
    if (!whyStandsRight())
        m_window.splitDockWidget(dock("panes"), dock("why"), Qt::Vertical);
}

void DockDesk::placeRight() {
    m_window.addDockWidget(Qt::RightDockWidgetArea, dock("parameters"));
    m_window.splitDockWidget(dock("parameters"), dock("fidelity"), Qt::Vertical);
    if (whyStandsRight())
        m_window.tabifyDockWidget(dock("fidelity"), dock("why"));
    if (m_size == WindowSize::Wide) {
        m_window.addDockWidget(Qt::RightDockWidgetArea, dock("explanation"));
        m_window.splitDockWidget(dock("parameters"), dock("explanation"), Qt::Horizontal);
    } else {
        m_window.tabifyDockWidget(dock("parameters"), dock("explanation"));
    }
}

void DockDesk::placeBottom() {
    m_window.addDockWidget(Qt::BottomDockWidgetArea, dock("overlap"));
    if (m_layout == WindowLayout::ExploreHead)
        m_window.tabifyDockWidget(dock("overlap"), dock("token_strip"));
    else
        m_window.splitDockWidget(dock("overlap"), dock("token_strip"), Qt::Vertical);
    if (m_size == WindowSize::Narrow || m_layout == WindowLayout::ExploreHead)
        m_window.tabifyDockWidget(dock("overlap"), dock("metrics"));
    else
        m_window.splitDockWidget(dock("overlap"), dock("metrics"), Qt::Horizontal);
    for (PanelDock* view : viewsWithoutPlace())
        m_window.tabifyDockWidget(dock("overlap"), view);
}

bool DockDesk::whyStandsRight() const {
    return m_size == WindowSize::Narrow || m_layout == WindowLayout::ExploreHead; // the left is folded or short
}

std::vector<PanelDock*> DockDesk::viewsWithoutPlace() const {
    std::vector<PanelDock*> views;
    for (PanelDock* dock : m_docks)
        if (std::find(kPlaced.begin(), kPlaced.end(), dock->id()) == kPlaced.end())
            views.push_back(dock);
    return views;
}

void DockDesk::shareSpace() {
    const bool wide = m_size == WindowSize::Wide, narrow = m_size == WindowSize::Narrow;
    const int right = wide ? 360 : narrow ? 288 : 312;
    const int left = wide ? 288 : 248;
    m_window.resizeDocks({dock("capture"), dock("parameters")}, {px(left), px(right)}, Qt::Horizontal);
    if (m_layout == WindowLayout::ExploreHead) {
        const int rest = static_cast<int>(m_window.width() / appearance().scale) - right - (wide ? 400 : 0) - (narrow ? 44 : left) - 24;
        m_window.resizeDocks({dock("attention_map")}, {px(rest / 2.0)}, Qt::Horizontal);
    }
    if (wide)
        m_window.resizeDocks({dock("parameters"), dock("explanation")}, {px(right), px(400)}, Qt::Horizontal);
    const int text = kHeader + (wide ? 262 : narrow ? 114 : 138), row = kHeader + (narrow ? 134 + kTabs : 158);
    // The parameters get what is left: they are the longest and scroll well.
    const int fidelity = 212, why = 214, panes = 204;
    const int height = static_cast<int>(m_window.height() / appearance().scale) - 120;
    m_window.resizeDocks({dock("parameters"), dock("fidelity")}, {px(std::max(200, height - fidelity)), px(fidelity)}, Qt::Vertical);
    if (whyStandsRight())
        m_window.resizeDocks({dock("capture"), dock("panes")}, {px(height - panes), px(panes)}, Qt::Vertical);
    else
        m_window.resizeDocks({dock("capture"), dock("panes"), dock("why")}, {px(std::max(200, height - panes - why)), px(panes), px(why)}, Qt::Vertical);
    if (m_layout == WindowLayout::ExploreHead)
        return m_window.resizeDocks({dock("token_strip")}, {px(text + kTabs)}, Qt::Vertical);
    m_window.resizeDocks({dock("overlap"), dock("token_strip")}, {px(row), px(text)}, Qt::Vertical);
    if (!narrow)
        m_window.resizeDocks({dock("overlap"), dock("metrics")}, {px(500), px(460)}, Qt::Horizontal);
}

bool DockDesk::toggleLeft() {
    const bool shown = dock("capture")->isHidden() && dock("panes")->isHidden();
    dock("capture")->setVisible(shown);
    dock("panes")->setVisible(shown);
    return shown;
}

} // namespace kvscope
