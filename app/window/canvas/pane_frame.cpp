// The frame shows which pane is active.
#include "app/window/canvas/pane_frame.h"

#include "app/window/canvas/pane_header.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

namespace kvscope {

PaneFrame::PaneFrame(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent)
    : QFrame(parent), m_workbench(workbench), m_pane(pane), m_header(new PaneHeader(workbench, pane, this)),
      m_canvas(new ViewCanvas(workbench, view, pane, text, this)), m_error(new QLabel(m_canvas)) {
    setObjectName("viewDock");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(2, 2, 2, 2);
    column->setSpacing(0);
    column->addWidget(m_header);
    column->addWidget(m_canvas, 1);
    const Theme& theme = chrome();
    m_error->setTextFormat(Qt::PlainText);
    m_error->setWordWrap(true);
    m_error->setStyleSheet(
        QString("background: %1; color: %2; border: 1px solid %3; border-radius: 4px; padding: 8px;")
            .arg(qColor(theme.errorGround).name(), qColor(theme.error).name(), qColor(theme.errorLine).name()));
    m_error->hide();
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        if (changed == m_pane) refresh();
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, qOverload<>(&QWidget::update));
    connect(m_header, &PaneHeader::menuWanted, m_canvas, &ViewCanvas::showMenu);
    refresh();
}

void PaneFrame::refresh() {
    const ViewInput input = m_workbench.viewInput();
    if (static_cast<std::size_t>(m_pane) >= input.panes.size()) return;
    const PaneData& pane = input.panes[m_pane];
    m_error->setText(fromUtf8(pane.error));
    m_error->setVisible(!pane.error.empty() && !namesFile(pane.error, *input.capture)); // else said for all panes
    placeError();
}

void PaneFrame::placeError() {
    const int margin = px(14);
    const int width = std::min(m_canvas->width() - 2 * margin, px(420));
    m_error->setGeometry((m_canvas->width() - width) / 2, margin, width, m_error->heightForWidth(width));
    m_error->raise();
}

void PaneFrame::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    placeError();
}

void PaneFrame::paintEvent(QPaintEvent* event) {
    QFrame::paintEvent(event);
    if (m_workbench.session().activePane != m_pane) return;
    QPainter painter(this);
    painter.setPen(QPen(qColor(chrome().ink), 1.5));
    painter.drawRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75));
}

} // namespace kvscope
