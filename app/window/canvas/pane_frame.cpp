// The frame shows which pane is active.
#include "app/window/canvas/pane_frame.h"

#include "app/window/canvas/pane_header.h"
#include "app/window/style/appearance.h"

#include <QPainter>
#include <QVBoxLayout>

#include <utility>

namespace kvscope {

PaneFrame::PaneFrame(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent)
    : QFrame(parent), m_workbench(workbench), m_pane(pane), m_header(new PaneHeader(workbench, pane, this)),
      m_canvas(new ViewCanvas(workbench, view, pane, text, this)) {
    setObjectName("viewDock");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(2, 2, 2, 2);
    column->setSpacing(0);
    column->addWidget(m_header);
    column->addWidget(m_canvas, 1);
    connect(&m_workbench, &Workbench::sessionChanged, this, &PaneFrame::followActive);
    followActive();
    connect(m_header, &PaneHeader::menuWanted, m_canvas, &ViewCanvas::showMenu);
    connect(m_header, &PaneHeader::exportWanted, m_canvas, &ViewCanvas::exportWanted);
    connect(m_header, &PaneHeader::pressed, m_canvas, [this] { m_canvas->setFocus(Qt::MouseFocusReason); });
}

void PaneFrame::setInTurn(bool isInTurn) {
    m_isInTurn = isInTurn;
    followActive();
}

/// Repaints only after a change, because a frame that repaints also repaints all its widgets.
void PaneFrame::followActive() {
    const bool isMarked = m_isInTurn && m_workbench.session().activePane == m_pane;
    if (std::exchange(m_isMarked, isMarked) != isMarked) update();
}

void PaneFrame::paintEvent(QPaintEvent* event) {
    QFrame::paintEvent(event);
    if (!m_isMarked) return;
    QPainter painter(this);
    painter.setPen(QPen(qColor(chrome().ink), 1.5));
    painter.drawRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75));
}

} // namespace kvscope
