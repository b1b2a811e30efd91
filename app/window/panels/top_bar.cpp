// One bar in place of a menu bar and tool bars: the commands of WindowActions and the layouts.
#include "app/window/panels/top_bar.h"

#include "app/window/actions/token_search.h"
#include "app/window/actions/window_actions.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenuBar>

#include <algorithm>
#include <iterator>

namespace kvscope {

TopBar::TopBar(Workbench& workbench, WindowActions& actions, QWidget* parent)
    : QWidget(parent), m_workbench(workbench) {
    setObjectName("topBar");
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(px(40));
    build(actions);
}

void TopBar::build(WindowActions& actions) {
    auto* row = makeLayout<QHBoxLayout>(this, {8, 0, 12, 0}, 6);
    m_menus = added(row, new QMenuBar(this));
    m_menus->setNativeMenuBar(false);
    m_menus->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    actions.fillMenus(m_menus);
    row->addStretch(1);
    m_layout = new SegmentedSwitch({tr("Explore head"), tr("Compare policies"), tr("Teach"), tr("Whole model")},
                                   tr("Layout"), this);
    m_layout->setObjectName("layoutSwitch");
    row->addWidget(m_layout);
    row->addStretch(1);
    for (const char* name : {"undo", "redo"}) {
        auto* button = iconButton(name, {}, this);
        QAction* action = actions.byName(name);
        connect(button, &QToolButton::clicked, action, &QAction::trigger);
        const auto follow = [button, action] {
            button->setEnabled(action->isEnabled());
            const QString text = action->text().remove('&');
            button->setToolTip(QString("%1 (%2)").arg(text, action->shortcut().toString()));
            button->setAccessibleName(text);
        };
        connect(action, &QAction::changed, button, follow);
        follow();
        row->addWidget(button);
    }
    row->addSpacing(px(6));
    buildFind();
    row->addWidget(m_find);
    m_export = added(row, new QPushButton(themedIcon("export"), tr("Export"), this));
    connect(m_export, &QPushButton::clicked, actions.byName("export"), &QAction::trigger);
    connect(m_layout, &SegmentedSwitch::chosen, this, [this](int index) {
        const auto layout = static_cast<WindowLayout>(index); // the texts are in the order of the layouts
        m_workbench.change([&](Session& s) { s.layout = layout; }, tr("Layout"));
    });
    const auto follow = [this] {
        m_layout->setCurrent(static_cast<int>(m_workbench.session().layout));
        const bool open = m_workbench.capture() != nullptr;
        m_find->setEnabled(open);
        m_export->setEnabled(open);
    };
    connect(&m_workbench, &Workbench::sessionChanged, this, follow);
    follow();
}

void TopBar::buildFind() {
    m_find = named("find", new ValueField(this));
    m_find->setPlaceholderText(tr("Find text (Ctrl+F)"));
    m_find->setToolTip(
        tr("A text, or the number of a token. The place is selected in all views while you type. Enter or "
           "F3: the next place; Shift with it: the one before; Ctrl+Enter: all places."));
    m_find->setAccessibleName(tr("Find token or text"));
    m_find->addAction(themedIcon("search"), QLineEdit::LeadingPosition);
    m_find->setClearButtonEnabled(true);
    m_find->installEventFilter(this);
    m_place = named("findPlace", roleLabel({}, "quiet", m_find));
    auto* inside = makeLayout<QHBoxLayout>(m_find, {0, 0, 26, 0}, 0);
    inside->addStretch();
    inside->addWidget(m_place);
    connect(m_find, &QLineEdit::textEdited, this, &TopBar::findWhileTyping);
    connect(m_find, &QLineEdit::textChanged, this, &TopBar::sayPlace);
    connect(&m_workbench, &Workbench::sessionChanged, this, [this] {
        if (m_workbench.session().selected != m_followed) sayPlace();
    });
    connect(&m_workbench, &Workbench::captureChanged, this, &TopBar::sayPlace); // another text has other places
}

void TopBar::fitWidth(int windowWidth) { m_find->setFixedWidth(windowWidth >= px(1200) ? px(200) : px(120)); }

void TopBar::focusFind() {
    m_find->setFocus(Qt::ShortcutFocusReason);
    m_find->selectAll();
}

bool TopBar::leaveFind() {
    if (!m_find->hasFocus()) return false;
    m_find->clearFocus(); // gives the keys back to the window
    return true;
}

bool TopBar::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::FocusIn) {
        const auto& selected = m_workbench.session().selected;
        m_from = selected.empty() ? 0 : selected.front();
    }
    if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
    const auto& key = static_cast<const QKeyEvent&>(*event);
    if (key.key() != Qt::Key_Return && key.key() != Qt::Key_Enter) return false;
    if (key.modifiers() & Qt::ControlModifier)
        findAll();
    else
        findNext(key.modifiers() & Qt::ShiftModifier ? -1 : 1);
    return true;
}

std::vector<TokenRun> TopBar::places() const {
    if (!m_workbench.capture() || m_find->text().isEmpty()) return {};
    return placesOf(m_workbench.capture()->tokens(), m_find->text());
}

void TopBar::findWhileTyping() {
    const auto found = places();
    const auto next = std::ranges::find_if(found, [this](const TokenRun& place) { return place.begin >= m_from; });
    if (!found.empty()) select(next == found.end() ? found.front() : *next);
}

void TopBar::findNext(int by) {
    if (!m_workbench.capture() || m_find->text().isEmpty()) return focusFind();
    const auto found = places();
    if (found.empty()) return emit notFound(m_find->text());
    const auto& selected = m_workbench.session().selected;
    const TokenIndex here = selected.empty() ? -1 : selected.front();
    m_workbench.endMerge(); // ends the undo step of what was found while typing
    const auto next = std::ranges::upper_bound(found, here, {}, &TokenRun::begin);
    const auto back = std::ranges::lower_bound(found, here, {}, &TokenRun::begin);
    select(by > 0 ? *(next == found.end() ? found.begin() : next)
                  : *std::prev(back == found.begin() ? found.end() : back));
    m_workbench.endMerge();
}

void TopBar::findAll() {
    if (!m_workbench.capture() || m_find->text().isEmpty()) return;
    m_workbench.endMerge();
    if (selectHits(m_workbench, m_find->text()) > 0)
        emit foundAll(m_find->text());
    else
        emit notFound(m_find->text());
}

void TopBar::select(const TokenRun& place) {
    m_from = place.begin;
    const auto tokens = tokensOf({place});
    // A position is no name: it would read as a count of tokens.
    const std::string name = positionIn(m_find->text()) == place.begin ? std::string() : m_find->text().toStdString();
    m_workbench.change([&](Session& s) { kvscope::select(s, tokens, name); }, tr("Find"), "find");
}

void TopBar::sayPlace() {
    m_followed = m_workbench.session().selected;
    const auto found = places();
    const auto here = std::ranges::find_if(
        found, [&](const TokenRun& place) { return !m_followed.empty() && place.begin == m_followed.front(); });
    const bool isAsked = m_workbench.capture() && !m_find->text().isEmpty(), none = isAsked && found.empty();
    const QString text = !isAsked              ? QString()
                         : none                ? tr("none")
                         : here == found.end() ? QString::number(found.size())
                                               : tr("%1 of %2").arg(here - found.begin() + 1).arg(found.size());
    showText(m_place, text);
    m_place->setVisible(m_find->width() >= px(160));
    m_find->setTextMargins(0, 0, text.isEmpty() || !m_place->isVisibleTo(m_find) ? 0 : m_place->sizeHint().width(), 0);
    setWrong(m_find, none);
}

} // namespace kvscope
