// A list of at most four rows, rebuilt when the panes change.
#include "app/window/panels/pane_list.h"

#include "app/window/canvas/policy_menu.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <vector>

namespace kvscope {

namespace {

/// A row as a button, for Tab, Space and screen readers.
QPushButton* rowButton(QWidget* parent, bool active) {
    auto* button = new QPushButton(parent);
    button->setFixedHeight(px(30));
    const Theme& theme = chrome();
    button->setStyleSheet(QString("QPushButton { border: 1px solid transparent; border-radius: 4px; background: %1; }"
                                  "QPushButton:hover { background: %2; } QPushButton:focus { border: 2px solid %3; }")
                              .arg(active ? qColor(theme.hover).name() : QString("transparent"),
                                   qColor(theme.hover).name(), qColor(theme.ink).name()));
    return button;
}

} // namespace

PaneList::PaneList(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = makeLayout<QVBoxLayout>(this, {8, 8, 8, 4}, 2);
    column->addWidget(rowsArea(), 1);
    m_add = added(column, named("addPolicy", wordButton(tr("Add a policy"), this)));
    m_add->setIcon(themedIcon("plus"));
    m_add->setProperty("look", "link");
    auto* menu = new QMenu(m_add);
    m_add->setMenu(menu);
    fillPolicyMenu(menu, m_workbench);
    connect(&m_workbench, &Workbench::sessionChanged, this, &PaneList::refresh);
    connect(&m_workbench, &Workbench::panesChanged, this, &PaneList::refresh); // the result of a list names its policy
    refresh();
}

/// The rows scroll when room is short; the "Add" button stays visible.
QWidget* PaneList::rowsArea() {
    m_area = scrollArea(this);
    m_area->setMinimumWidth(px(184));
    auto* body = named("panelBody", new QWidget);
    auto* column = makeLayout<QVBoxLayout>(body, {0, 0, 0, 0});
    m_rows = innerLayout<QVBoxLayout>(column, {}, 1);
    column->addStretch();
    m_area->setWidget(body);
    return m_area;
}

void PaneList::refresh() {
    const ViewInput input = m_workbench.viewInput();
    std::string shown = std::to_string(input.activePane);
    for (const PaneData& pane : input.panes) shown += "|" + pane.policyId + ":" + pane.policyName + ":" + pane.variant;
    m_add->setText(tr("Add a policy (%1 of %2)").arg(input.panes.size()).arg(kMaxPanes));
    m_add->setEnabled(m_workbench.capture() && input.panes.size() < kMaxPanes);
    if (shown == m_shown) return;
    m_shown = shown;
    rebuild(input);
    m_area->setMinimumHeight(px(31 * static_cast<double>(input.panes.size()))); // rather the facts above scroll
}

/// The focus stays where it was, and Tab goes from row to row and then to the button.
void PaneList::rebuild(const ViewInput& input) {
    const int focused = focusedRow();
    std::vector<QWidget*> old; // hidden last, so that the focus does not move elsewhere before
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        old.push_back(item->widget());
        delete item;
    }
    QWidget* last = m_add;
    for (std::size_t pane = 0; pane < input.panes.size(); ++pane) {
        QWidget* row = added(m_rows, buildRow(static_cast<int>(pane), input.panes[pane]));
        last = tabAfter(last, row);
    }
    QWidget::setTabOrder(last, m_add);
    if (focused >= 0) focusRow(focused);
    for (QWidget* row : old) discard(row);
}

void PaneList::focusRow(int row) {
    QWidget* again = m_rows->count() == 0 ? m_add : m_rows->itemAt(std::min(row, m_rows->count() - 1))->widget();
    again->show(); // a hidden widget takes no focus
    again->setFocus();
}

int PaneList::focusedRow() const {
    const QWidget* focused = window()->focusWidget();
    for (int row = 0; focused && row < m_rows->count(); ++row)
        if (const QWidget* one = m_rows->itemAt(row)->widget(); one == focused || one->isAncestorOf(focused))
            return row;
    return -1;
}

QWidget* PaneList::buildRow(int pane, const PaneData& data) {
    const bool active = pane == m_workbench.session().activePane;
    QPushButton* row = rowButton(this, active);
    row->setAccessibleName(
        tr("Pane %1, %2 %3").arg(QChar(data.letter)).arg(fromUtf8(data.policyName), fromUtf8(data.variant)));
    auto* layout = makeLayout<QHBoxLayout>(row, {8, 0, 2, 0}, 8);
    auto* badge = added(layout, new LetterBadge(18, row));
    badge->show(data.letter, data.policyId);
    auto* name = added(layout, new ElidedLabel(active ? "title" : "label", Qt::ElideRight, row));
    name->setFullText(fromUtf8(data.policyName));
    auto* variant = added(layout, new ElidedLabel("quiet", Qt::ElideRight, row), 1);
    variant->setFullText(fromUtf8(data.variant));
    variant->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // gets the width that the name leaves
    auto* remove = added(layout, iconButton("close", tr("Remove pane %1").arg(QChar(data.letter)), row));
    connect(row, &QPushButton::clicked, this,
            [this, pane] { m_workbench.change([pane](Session& s) { s.activePane = pane; }, tr("Active pane")); });
    connect(remove, &QToolButton::clicked, this, [this, pane] { removePane(m_workbench, pane); });
    return row;
}

} // namespace kvscope
