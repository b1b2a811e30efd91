// A dock whose title bar is the view's header, because Qt's title bar cannot hold chips.
#include "app/window/docks/panel_dock.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QMainWindow>
#include <QMouseEvent>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QTimer>

#include <algorithm>
#include <utility>
#include <vector>

namespace kvscope {

PanelDock::PanelDock(const QString& id, const QString& title, QWidget* parent) : QDockWidget(title, parent) {
    setObjectName(id);
    setFeatures(DockWidgetClosable | DockWidgetMovable | DockWidgetFloatable);
    connect(this, &QDockWidget::topLevelChanged, this, &PanelDock::nameOnce);
    connect(this, &QDockWidget::topLevelChanged, this, &PanelDock::nameFloating);
    connect(this, &QDockWidget::visibilityChanged, this, &PanelDock::showContent);
}

void PanelDock::fill(QWidget* body, QWidget* header) {
    QWidget *oldBody = widget(), *oldHeader = titleBarWidget();
    addButtons(header);
    setTitleBarWidget(header);
    setWidget(body);
    header->installEventFilter(this);
    for (QWidget* part : {body, header}) {
        QSizePolicy policy = part->sizePolicy();
        policy.setRetainSizeWhenHidden(true); // the tabs' area keeps the size that its widest dock needs
        if (part == header) policy.setHorizontalPolicy(QSizePolicy::Ignored);
        part->setSizePolicy(policy);
    }
    showContent(m_inSight);
    nameOnce();
    nameFloating();
    for (QWidget* old : {oldBody, oldHeader}) discard(old);
}

void PanelDock::fillScrolled(QWidget* body) {
    QScrollArea* area = named("panelScroll", scrollArea());
    area->setMinimumWidth(px(200));
    area->setWidget(body);
    fillPlain(area);
}

QWidget* PanelDock::plainHeader(const QString& title) {
    auto* header = named("dockHeader", new QWidget);
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(px(28));
    auto* row = makeLayout<QHBoxLayout>(header, {16, 0, 4, 0}, 0);
    row->addWidget(roleLabel(title, "dockTitle", header));
    row->addStretch();
    return header;
}

void PanelDock::addButtons(QWidget* header) {
    auto* row = static_cast<QHBoxLayout*>(header->layout());
    QToolButton* floating = named("floatDock", iconButton("float", {}, header));
    QToolButton* maximise =
        iconButton("maximise", tr("Give %1 the whole window, or all places back (M)").arg(windowTitle()), header);
    maximise->setObjectName("maximiseDock");
    QToolButton* hide = iconButton("close", tr("Hide %1; the View menu brings it back").arg(windowTitle()), header);
    hide->setObjectName("hideDock");
    for (QToolButton* button : {floating, maximise, hide}) {
        button->setFocusPolicy(Qt::NoFocus); // Space would close the dock
        row->addWidget(button);
    }
    connect(floating, &QToolButton::clicked, this, [this] { isFloating() ? setFloating(false) : floatLarger(); });
    connect(maximise, &QToolButton::clicked, this, &PanelDock::maximiseWanted);
    connect(hide, &QToolButton::clicked, this, &QDockWidget::close);
}

void PanelDock::nameFloating() {
    auto* button = titleBarWidget() ? titleBarWidget()->findChild<QToolButton*>("floatDock") : nullptr;
    if (!button) return;
    const QString name = isFloating() ? tr("Dock %1: back into the window") : tr("Float %1: in a window of its own");
    button->setIcon(themedIcon(isFloating() ? "dock" : "float"));
    button->setToolTip(name.arg(windowTitle()));
    button->setAccessibleName(button->toolTip());
}

void PanelDock::floatLarger() {
    const QRect there = parentWidget()->screen()->availableGeometry();
    const QSize larger = (QSizeF(size()) * 1.3).toSize().expandedTo({px(640), px(440)}).boundedTo(there.size() * 0.9);
    setFloating(true);
    QRect place(QPoint(), larger);
    place.moveCenter(parentWidget()->frameGeometry().center());
    place.moveTop(std::max(place.top(), there.top() + px(24)));
    setGeometry(place);
    raise();
}

void PanelDock::fillScreen() {
    if (!m_beforeScreen.isNull()) return setGeometry(std::exchange(m_beforeScreen, QRect()));
    m_beforeScreen = geometry();
    setGeometry(screen()->availableGeometry());
}

bool PanelDock::event(QEvent* event) {
    // Qt would float a dock whose title is double clicked; here it is maximised.
    if (event->type() == QEvent::MouseButtonDblClick && titleBarWidget() &&
        titleBarWidget()->geometry().contains(static_cast<QMouseEvent*>(event)->position().toPoint())) {
        emit maximiseWanted();
        return true;
    }
    return QDockWidget::event(event);
}

void PanelDock::showContent(bool inSight) {
    m_inSight = inSight;
    for (QWidget* part : {widget(), titleBarWidget()})
        if (part) part->setVisible(inSight && !m_suspended);
}

void PanelDock::suspend(bool suspended) {
    m_suspended = suspended;
    showContent(m_inSight);
}

bool PanelDock::hasTabs() const {
    const auto* window = qobject_cast<const QMainWindow*>(parentWidget());
    if (!window || isFloating()) return false; // Qt 6.8 still lists its former tabs
    const QList<QDockWidget*> others = window->tabifiedDockWidgets(const_cast<PanelDock*>(this)); // Qt only looks at it
    return std::ranges::any_of(others, [](const QDockWidget* other) { return !other->isHidden(); });
}

/// Hides the name in the header when a tab shows it, so that the finding has room. Plain headers keep it.
void PanelDock::nameOnce() {
    if (auto* title = titleBarWidget() ? titleBarWidget()->findChild<QWidget*>("viewTitle") : nullptr)
        title->setVisible(!hasTabs());
    fitHeader();
}

void PanelDock::fitHeader() {
    constexpr int kLeastChip = 56; // design pixels: two or three letters and the arrow
    QWidget* header = titleBarWidget();
    if (!header) return;
    auto* exportButton = header->findChild<QToolButton*>("exportView");
    std::vector<QWidget*> chips;
    std::vector<int> wanted;     // their widths
    int room = width() - px(24); // margins; the finding gets what the chips leave
    for (int i = 0; i < header->layout()->count(); ++i) {
        QWidget* part = header->layout()->itemAt(i)->widget();
        if (!part || (part->isHidden() && part != exportButton)) continue;
        room -= header->layout()->spacing();
        if (qobject_cast<QPushButton*>(part)) {
            chips.push_back(part);
            wanted.push_back(part->sizeHint().width());
        } else {
            room -= (part->inherits("QAbstractButton") ? part->sizeHint() : part->minimumSizeHint()).width();
        }
    }
    const auto widthOf = [&](int most) {
        int sum = 0;
        for (std::size_t i = 0; i < chips.size(); ++i) sum += std::min(most, wanted[i]);
        return sum;
    };
    // The export button goes first: the menu and a key export, too. Then the ends of long texts, then the last chips.
    if (exportButton) {
        exportButton->setVisible(widthOf(QWIDGETSIZE_MAX) <= room);
        if (exportButton->isHidden()) room += exportButton->sizeHint().width();
    }
    const auto limit = [](QWidget* chip, int most) { // hiding and showing a chip is left to the view
        chip->setMaximumWidth(most);
        chip->setFocusPolicy(most == 0 ? Qt::NoFocus : Qt::StrongFocus);
    };
    for (; !chips.empty() && widthOf(px(kLeastChip)) > room; chips.pop_back()) limit(chips.back(), 0);
    int most = width();
    while (most > px(kLeastChip) && widthOf(most) > room) --most;
    for (std::size_t i = 0; i < chips.size(); ++i) limit(chips[i], wanted[i] <= most ? QWIDGETSIZE_MAX : most);
}

// The text of a chip has changed.
bool PanelDock::eventFilter(QObject* watched, QEvent* event) {
    if (watched == titleBarWidget() && event->type() == QEvent::LayoutRequest) fitHeader();
    return QDockWidget::eventFilter(watched, event);
}

void PanelDock::resizeEvent(QResizeEvent* event) {
    QDockWidget::resizeEvent(event);
    fitHeader();
}

void PanelDock::showEvent(QShowEvent* event) {
    QDockWidget::showEvent(event);
    nameOnce();
}

// Tabs appear and vanish with other docks, which moves this dock.
void PanelDock::moveEvent(QMoveEvent* event) {
    QDockWidget::moveEvent(event);
    QTimer::singleShot(0, this, &PanelDock::nameOnce); // Deferred: Qt is laying out the window
}

void PanelDock::present() {
    show();
    raise();
}

} // namespace kvscope
