// Qt's own title bar cannot hold the chips of a view, so the header of the view is the title bar.
#include "app/window/docks/panel_dock.h"

#include "app/window/appearance.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QScrollArea>

namespace kvscope {

PanelDock::PanelDock(const QString& id, const QString& title, QWidget* parent) : QDockWidget(title, parent) {
    setObjectName(id);
    setFeatures(DockWidgetClosable | DockWidgetMovable | DockWidgetFloatable);
    connect(toggleViewAction(), &QAction::triggered, this, [this](bool shown) {
        if (shown)
            present();
    });
}

void PanelDock::fill(QWidget* body, QWidget* header) {
    QWidget *oldBody = widget(), *oldHeader = titleBarWidget();
    addButtons(header);
    setTitleBarWidget(header);
    setWidget(body);
    for (QWidget* old : {oldBody, oldHeader})
        if (old) {
            old->hide();
            old->deleteLater();
        }
}

void PanelDock::fillScrolled(QWidget* body) {
    auto* area = new QScrollArea;
    area->setObjectName("panelScroll");
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setFocusPolicy(Qt::NoFocus);
    area->setMinimumWidth(px(200));
    area->setWidget(body);
    fillPlain(area);
}

QWidget* PanelDock::plainHeader() {
    auto* header = new QWidget;
    header->setObjectName("dockHeader");
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(px(28));
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(px(16), 0, px(4), 0);
    row->setSpacing(0);
    row->addWidget(roleLabel(windowTitle(), "dockTitle", header));
    row->addStretch();
    return header;
}

void PanelDock::addButtons(QWidget* header) {
    auto* row = static_cast<QHBoxLayout*>(header->layout());
    QToolButton* floating = iconButton("restore", tr("Float or dock %1").arg(windowTitle()), header);
    floating->setObjectName("floatDock");
    QToolButton* hide = iconButton("close", tr("Hide %1; the View menu brings it back").arg(windowTitle()), header);
    hide->setObjectName("hideDock");
    connect(floating, &QToolButton::clicked, this, [this] { setFloating(!isFloating()); });
    connect(hide, &QToolButton::clicked, this, &QDockWidget::close);
    row->addWidget(floating);
    row->addWidget(hide);
}

void PanelDock::present() {
    show();
    raise();
}

} // namespace kvscope
