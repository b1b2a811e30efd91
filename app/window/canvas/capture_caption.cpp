// Two captures have the same policies and letters: each picture says whose it is.
#include "app/window/canvas/capture_caption.h"

#include "app/window/style/number_text.h"

namespace kvscope {

CaptureCaption::CaptureCaption(Workbench& workbench, int number, QWidget* parent)
    : ElidedLabel("fact", Qt::ElideRight, parent), m_workbench(workbench), m_number(number) {
    setObjectName(QString("captureCaption%1").arg(number));
    setContentsMargins(px(10), px(2), px(6), px(2));
    connect(&m_workbench, &Workbench::sessionChanged, this, &CaptureCaption::refresh);
    connect(&m_workbench, &Workbench::captureChanged, this, &CaptureCaption::refresh);
    refresh();
}

void CaptureCaption::setFinding(const QString& finding) {
    m_finding = finding;
    refresh();
}

void CaptureCaption::refresh() {
    if (!m_workbench.capture()) return;
    QString text = QString("%1  %2").arg(m_number).arg(fromUtf8(m_workbench.capture()->info().fileName));
    if (!m_finding.isEmpty())
        text += ": " + m_finding;
    else if (m_workbench.cut())
        text += tr(" · %1 tokens seen").arg(countText(m_workbench.cut()->token));
    setFullText(text);
}

} // namespace kvscope
