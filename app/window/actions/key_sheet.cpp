// Generated from the window's menus: a command without a key is not listed, and a changed key changes the sheet.
#include "app/window/actions/key_sheet.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QAction>
#include <QGridLayout>
#include <QMenu>
#include <QMenuBar>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>

#include <utility>
#include <vector>

namespace kvscope {

namespace {

struct Group {
    QString title;
    std::vector<std::pair<QString, QString>> rows; ///< keys or gesture, what it does
};

void collect(Group& group, const QMenu& menu) {
    for (const QAction* action : menu.actions()) {
        if (action->menu()) collect(group, *action->menu());
        QStringList keys;
        for (const QKeySequence& key : action->shortcuts()) keys += key.toString();
        if (!keys.isEmpty()) group.rows.emplace_back(keys.join(", "), action->iconText().remove("…"));
    }
}

Group mouse() {
    return {
        QObject::tr("Mouse"),
        {{QObject::tr("wheel"), QObject::tr("zoom at the pointer; scroll the text")},
         {QObject::tr("Alt+wheel, Shift+wheel"), QObject::tr("zoom x only, y only")},
         {QObject::tr("drag"), QObject::tr("pan")},
         {QObject::tr("Ctrl+drag"), QObject::tr("zoom to a box")},
         {QObject::tr("double click"), QObject::tr("fit; on a title: give it the whole window")},
         {QObject::tr("Shift+drag"), QObject::tr("select what lies in the box")},
         {QObject::tr("Alt+drag"), QObject::tr("select what a line goes round (L, then drag does too);\n"
                                               "Shift adds it, Ctrl takes it away")},
         {QObject::tr("Shift+click, Ctrl+click"), QObject::tr("extend the selection, add or remove a token")},
         {QObject::tr("click"), QObject::tr("pin the read-out; arrows then move it")},
         {QObject::tr("map: click"), QObject::tr("lock a cell, show its neighbourhood;\narrows move it, Shift by 10")},
         {QObject::tr("right click"), QObject::tr("settings of the view, copy, save, data, help")},
         {QObject::tr("slider: double click"), QObject::tr("back to the default")}}};
}

int addGroup(QGridLayout* grid, int row, const Group& group) {
    grid->addWidget(roleLabel(group.title, "section"), row++, 0, 1, 2);
    for (const auto& [keys, meaning] : group.rows) {
        QLabel* label = added(grid, numberLabel(12, QFont::Medium), row, 0);
        label->setText(keys);
        label->setAlignment(Qt::AlignLeft | Qt::AlignTop);
        grid->addWidget(roleLabel(meaning, "fact"), row++, 1);
    }
    grid->setRowMinimumHeight(row, px(8));
    return row + 1;
}

} // namespace

KeySheet::KeySheet(const QMenuBar& menus, const QList<QAction*>& help, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Keys and mouse"));
    std::vector<Group> groups;
    std::size_t rows = 0;
    for (const QAction* title : menus.actions()) {
        Group group{title->iconText(), {}};
        collect(group, *title->menu());
        rows += group.rows.size() + 2;
        if (!group.rows.empty()) groups.push_back(std::move(group));
    }
    groups.push_back(mouse());
    rows += groups.back().rows.size() + 2;
    auto* body = named("panelBody", new QWidget(this));
    auto* columns = makeLayout<QHBoxLayout>(body, {20, 14, 20, 14}, 36);
    QGridLayout* grid = nullptr;
    int row = 0;
    for (const Group& group : groups) {
        if (!grid || (columns->count() < 2 && 2 * static_cast<std::size_t>(row) + group.rows.size() > rows)) {
            grid = innerLayout<QGridLayout>(columns);
            grid->setHorizontalSpacing(px(16));
            grid->setVerticalSpacing(px(3));
            row = 0;
        }
        row = addGroup(grid, row, group);
        grid->setRowStretch(row, 1);
        grid->setRowStretch(row - 1, 0);
    }
    auto* area = new QScrollArea(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setWidget(body);
    auto* column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 12}, 8);
    column->addWidget(area);
    auto* ways = innerLayout<QHBoxLayout>(column, {20, 0, 20, 0});
    for (QAction* action : help) {
        auto* button = new QPushButton(action->iconText(), this);
        button->setObjectName(action->objectName());
        button->setEnabled(action->isEnabled());
        connect(button, &QPushButton::clicked, this, [this, action] {
            close();
            action->trigger();
        });
        ways->addWidget(button);
    }
    ways->addStretch();
    const QSize room = screen()->availableSize() - QSize(px(40), px(60));
    resize((body->sizeHint() + QSize(px(24), px(60))).boundedTo(room));
}

} // namespace kvscope
