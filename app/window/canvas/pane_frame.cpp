// "Computing" appears only after 150 ms, so that a budget drag does not flicker.
#include "app/window/canvas/pane_frame.h"

#include "app/window/canvas/pane_header.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

namespace kvscope {

namespace {
constexpr int kBusyAfterMilliseconds = 150;
} // namespace

PaneFrame::PaneFrame(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent)
    : QFrame(parent), m_workbench(workbench), m_pane(pane), m_header(new PaneHeader(workbench, pane, this)),
      m_canvas(new ViewCanvas(workbench, view, pane, text, this)), m_error(new QLabel(m_canvas)),
      m_busy(new QLabel(m_canvas)) {
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
    m_busy->setStyleSheet(
        QString("background: %1; color: %2; border: 1px solid %3; border-radius: 4px; padding: 3px 8px;")
            .arg(qColor(theme.raised).name(), qColor(theme.text1).name(), qColor(theme.border).name()));
    m_busy->hide();
    m_busyDelay.setSingleShot(true);
    m_busyDelay.setInterval(kBusyAfterMilliseconds);
    connect(&m_busyDelay, &QTimer::timeout, this, [this] { setBusyShown(true); });
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        if (changed == m_pane) refresh();
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, qOverload<>(&QWidget::update));
    connect(&m_workbench, &Workbench::progressChanged, this, [this](int changed, double fraction) {
        if (changed == m_pane) m_busy->setText(tr("%1 %   Esc cancels").arg(static_cast<int>(fraction * 100)));
    });
    connect(m_header, &PaneHeader::menuWanted, m_canvas, &ViewCanvas::showMenu);
    refresh();
}

void PaneFrame::setBusyShown(bool shown) {
    m_canvas->canvas()->setFaded(shown);
    m_busy->setVisible(shown);
    if (shown) m_busy->setText(tr("%1 %   Esc cancels").arg(static_cast<int>(m_workbench.progress(m_pane) * 100)));
    placeOverlays();
}

void PaneFrame::refresh() {
    const ViewInput input = m_workbench.viewInput();
    if (static_cast<std::size_t>(m_pane) >= input.panes.size()) return;
    const PaneData& pane = input.panes[m_pane];
    if (pane.computing && !m_busyDelay.isActive() && !m_busy->isVisible()) m_busyDelay.start();
    if (!pane.computing) {
        m_busyDelay.stop();
        setBusyShown(false);
    }
    m_error->setText(fromUtf8(pane.error));
    m_error->setVisible(!pane.error.empty());
    placeOverlays();
}

void PaneFrame::placeOverlays() {
    const int margin = px(14);
    const int width = std::min(m_canvas->width() - 2 * margin, px(420));
    m_error->setGeometry((m_canvas->width() - width) / 2, margin, width, m_error->heightForWidth(width));
    m_busy->adjustSize();
    m_busy->move(px(8), m_canvas->height() - m_busy->height() - px(8));
    for (QLabel* overlay : {m_error, m_busy}) overlay->raise();
}

void PaneFrame::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    placeOverlays();
}

void PaneFrame::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_busy->isVisible())
        m_workbench.cancelPane(m_pane);
    else
        QFrame::keyPressEvent(event);
}

void PaneFrame::paintEvent(QPaintEvent* event) {
    QFrame::paintEvent(event);
    if (m_workbench.session().activePane != m_pane) return;
    QPainter painter(this);
    painter.setPen(QPen(qColor(chrome().ink), 1.5));
    painter.drawRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75));
}

} // namespace kvscope
