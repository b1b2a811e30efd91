// Two captures have the same policies and letters, so each picture names its capture.
#include "app/window/canvas/capture_caption.h"

#include "app/study/makers/view_data_maker.h"
#include "app/window/style/number_text.h"

namespace kvscope {

CaptureCaption::CaptureCaption(Workbench& workbench, int number, QWidget* parent)
    : ElidedLabel("fact", Qt::ElideRight, parent), m_workbench(workbench), m_number(number) {
    setObjectName(QString("captureCaption%1").arg(number));
    setContentsMargins(px(10), px(2), px(6), px(2));
    m_workbench.tell(this, &CaptureCaption::refresh, &Workbench::sessionChanged, &Workbench::captureChanged);
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

QString pictureName(const Workbench& shown, const View& view) {
    const QString name = fromUtf8(view.card().name);
    const Session& session = shown.session();
    const ViewDataMaker* maker = makerFor(view);
    const bool showsBoth = maker && maker->dependsOn(DataScope::Compared);
    const bool isOneOfTwo = !showsBoth && (session.isSecond || !session.compared.path.empty());
    if (!shown.capture() || !isOneOfTwo) return name;
    return name + " · " + fromUtf8(shown.capture()->info().fileName);
}

} // namespace kvscope
