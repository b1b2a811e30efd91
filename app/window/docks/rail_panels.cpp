// Not docks: a dock takes its room from the pictures, of which a narrow window has too little.
#include "app/window/docks/rail_panels.h"

#include "app/window/docks/dock_layout.h"
#include "app/window/widgets/small_widgets.h"

#include <QApplication>
#include <QCloseEvent>
#include <QEvent>

namespace kvscope {

RailPanels::RailPanels(QWidget& rail, QWidget* window)
    : QFrame(window), m_rail(rail), m_column(makeLayout<QVBoxLayout>(this, {0, 0, 1, 0}, 0)) {
    setObjectName("railPanels");
    setAttribute(Qt::WA_DeleteOnClose);
    setAttribute(Qt::WA_NoMousePropagation); // a press inside that reached the window would count as one elsewhere
    qApp->installEventFilter(this);          // sees the presses of all widgets
}

void RailPanels::add(const QString& title, QWidget* body, int stretch) {
    QWidget* header = added(m_column, PanelDock::plainHeader(title));
    if (m_column->count() == 1) {
        QToolButton* hide = added(header->layout(), iconButton("close", tr("Fold the panels (Esc)"), header));
        hide->setFocusPolicy(Qt::NoFocus); // as in the title bars of docks
        connect(hide, &QToolButton::clicked, this, &QWidget::close);
    }
    QScrollArea* area = added(m_column, named("panelScroll", scrollArea(this)), stretch);
    area->setWidget(body);
}

void RailPanels::open() {
    place();
    show();
    raise();
    m_before = QApplication::focusWidget();
    if (QWidget* stop = firstTabStop(this)) stop->setFocus(Qt::OtherFocusReason);
}

void RailPanels::closeEvent(QCloseEvent* event) {
    if (m_before && isAncestorOf(QApplication::focusWidget())) m_before->setFocus(Qt::OtherFocusReason);
    QFrame::closeEvent(event);
}

void RailPanels::place() {
    const QRect rail = m_rail.geometry();
    setGeometry(rail.right() + 1, rail.top(), px(280), rail.height());
}

bool RailPanels::eventFilter(QObject* watched, QEvent* event) {
    if (watched == &m_rail && event->type() == QEvent::Resize) place();
    if (event->type() == QEvent::MouseButtonPress) {
        const auto* pressed = qobject_cast<QWidget*>(watched);
        const bool isElsewhere = pressed && pressed->window() == window() && pressed != this && !isAncestorOf(pressed);
        if (isElsewhere && pressed != &m_rail && !m_rail.isAncestorOf(pressed)) close(); // the rail's button toggles
    }
    return QFrame::eventFilter(watched, event);
}

} // namespace kvscope
