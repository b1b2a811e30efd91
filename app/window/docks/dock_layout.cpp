// An arrangement is Qt's dock and separator state, stored in the settings per layout and window size.
#include "app/window/docks/dock_layout.h"

#include "app/study/session.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include <QApplication>
#include <QChildEvent>
#include <QLayout>
#include <QMainWindow>
#include <QMouseEvent>
#include <QPointer>
#include <QSettings>
#include <QTabBar>
#include <QTimer>

#include <algorithm>
#include <cstdlib>

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

constexpr int kReadableWidth = 320, kReadableHeight = 230; ///< design pixels in which any view can be read

} // namespace

DockLayout::DockLayout(QMainWindow& window) : QObject(&window), m_window(window) {
    m_window.setDockOptions(QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
    m_window.installEventFilter(this);
    connect(qApp, &QApplication::focusChanged, this, &DockLayout::markActive);
    // While docks change places, their widths add up to more than the window's; the window must not grow for that.
    m_window.layout()->setSizeConstraint(QLayout::SetNoConstraint);
    m_window.setMinimumSize(leastWindow(1));
    m_window.setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    for (const auto& [corner, area] : {std::pair{Qt::TopLeftCorner, Qt::LeftDockWidgetArea},
                                       {Qt::BottomLeftCorner, Qt::LeftDockWidgetArea},
                                       {Qt::TopRightCorner, Qt::RightDockWidgetArea},
                                       {Qt::BottomRightCorner, Qt::RightDockWidgetArea}})
        m_window.setCorner(corner, area);
}

bool DockLayout::isView(const PanelDock* dock) {
    return std::ranges::any_of(allViews(), [&](const View* view) { return dock->id() == view->card().id.c_str(); });
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
        keepSoon();
    }
    return QObject::eventFilter(watched, event);
}

PanelDock* DockLayout::add(const QString& id, const QString& title) {
    auto* dock = new PanelDock(id, title, &m_window);
    m_docks.push_back(dock);
    connect(dock, &PanelDock::maximiseWanted, this, [this, dock] { maximise(dock); });
    for (const auto changed : {&QDockWidget::topLevelChanged, &QDockWidget::visibilityChanged})
        connect(dock, changed, this, &DockLayout::keepSoon);
    connect(dock, &QDockWidget::dockLocationChanged, this, &DockLayout::keepSoon);
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

QString DockLayout::arrangementName() const {
    return QString("%1-%2%3").arg(wordOf(m_layout), wordOf(m_size), m_short ? "-short" : "");
}

void DockLayout::arrange(WindowLayout layout, bool twoRows) {
    m_twoRows = twoRows;
    if (m_maximised && layout == m_layout) return; // giveBack() will arrange the docks
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
    restore(QSettings().value(settingsKey()).toByteArray(), QSettings().value(settingsKey() + kByHand).toBool());
}

void DockLayout::restore(const QByteArray& state, bool byHand) {
    const bool isRestored = m_window.restoreState(state, kStateVersion);
    if (isRestored) m_inFront.clear(); // restored tabs keep their order
    m_byHand = isRestored && byHand;
    emit arranged();
    shareSpace();
    foldToFit();
}

void DockLayout::restore(const DockPlaces& places) {
    if (fromUtf8(places.arrangement) != arrangementName()) return;
    giveBack();
    restore(QByteArray::fromBase64(QByteArray::fromStdString(places.state)), places.byHand);
}

DockPlaces DockLayout::places() const {
    return {arrangementName().toStdString(), state().toBase64().toStdString(), m_byHand};
}

void DockLayout::keepSoon() {
    if (std::exchange(m_keepsSoon, true)) return;
    QTimer::singleShot(0, this, [this] {
        m_keepsSoon = false;
        if (m_maximised) return;
        m_asLeft = m_window.saveState(kStateVersion);
        m_leftAt = m_window.size();
    });
}

/// When another layout is chosen, its panes come before its docks, and Qt has squeezed the docks of the present one.
QByteArray DockLayout::state() const {
    if (m_maximised) return m_before;
    return m_byHand && m_leftAt == m_window.size() ? m_asLeft : m_window.saveState(kStateVersion);
}

void DockLayout::foldToFit() {
    for (const char* id : {"capture", "panes", "lessons", "why", "fidelity", "explanation", "parameters"})
        if (m_window.layout()->minimumSize().width() > m_window.width()) dock(id)->hide();
}

void DockLayout::remember() {
    if (!m_arranged) return;
    giveBack();
    QSettings().setValue(settingsKey(), state());
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
        if (!dock->isFloating() && !dock->visibleRegion().isEmpty()) // a dock behind another tab has no size
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

bool DockLayout::foldLeft() {
    bool shown = false;
    for (PanelDock* left : {dock("capture"), dock("panes"), dock("lessons")}) {
        if (left->isFloating()) continue;
        shown |= !left->isHidden();
        left->hide();
    }
    return shown;
}

void DockLayout::open(PanelDock* dock) {
    giveBack();
    if (isView(dock) && dock->isHidden() && !dock->isFloating()) placeToRead(dock);
    present(dock);
    if (dock->isFloating()) dock->activateWindow();
    QTimer::singleShot(0, dock, [dock] { // its tab is there now
        dock->raise();
        if (QWidget* stop = firstTabStop(dock->widget())) stop->setFocus(Qt::OtherFocusReason);
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
    if (m_layout == WindowLayout::ComparePolicies) { // a view beside the row would leave each pane a strip
        if (PanelDock* row = this->dock(ViewPlace::BelowPanes); row != dock) m_window.tabifyDockWidget(row, dock);
        QList<QDockWidget*> docks = {dock};
        QList<int> heights = {px(kReadableHeight + kTabs)};
        if (PanelDock* text = this->dock(ViewPlace::Text); !text->visibleRegion().isEmpty() && !hasOneRow()) {
            docks << text;
            heights << text->height();
        }
        QTimer::singleShot(0, dock, [this, docks, heights] { m_window.resizeDocks(docks, heights, Qt::Vertical); });
        return;
    }
    // Where the layout Explore head has its map.
    PanelDock* map = this->dock(ViewPlace::BesidePane);
    if (dock != map) m_window.tabifyDockWidget(map, dock);
    const int panes = m_window.centralWidget()->isVisible() ? m_window.centralWidget()->width() : 0;
    QList<QDockWidget*> docks = {dock};
    QList<int> widths = {std::max(px(kReadableWidth), panes / 2)};
    for (PanelDock* panel : m_docks) // panels keep their widths, so that the room comes from the panes
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
    m_before = m_window.saveState(kStateVersion);
    m_sizesBefore = sizes();
    m_maximised = dock;
    for (PanelDock* other : m_docks)
        if (other != dock && !other->isFloating()) other->hide();
    if (dock) present(dock);
    emit maximisedChanged();
}

bool DockLayout::isTight() const { return m_short && m_layout == WindowLayout::ComparePolicies; }

bool DockLayout::giveBack() {
    if (!m_maximised) return false;
    const QPointer<QWidget> focused = QApplication::focusWidget();
    m_maximised.reset();
    emit maximisedChanged(); // shows the panes again before the arrangement is restored
    m_window.restoreState(m_before, kStateVersion);
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

} // namespace kvscope
