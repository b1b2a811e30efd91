// One bar in place of a menu bar and tool bars: the commands of WindowActions and the layouts.
#include "app/window/panels/top_bar.h"

#include "app/window/actions/token_search.h"
#include "app/window/actions/window_actions.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"

#include <QAction>
#include <QHBoxLayout>
#include <QMenuBar>

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
    m_menus = new QMenuBar(this);
    m_menus->setNativeMenuBar(false);
    m_menus->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    actions.fillMenus(m_menus);
    row->addWidget(m_menus);
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
    m_find = new QLineEdit(this);
    m_find->setObjectName("find");
    m_find->setPlaceholderText(tr("Find token or text"));
    m_find->setToolTip(tr("Ctrl+F. Enter or F3 goes to the next place, which is selected in all views."));
    m_find->setAccessibleName(tr("Find token or text"));
    m_find->addAction(themedIcon("search"), QLineEdit::LeadingPosition);
    m_find->setClearButtonEnabled(true);
    row->addWidget(m_find);
    m_export = new QPushButton(themedIcon("export"), tr("Export"), this);
    row->addWidget(m_export);
    connect(m_export, &QPushButton::clicked, actions.byName("export"), &QAction::trigger);
    connect(m_find, &QLineEdit::returnPressed, this, &TopBar::findNext);
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

void TopBar::findNext() {
    if (!m_workbench.capture() || m_find->text().isEmpty()) return focusFind();
    const auto& selected = m_workbench.session().selected;
    const auto found =
        findTokens(m_workbench.capture()->tokens(), m_find->text(), selected.empty() ? -1 : selected.front());
    if (found.empty()) {
        emit notFound(m_find->text());
        return;
    }
    const std::string name = m_find->text().toStdString();
    m_workbench.change([&](Session& s) { select(s, found, name); }, tr("Find"));
}

} // namespace kvscope
