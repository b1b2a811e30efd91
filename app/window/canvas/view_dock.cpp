// A dock for a view, with the view's finding in its header.
#include "app/window/canvas/view_dock.h"

#include "app/window/canvas/view_options.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace kvscope {

ViewDock::ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent)
    : QFrame(parent), m_canvas(new ViewCanvas(workbench, view, 0, text, this)),
      m_finding(new ElidedLabel("quiet", Qt::ElideRight, this)) {
    setObjectName("viewDock");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 0, 1, 1);
    column->setSpacing(0);
    auto* header = m_header = new QWidget(this);
    header->setObjectName("dockHeader");
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(px(28));
    auto* row = makeLayout<QHBoxLayout>(header, {10, 0, 4, 0}, 4);
    QLabel* title = roleLabel(fromUtf8(view.card().name), "dockTitle", header);
    title->setObjectName("viewTitle");
    title->setToolTip(fromUtf8(view.card().summary));
    row->addWidget(title);
    addOptionChips(workbench, view, row, header);
    row->addWidget(m_finding, 1);
    auto* exportButton = iconButton("export", tr("Export this view"), header);
    auto* more = iconButton("more", tr("Settings, data and help of this view"), header);
    more->setObjectName("viewMenu");
    row->addWidget(exportButton);
    row->addWidget(more);
    column->addWidget(m_canvas, 1);
    connect(more, &QToolButton::clicked, m_canvas,
            [this, more] { m_canvas->showMenu(more->mapToGlobal(QPoint(0, more->height()))); });
    connect(exportButton, &QToolButton::clicked, m_canvas, &ViewCanvas::exportWanted);
    connect(m_canvas, &ViewCanvas::drawnChanged, this, [this] { m_finding->setFullText(m_canvas->finding()); });
}

} // namespace kvscope
