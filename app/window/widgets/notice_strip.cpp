// The tone of a row is a property that the style sheet colours.
#include "app/window/widgets/notice_strip.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QApplication>
#include <QChildEvent>
#include <QDockWidget>
#include <QEvent>
#include <QHBoxLayout>
#include <QMainWindow>
#include <QVBoxLayout>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kvscope {

namespace {

struct Look {
    const char *name, *icon;
    Colour colour;
    std::optional<std::chrono::seconds> stays; ///< nothing: until it is closed or replaced
};

Look lookOf(NoticeStrip::Tone tone, bool offersSomething) {
    using enum NoticeStrip::Tone;
    const Theme& theme = chrome();
    const std::chrono::seconds reading(offersSomething ? 20 : 8);
    switch (tone) {
    case Offer: return {"warning", "warning", theme.warning, {}};
    case Progress: return {"notice", "info", theme.text2, {}};
    case Success: return {"success", "check", theme.ok, reading};
    case Notice: return {"notice", "info", theme.text2, reading};
    case Warning: return {"warning", "warning", theme.warning, 2 * reading};
    case Error: break;
    }
    return {"error", "warning", theme.error, {}};
}

/// Whether a row of this tone stays until the user answers or closes it, and so has room above the panels.
bool stands(NoticeStrip::Tone tone) { return tone == NoticeStrip::Tone::Offer || tone == NoticeStrip::Tone::Error; }

/// Whether the main window lays out `child`: such panels come to the front when they are arranged anew.
bool isPanel(const QObject* child, const QWidget* window) {
    const auto* main = qobject_cast<const QMainWindow*>(window);
    return qobject_cast<const QDockWidget*>(child) || (main && child == main->centralWidget());
}

bool mayComeToFront(QEvent::Type type) {
    constexpr std::array kTypes = {QEvent::ZOrderChange, QEvent::ParentChange, QEvent::Show, QEvent::Move,
                                   QEvent::Resize};
    return std::ranges::find(kTypes, type) != kTypes.end();
}

} // namespace

struct NoticeStrip::Notice {
    QString id, message;
    Tone tone = Tone::Notice;
    std::vector<Action> actions;
    QFrame* row = nullptr;
    std::unique_ptr<Clock::Timer> leaves;
};

NoticeStrip::NoticeStrip(QWidget* parent, Clock& clock)
    : QWidget(parent), m_clock(clock), m_passing(named("passingNotices", new QWidget(parent ? parent : this))) {
    if (parent) parent->installEventFilter(this);
    m_passing->installEventFilter(this);
    connect(qApp, &QApplication::focusChanged, this, &NoticeStrip::place);
    for (QWidget* rows : {static_cast<QWidget*>(this), m_passing.data()}) {
        makeLayout<QVBoxLayout>(rows, {0, 0, 0, 0});
        rows->setVisible(false);
    }
}

NoticeStrip::~NoticeStrip() { delete m_passing; }

void NoticeStrip::show(const QString& id, Tone tone, const QString& message, const QString& actionText,
                       std::function<void()> action) {
    show(id, tone, message, std::vector<Action>{{actionText, std::move(action)}});
}

void NoticeStrip::show(const QString& id, Tone tone, const QString& message, std::vector<Action> actions) {
    dismiss(id);
    const auto at = stands(tone)
                        ? std::ranges::find_if_not(m_notices, &stands, [](const auto& one) { return one->tone; })
                        : m_notices.end();
    auto& notice = **m_notices.insert(at, std::make_unique<Notice>());
    notice.id = id;
    notice.message = message;
    notice.tone = tone;
    notice.actions = std::move(actions);
    notice.leaves = m_clock.makeTimer([this, id] { dismiss(id); });
    if (const auto stays = lookOf(tone, !notice.actions.empty()).stays) notice.leaves->start(*stays);
    build(notice);
    notice.row->parentWidget()->setAccessibleName(message);
    place();
}

void NoticeStrip::build(Notice& notice) {
    QWidget* rows = stands(notice.tone) ? this : m_passing.data();
    auto* column = static_cast<QVBoxLayout*>(rows->layout());
    column->setSpacing(px(6)); // set only here, because it requests a new layout, which calls place()
    const Look look = lookOf(notice.tone, false);
    auto* row = notice.row = new QFrame(rows);
    row->setObjectName(notice.id);
    row->setProperty("tone", look.name);
    row->installEventFilter(this);
    auto* layout = makeLayout<QHBoxLayout>(row, {12, 5, 8, 5}, 8);
    auto* icon = added(layout, new QLabel(row));
    icon->setPixmap(themedIcon(look.icon, look.colour).pixmap(px(16), px(16)));
    QLabel* label = added(layout, named("message", wrappedLabel(notice.message, "notice", row)), 1);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    for (const Action& action : notice.actions) {
        auto* button = new QPushButton(action.text, row);
        connect(button, &QPushButton::clicked, this, [this, id = notice.id, run = action.run] {
            dismiss(id);
            run();
        });
        layout->addWidget(button);
    }
    auto* close = added(layout, iconButton("close", tr("Close this message"), row));
    connect(close, &QToolButton::clicked, this, [this, id = notice.id] { dismiss(id); });
    column->addWidget(row);
    row->show(); // a hidden row has no height in the layout
}

void NoticeStrip::retell(const QString& id, const QString& message) {
    for (const auto& notice : m_notices)
        if (notice->id == id && notice->message != message) {
            notice->message = message;
            notice->row->findChild<QLabel*>("message")->setText(message);
            place();
        }
}

void NoticeStrip::discardRow(QWidget* row) {
    row->setObjectName({}); // found by it no more
    row->parentWidget()->layout()->removeWidget(row);
    discard(row);
}

void NoticeStrip::dismiss(const QString& id) {
    const auto found = std::ranges::find(m_notices, id, [](const auto& notice) { return notice->id; });
    if (found == m_notices.end()) return;
    const std::unique_ptr<Notice> gone = std::move(*found); // its timer may be the caller
    m_notices.erase(found);
    discardRow(gone->row);
    place();
}

QStringList NoticeStrip::messages() const {
    QStringList found;
    for (const auto& notice : m_notices) found += notice->message;
    return found;
}

void NoticeStrip::placeBelow(int top, QWidget* room) {
    m_top = top;
    m_room = room;
    place();
}

void NoticeStrip::restyle() {
    for (const auto& notice : m_notices) {
        discardRow(notice->row);
        build(*notice);
    }
    place();
}

int NoticeStrip::heightOf(const QWidget& rows, int width) const {
    QLayout* column = rows.layout();
    if (column->isEmpty()) return 0;
    column->activate();
    return column->hasHeightForWidth() ? column->totalHeightForWidth(width) : column->totalSizeHint().height();
}

void NoticeStrip::place() {
    if (!parentWidget() || !m_passing) return;
    const int width = std::min(parentWidget()->width() - 2 * px(16), px(720));
    const int standing = heightOf(*this, width), left = (parentWidget()->width() - width) / 2;
    if (m_room) m_room->setFixedHeight(standing > 0 ? standing + px(14) : 0);
    QRect there(left, m_top + px(8), width, standing);
    setGeometry(there);
    setVisible(standing > 0);
    const int below = standing > 0 ? there.bottom() + px(14) : there.top();
    there.setHeight(heightOf(*m_passing, width));
    m_passing->setVisible(there.height() > 0);
    there.moveBottom(parentWidget()->height() - px(3));
    if (hidesFocus(there)) there.moveTop(below);
    m_passing->setGeometry(there);
    raise();
    m_passing->raise();
}

bool NoticeStrip::hidesFocus(const QRect& there) const {
    const QWidget* focus = QApplication::focusWidget();
    if (!focus || !parentWidget()->isAncestorOf(focus) || isAncestorOf(focus) || m_passing->isAncestorOf(focus))
        return false;
    const QRect place(focus->mapTo(parentWidget(), QPoint()), focus->size());
    const QSize hidden = there.intersected(place).size();
    return !hidden.isEmpty() && 2 * hidden.width() * hidden.height() > place.width() * place.height();
}

bool NoticeStrip::event(QEvent* event) {
    const bool wasHandled = QWidget::event(event);
    if (event->type() == QEvent::LayoutRequest) place(); // the labels have their fonts now
    return wasHandled;
}

/// Queued: a panel that was raised must be in front while it handles this event, or Qt does not raise its tab.
void NoticeStrip::cameToFront(const QObject& panel, QEvent::Type type) {
    if (!mayComeToFront(type) || !isPanel(&panel, parentWidget())) return;
    for (QWidget* rows : {static_cast<QWidget*>(this), m_passing.data()})
        if (rows->isVisible()) QMetaObject::invokeMethod(rows, &QWidget::raise, Qt::QueuedConnection);
}

bool NoticeStrip::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_passing || !m_passing) {
        if (event->type() == QEvent::LayoutRequest) place();
        return QWidget::eventFilter(watched, event);
    }
    if (watched == parentWidget() && event->type() == QEvent::Resize) place();
    if (watched == parentWidget() && event->type() == QEvent::ChildPolished)
        if (QObject* child = static_cast<QChildEvent*>(event)->child(); child != this && child != m_passing)
            child->installEventFilter(this);
    cameToFront(*watched, event->type());
    const bool comes = event->type() == QEvent::Enter;
    if (comes || event->type() == QEvent::Leave)
        for (const auto& notice : m_notices)
            if (const auto stays = lookOf(notice->tone, !notice->actions.empty()).stays;
                notice->row == watched && stays)
                comes ? notice->leaves->stop() : notice->leaves->start(*stays);
    return QWidget::eventFilter(watched, event);
}

} // namespace kvscope
