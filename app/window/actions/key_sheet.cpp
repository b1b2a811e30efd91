// Generated from the live actions: a command without a key is not listed, and a changed key changes the sheet.
#include "app/window/actions/key_sheet.h"

#include "app/window/actions/window_actions.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QAction>
#include <QGridLayout>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>

namespace kvscope {

namespace {

void addRow(QGridLayout* grid, int column, const QString& keys, const QString& meaning) {
    int row = 0;
    while (grid->itemAtPosition(row, column)) ++row;
    QLabel* label = numberLabel(12, QFont::Medium);
    label->setText(keys);
    label->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    grid->addWidget(label, row, column);
    grid->addWidget(roleLabel(meaning, "fact"), row, column + 1);
}

} // namespace

KeySheet::KeySheet(const WindowActions& actions, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Keys and mouse"));
    auto* body = new QWidget(this);
    body->setObjectName("panelBody");
    auto* grid = makeLayout<QGridLayout>(body, {20, 16, 20, 16});
    grid->setHorizontalSpacing(px(16));
    grid->setVerticalSpacing(px(5));
    for (const QAction* action : actions.all()) {
        QStringList keys;
        for (const QKeySequence& key : action->shortcuts()) keys += key.toString();
        if (!keys.isEmpty()) addRow(grid, 0, keys.join(", "), action->text().remove('&').remove("…"));
    }
    const std::pair<QString, QString> gestures[] = {
        {tr("wheel"), tr("zoom at the pointer; scroll the text")},
        {tr("Alt+wheel, Shift+wheel"), tr("zoom x only, y only")},
        {tr("drag"), tr("pan")},
        {tr("Ctrl+drag"), tr("zoom to a box")},
        {tr("double click"), tr("fit")},
        {tr("Shift+drag"), tr("select what lies in the box")},
        {tr("Alt+drag"),
         tr("select what a line goes round (L, then drag does too); Shift adds it, Ctrl takes it away")},
        {tr("Shift+click, Ctrl+click"), tr("extend the selection, add or remove a token")},
        {tr("click"), tr("pin the read-out; arrows then move it")},
        {tr("map: click"), tr("lock a cell, show its neighbourhood; arrows move it, Shift by 10")},
        {tr("right click"), tr("copy, save, data, reset; Range… for axes and colours")},
        {tr("slider: double click"), tr("back to the default")}};
    for (const auto& [gesture, meaning] : gestures) addRow(grid, 2, gesture, meaning);
    grid->setRowStretch(grid->rowCount(), 1);
    auto* area = new QScrollArea(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setWidget(body);
    auto* column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0});
    column->addWidget(area);
    const QSize room = screen()->availableSize() - QSize(px(40), px(60)),
                wanted = body->sizeHint() + QSize(px(24), px(8));
    resize(wanted.boundedTo(QSize(room.width(), std::min(px(620), room.height()))));
}

} // namespace kvscope
