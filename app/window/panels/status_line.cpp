// The facts that make a screenshot understandable later.
#include "app/window/panels/status_line.h"

#include "app/window/panels/engine_chooser.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QHBoxLayout>

namespace kvscope {

namespace {

const QString kGap = "   │   ";

/// The selected tokens, and how many of them the active pane keeps.
QString selectionText(const ViewInput& input) {
    const auto& selected = input.focus.selected;
    if (selected.empty()) return {};
    const QString name = input.focus.selectionName.empty() ? QString() : fromUtf8(input.focus.selectionName) + ", ";
    const QString text =
        QObject::tr("selected: %1%2").arg(name, fromUtf8(formatCounted(std::ssize(selected), "token")));
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result) return text;
    return text + QObject::tr(", %1 kept by %2")
                      .arg(countText(keptAmong(input, *pane, selected).kept))
                      .arg(QChar(pane->letter));
}

QString headText(const ViewInput& input) {
    return QObject::tr("layer %1, KV head %2, query head %3 (0-based)")
        .arg(input.layer.value)
        .arg(input.kvHead.value)
        .arg(input.queryHead.value);
}

/// Shortens the line: facts shown elsewhere (shape, cut, file, policy) go first; head and selection stay.
QStringList shorterTexts(QStringList facts) {
    constexpr int kFile = 0, kShape = 2, kCut = 3, kPolicy = 4;
    QStringList texts;
    if (facts.size() <= kCut) return texts;
    for (const int fact : {kShape, kCut, kFile, kPolicy}) {
        facts[fact].clear();
        QStringList left = facts;
        left.removeAll(QString());
        texts += left.join(kGap);
    }
    return texts;
}

} // namespace

StatusLine::StatusLine(Workbench& workbench, EngineController& engines, QWidget* parent)
    : QWidget(parent), m_workbench(workbench) {
    setObjectName("statusLine");
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(px(24));
    auto* row = makeLayout<QHBoxLayout>(this, {16, 0, 16, 0});
    m_left = new ElidedLabel("status", Qt::ElideRight, this);
    row->addWidget(m_left, 1);
    m_engine = new EngineChooser(m_workbench, engines, this);
    row->addWidget(m_engine);
    m_right = new LiveNumber(11, QFont::Normal, this, m_workbench.clock());
    row->addWidget(m_right);
    connect(&m_workbench, &Workbench::sessionChanged, this, &StatusLine::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &StatusLine::refresh);
    connect(&m_workbench, &Workbench::engineChanged, this, &StatusLine::refresh);
    refresh();
}

QString StatusLine::text() const {
    return QStringList({m_left->accessibleName(), m_engine->text(), m_right->text()}).join(kGap);
}

void StatusLine::refresh() {
    m_engine->showCounts();
    const EngineState state = m_workbench.runner().engine().state();
    QStringList right;
    if (!state.notice.empty()) // the last fallback
        right += fromUtf8(state.notice);
    if (!m_workbench.capture()) {
        m_left->setFullText(tr("no capture open"));
        m_right->show(right.join(kGap));
        return;
    }
    const ViewInput input = m_workbench.drawnPane(m_workbench.session().activePane).input;
    const CaptureInfo& info = input.capture->info();
    // What changes during a drag stands behind what does not, so that words keep their place.
    QStringList left = {fromUtf8(info.fileName), headText(input),
                        QString("n %1 · d %2 · %3")
                            .arg(countText(info.numTokens))
                            .arg(info.headDim)
                            .arg(QString::fromUtf8(storedTypeName(info.layerInfo(input.layer).storedType).data())),
                        tr("cut: %1").arg(fromUtf8(input.cut.label))};
    if (const PaneData* pane = activePane(input)) {
        left += QString("%1 %2 %3").arg(QChar(pane->letter)).arg(fromUtf8(pane->policyName), fromUtf8(pane->variant));
        if (pane->result) {
            left.last() +=
                QString(" · N %1").arg(fromUtf8(formatBudget(pane->result->requested, pane->result->visible)));
            const StageTimes& times = pane->result->times;
            right +=
                tr("features%1 %2 · select %3")
                    .arg(times.featuresFromCache ? tr(" (cached)") : QString(),
                         milliText(times.featuresMs).rightJustified(8), milliText(times.selectMs).rightJustified(8));
        }
    }
    left += selectionText(input);
    left.removeAll(QString());
    m_left->setFullText(left.join(kGap), shorterTexts(left));
    m_right->show(right.join(kGap));
}

} // namespace kvscope
