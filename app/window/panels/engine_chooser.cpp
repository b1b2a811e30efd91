// Shows the engine and its arithmetic, with a menu of the others.
#include "app/window/panels/engine_chooser.h"

#include "app/window/style/number_text.h"

#include <QActionGroup>
#include <QMenu>
#include <QStyle>

namespace kvscope {

namespace {

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
    style()->unpolish(this);
    style()->polish(this);
}

void EngineChooser::showCounts() {
    const QString where = whereItRuns(m_workbench.runner().engine().state());
    setToolTip(where.isEmpty() ? tr("Which engine computes, and how exactly") : where);
}

void EngineChooser::fillMenu() {
    menu()->clear();
    qDeleteAll(menu()->findChildren<QActionGroup*>());
    addEngines();
    menu()->addSeparator();
    addArithmetics();
}

void EngineChooser::addEngines() {
    auto* group = new QActionGroup(menu());
    for (const EngineOffer& offer : engineOffers()) {
        QString label = fromUtf8(offer.title);
        if (!offer.missing.empty()) label += " – " + fromUtf8(offer.missing);
        QAction* action = menu()->addAction(label);
        action->setActionGroup(group);
        action->setObjectName("engine_" + fromUtf8(offer.name));
        action->setCheckable(true);
        action->setChecked(m_controller.current().name == offer.name);
        action->setEnabled(offer.missing.empty());
        action->setToolTip(offer.remedy.empty() ? tr("The same lists on every engine in exact arithmetic")
                                                : fromUtf8(offer.remedy));
        connect(action, &QAction::triggered, this, [this, name = offer.name] { m_controller.choose(name); });
    }
}

void EngineChooser::addArithmetics() {
    auto* group = new QActionGroup(menu());
    const auto add = [&](const char* name, const QString& label, const QString& tip, Arithmetic arithmetic) {
        QAction* action = menu()->addAction(label);
        action->setActionGroup(group);
        action->setObjectName(name);
        action->setCheckable(true);
        action->setChecked(m_controller.current().arithmetic == arithmetic);
        action->setToolTip(tip);
        connect(action, &QAction::triggered, this, [this, arithmetic] { m_controller.chooseArithmetic(arithmetic); });
    };
    add("arithmetic_exact", tr("Exact: lists comparable to the last token"),
        tr("Sums in double, rounded once: the same lists on every engine and machine"), Arithmetic::Exact);
    add("arithmetic_fast", tr("Fast: float sums, lists may differ"),
        tr("Float sums where they pay, tensor cores on a GPU; outside the index contract"), Arithmetic::Fast);
}

} // namespace kvscope
