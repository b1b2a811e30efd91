// An arrangement is Qt's dock and separator state, stored in the settings per layout and window size.
#include "app/window/docks/dock_layout.h"

#include "app/study/session.h"
#include "app/window/style/appearance.h"

#include <QApplication>
#include <QChildEvent>
#include <QLayout>
#include <QMainWindow>
#include <QMouseEvent>
#include <QSettings>
#include <QTabBar>
#include <QTimer>

#include <algorithm>

namespace kvscope {

namespace {

constexpr const char* kByHand = "-by-hand";
constexpr int kStateVersion = 2; // version of the dock names and tabs; another version starts from the defaults

const char* wordOf(WindowSize size) {
    return size == WindowSize::Narrow ? "narrow" : size == WindowSize::Wide ? "wide" : "normal";
}

const char* wordOf(WindowLayout layout) {
    switch (layout) {
    case WindowLayout::ExploreHead: return "explore";
    case WindowLayout::ComparePolicies: return "compare";
    case WindowLayout::Teach: return "teach";
    default: return "model";
    }
}

} // namespace

DockLayout::DockLayout(QMainWindow& window) : QObject(&window), m_window(window) {
    m_window.setDockOptions(QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
    m_window.installEventFilter(this);
    connect(qApp, &QApplication::focusChanged, this, &DockLayout::markActive);
    // While docks change places, their widths add up to more than the window's; it must not grow for that.
    m_window.layout()->setSizeConstraint(QLayout::SetNoConstraint);
    m_window.setMinimumSize(leastWindow(1));
    m_window.setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    for (const auto& [corner, area] : {std::pair{Qt::TopLeftCorner, Qt::LeftDockWidgetArea},
                                       {Qt::BottomLeftCorner, Qt::LeftDockWidgetArea},
                                       {Qt::TopRightCorner, Qt::RightDockWidgetArea},
                                       {Qt::BottomRightCorner, Qt::RightDockWidgetArea}})
        m_window.setCorner(corner, area);
}

bool DockLayout::eventFilter(QObject* watched, QEvent* event) {
    // Qt creates the tab bars itself and elides their texts even when there is room.
    if (event->type() == QEvent::ChildPolished)
        if (auto* bar = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) {
            bar->setElideMode(Qt::ElideNone);
            bar->setDrawBase(false);
            connect(bar, &QTabBar::tabBarDoubleClicked, this, [this, bar](int tab) {
                for (PanelDock* dock : m_docks)
                    if (dock->windowTitle() == bar->tabText(tab)) return maximise(dock);
            });
        }
    // Qt shows a split cursor over its separators.
    const Qt::CursorShape cursor = m_window.cursor().shape();
    if (event->type() == QEvent::MouseButtonPress && (cursor == Qt::SplitHCursor || cursor == Qt::SplitVCursor)) {
        m_byHand = true;
        holdOthers(static_cast<QMouseEvent*>(event)->position().toPoint(),
                   cursor == Qt::SplitHCursor ? Qt::Horizontal : Qt::Vertical);
    } else if (event->type() == QEvent::MouseButtonRelease) {
        letGo();
    }
    return QObject::eventFilter(watched, event);
}

PanelDock* DockLayout::add(const QString& id, const QString& title) {
    auto* dock = new PanelDock(id, title, &m_window);
    m_docks.push_back(dock);
    connect(dock, &PanelDock::maximiseWanted, this, [this, dock] { maximise(dock); });
    connect(dock->toggleViewAction(), &QAction::triggered, this, [this, dock](bool shown) {
        if (giveBack()) dock->setVisible(shown);
        if (shown) present(dock);
    });
    connect(dock->toggleViewAction(), &QAction::toggled, this, [this, dock] {
        if (m_maximised != dock || !dock->isHidden()) return; // else it was closed while it had the whole window
        QTimer::singleShot(0, this, [this, dock] {
            giveBack();
            dock->hide();
        });
    });
    return dock;
}

PanelDock* DockLayout::dock(const QString& id) const {
    const auto found = std::ranges::find_if(m_docks, [&](PanelDock* d) { return d->id() == id; });
    return found == m_docks.end() ? nullptr : *found;
}

QString DockLayout::settingsKey() const {
    return QString("docks/%1-%2%3").arg(wordOf(m_layout), wordOf(m_size), m_short ? "-short" : "");
}

void DockLayout::arrange(WindowLayout layout, bool twoRows) {
    m_twoRows = twoRows;
    if (m_maximised && layout == m_layout) return; // what it gives back is arranged then
    giveBack();
    const WindowSize size = sizeOf(m_window.width());
    const bool isShortNow = isShort(m_window.height(), twoRows && layout == WindowLayout::ComparePolicies);
    if (m_arranged && layout == m_layout && size == m_size && isShortNow == m_short) {
        if (m_window.size() != m_shared) shareSpace();
        return;
    }
    if (m_arranged) remember();
    m_layout = layout;
    m_size = size;
    m_short = isShortNow;
    m_arranged = true;
    // The default first, so that docks missing from the settings have a place.
    m_byHand = false;
    arrangeByDefault();
    m_byHand = QSettings().value(settingsKey() + kByHand).toBool();
    if (m_window.restoreState(QSettings().value(settingsKey()).toByteArray(), kStateVersion))
        m_inFront.clear(); // restored tabs keep their order
    shareSpace();
    foldToFit();
}

void DockLayout::foldToFit() {
    for (const char* id : {"capture", "panes", "lessons", "why", "fidelity", "explanation", "parameters"})
        if (m_window.layout()->minimumSize().width() > m_window.width()) dock(id)->hide();
}

void DockLayout::remember() {
    if (!m_arranged) return;
    giveBack();
    QSettings().setValue(settingsKey(), m_window.saveState(kStateVersion));
    QSettings().setValue(settingsKey() + kByHand, m_byHand);
}

void DockLayout::reset() {
    giveBack();
    QSettings().remove(settingsKey());
    QSettings().remove(settingsKey() + kByHand);
    m_byHand = false;
    arrangeByDefault();
}

DockLayout::Sizes DockLayout::sizes() const {
    Sizes sizes;
    for (PanelDock* dock : m_docks)
        if (!dock->isFloating() && !dock->visibleRegion().isEmpty()) // a dock behind its tab has no size of its own
            sizes.emplace_back(dock,
                               QSizeF(dock->size()) / appearance().scale + QSizeF(0, dock->hasTabs() ? kTabs : 0));
    return sizes;
}

void DockLayout::resize(const Sizes& sizes) {
    QList<QDockWidget*> docks;
    QList<int> widths, heights;
    for (const auto& [dock, size] : sizes) {
        docks << dock;
        widths << px(size.width());
        heights << px(size.height());
    }
    m_window.resizeDocks(docks, widths, Qt::Horizontal);
    m_window.resizeDocks(docks, heights, Qt::Vertical);
}

void DockLayout::bringToFront(const std::vector<std::string>& ids) {
    if (!ids.empty()) giveBack();
    for (auto id = ids.rbegin(); id != ids.rend(); ++id)
        if (PanelDock* one = dock(QString::fromStdString(*id))) present(one);
}

void DockLayout::present(PanelDock* dock) {
    dock->present();
    m_inFront.push_back(dock); // repeated after the arrangement has been laid out
}

bool DockLayout::toggleLeft() {
    giveBack();
    const auto left =
        m_layout == WindowLayout::Teach ? std::vector{dock("lessons")} : std::vector{dock("capture"), dock("panes")};
    const bool shown = std::ranges::all_of(left, [](PanelDock* dock) { return dock->isHidden(); });
    for (PanelDock* dock : left) dock->setVisible(shown);
    return shown;
}

} // namespace kvscope
