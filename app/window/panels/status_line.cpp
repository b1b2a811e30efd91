// The facts that make a screenshot understandable later.
#include "app/window/panels/status_line.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/calibrated_budget.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QActionGroup>
#include <QHBoxLayout>
#include <QMenu>

#include <limits>

namespace kvscope {

namespace {

const QString kGap = "   │   ";

/// The selected tokens, and how many of them the active pane keeps; a longer name than `mostOfName` characters is cut,
/// because it may be a sentence that was searched for.
QString selectionText(const ViewInput& input, qsizetype mostOfName) {
    const auto& selected = input.focus.selected;
    if (selected.empty()) return {};
    QString name = fromUtf8(input.focus.selectionName);
    if (name.size() > mostOfName) name = name.left(mostOfName - 1).trimmed() + "…";
    if (!name.isEmpty()) name += ", ";
    const QString text =
        QObject::tr("selected: %1%2").arg(name, fromUtf8(formatCounted(std::ssize(selected), "token")));
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result || pane->outdated) return text;
    return text + QObject::tr(", %1 kept by %2")
                      .arg(countText(keptAmong(input, *pane, selected).kept))
                      .arg(QChar(pane->letter));
}

QString lineOf(QStringList facts) {
    facts.removeAll(QString());
    return facts.join(kGap);
}

/// Shorter lines of file, head, shape, cut, policy, selection: facts shown elsewhere (shape, cut, file, policy) go
/// first; head and selection stay.
QStringList shorterTexts(QStringList facts) {
    constexpr int kFile = 0, kShape = 2, kCut = 3, kPolicy = 4;
    QStringList texts = {lineOf(facts)};
    for (const int fact : {kShape, kCut, kFile, kPolicy}) {
        facts[fact].clear();
        texts += lineOf(facts);
    }
    return texts;
}

/// One line each: the device, what it leaves to the CPU, and what failed on it.
QString whereItRuns(const EngineState& state) {
    QStringList lines;
    if (!state.device.empty()) lines += QObject::tr("Computes on: %1").arg(fromUtf8(state.device));
    if (!state.delegated.empty())
        lines += QObject::tr("No code for the device, computed on the CPU: %1").arg(fromUtf8(textOf(state.delegated)));
    if (!state.fallbacks.empty())
        lines += QObject::tr("Failed on the device, computed on the CPU: %1").arg(fromUtf8(textOf(state.fallbacks)));
    if (!state.failure.empty()) lines += QObject::tr("The last failure: %1").arg(fromUtf8(state.failure));
    return lines.join('\n');
}

} // namespace

StatusLine::StatusLine(Workbench& workbench, EngineController& engines, QWidget* parent)
    : QWidget(parent), m_workbench(workbench) {
    setObjectName("statusLine");
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(px(24));
    auto* row = makeLayout<QHBoxLayout>(this, {16, 0, 16, 0});
    m_left = added(row, new ElidedLabel("status", Qt::ElideRight, this), 1);
    m_engine = added(row, new EngineChooser(m_workbench, engines, this));
    m_right = added(row, new LiveNumber(11, QFont::Normal, this, m_workbench.clock()));
    m_workbench.tell(this, &StatusLine::refresh, &Workbench::sessionChanged, &Workbench::panesChanged,
                     &Workbench::engineChanged);
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
    QStringList left = {fromUtf8(info.fileName),
                        tr("layer %1, KV head %2, query head %3 (0-based)")
                            .arg(input.layer.value)
                            .arg(input.kvHead.value)
                            .arg(input.queryHead.value),
                        QString("n %1 · d %2 · %3")
                            .arg(countText(info.numTokens))
                            .arg(info.headDim)
                            .arg(QString::fromUtf8(storedTypeName(info.layerInfo(input.layer).storedType).data())),
                        tr("cut: %1").arg(fromUtf8(input.cut.label)), QString()};
    if (const PaneData* pane = activePane(input)) {
        left.last() =
            QString("%1 %2 %3").arg(QChar(pane->letter)).arg(fromUtf8(pane->policyName), fromUtf8(pane->variant));
        if (pane->result && !pane->outdated) { // an older result is not of the policy that is named
            if (takesBudget(*pane->result))
                left.last() +=
                    QString(" · N %1").arg(fromUtf8(formatBudget(pane->result->requested, pane->result->visible)));
            const StageTimes& times = pane->result->times;
            right +=
                tr("features%1 %2 · select %3")
                    .arg(times.featuresFromCache ? tr(" (cached)") : QString(),
                         milliText(times.featuresMs).rightJustified(8), milliText(times.selectMs).rightJustified(8));
        }
    }
    constexpr qsizetype kMostOfName = 24;
    const QString whole = lineOf(left + QStringList(selectionText(input, std::numeric_limits<qsizetype>::max())));
    left += selectionText(input, kMostOfName);
    m_left->setFullText(whole, shorterTexts(left));
    m_right->show(right.join(kGap));
}

EngineChooser::EngineChooser(Workbench& workbench, EngineController& controller, QWidget* parent)
    : QToolButton(parent), m_workbench(workbench), m_controller(controller) {
    setObjectName("engineChooser");
    setProperty("look", "status");
    setPopupMode(QToolButton::InstantPopup);
    setMenu(new QMenu(this));
    menu()->setToolTipsVisible(true);
    connect(menu(), &QMenu::aboutToShow, this, &EngineChooser::fillMenu);
    connect(&m_controller, &EngineController::changed, this, &EngineChooser::refresh);
    connect(&m_workbench, &Workbench::engineChanged, this, &EngineChooser::refresh);
    refresh();
}

void EngineChooser::refresh() {
    const Engine& engine = m_workbench.runner().engine();
    const bool fast = m_controller.current().arithmetic == Arithmetic::Fast;
    setEnabled(!m_controller.opening()); // until it has opened or failed
    setText(m_controller.opening()
                ? tr("opening %1…").arg(EngineController::titleOf(m_controller.wanted().name))
                : QString("%1 · %2").arg(fromUtf8(engine.name()).toUpper(), fromUtf8(engine.arithmetic())));
    setAccessibleName(tr("Engine: %1").arg(text()));
    showCounts();
    setProperty("tone", fast ? "warning" : "plain"); // fast results may differ in the last token
    repolish(this);
}

void EngineChooser::showCounts() {
    const QString where = whereItRuns(m_workbench.runner().engine().state());
    setToolTip(where.isEmpty() ? tr("Which engine computes, and how exactly") : where);
}

void EngineChooser::fillMenu() {
    menu()->clear();
    qDeleteAll(menu()->findChildren<QActionGroup*>());
    const auto add = [this](QActionGroup* group, const QString& name, const QString& label, const QString& tip,
                            bool isChosen, const std::function<void()>& choose) {
        QAction* action = menu()->addAction(label, this, choose);
        action->setActionGroup(group);
        action->setObjectName(name);
        action->setCheckable(true);
        action->setChecked(isChosen);
        action->setToolTip(tip);
        return action;
    };
    auto* engines = new QActionGroup(menu());
    for (const EngineOffer& offer : engineOffers()) {
        QString label = fromUtf8(offer.title);
        if (!offer.missing.empty()) label += " – " + fromUtf8(offer.missing);
        add(engines, "engine_" + fromUtf8(offer.name), label,
            offer.remedy.empty() ? tr("The same lists on every engine in exact arithmetic") : fromUtf8(offer.remedy),
            m_controller.current().name == offer.name, [this, name = offer.name] { m_controller.choose(name); })
            ->setEnabled(offer.missing.empty());
    }
    menu()->addSeparator();
    auto* arithmetics = new QActionGroup(menu());
    const Arithmetic now = m_controller.current().arithmetic;
    add(arithmetics, "arithmetic_exact", tr("Exact: lists comparable to the last token"),
        tr("Sums in double, rounded once: the same lists on every engine and machine"), now == Arithmetic::Exact,
        [this] { m_controller.chooseArithmetic(Arithmetic::Exact); });
    add(arithmetics, "arithmetic_fast", tr("Fast: float sums, lists may differ"),
        tr("Float sums where they pay, tensor cores on a GPU; outside the index contract"), now == Arithmetic::Fast,
        [this] { m_controller.chooseArithmetic(Arithmetic::Fast); });
}

} // namespace kvscope
