// Opening an engine takes time and may fail, so the current engine computes until the new one is ready.
#include "app/window/actions/engine_controller.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"

#include <QSettings>

#include <utility>

namespace kvscope {

constexpr const char* kEngineKey = "engine";
constexpr const char* kNotice = "engine";

EngineController::EngineController(Workbench& workbench, NoticeStrip& notices, QObject* parent, Make make)
    : QObject(parent), m_workbench(workbench), m_notices(notices), m_make(std::move(make)) {
    connect(&m_workbench, &Workbench::sessionChanged, this, &EngineController::followSession);
    connect(&m_workbench, &Workbench::engineChanged, this, &EngineController::installed);
    connect(&m_workbench, &Workbench::engineFailed, this, &EngineController::refused);
}

void EngineController::start(EngineChoice asked) {
    m_current.threads = asked.threads;
    m_wanted = m_current;
    if (asked.name.empty()) asked.name = QSettings().value(kEngineKey, "cpu").toString().toStdString();
    if (asked.name != m_current.name) open(asked);
}

void EngineController::choose(const std::string& name) {
    if (name == m_wanted.name) {
        if (!m_opening)
            QSettings().setValue(kEngineKey, fromUtf8(name)); // --engine named it; now the user has chosen it
        return;
    }
    EngineChoice choice = m_wanted;
    choice.name = name;
    open(choice);
    m_byHand = true;
}

void EngineController::chooseArithmetic(Arithmetic arithmetic) {
    m_workbench.change([&](Session& s) { s.arithmetic = arithmetic; }, tr("Arithmetic"));
}

QString EngineController::titleOf(const std::string& name) {
    for (const EngineOffer& offer : engineOffers())
        if (offer.name == name) return fromUtf8(offer.title);
    return fromUtf8(name);
}

void EngineController::followSession() {
    if (m_workbench.session().arithmetic == m_wanted.arithmetic) return;
    EngineChoice choice = m_wanted;
    choice.arithmetic = m_workbench.session().arithmetic;
    const bool byHand = m_opening && m_byHand;
    open(choice);
    m_byHand = byHand;
}

void EngineController::open(const EngineChoice& choice) {
    m_wanted = choice;
    m_opening = true;
    m_byHand = false;
    m_workbench.useEngine([make = m_make, choice] { return make(choice); });
    emit changed();
}

void EngineController::installed() {
    m_opening = false;
    if (m_wanted.name != m_current.name) m_notices.dismiss(kNotice);
    m_current = m_wanted;
    if (m_byHand) QSettings().setValue(kEngineKey, fromUtf8(m_current.name));
    emit changed();
}

void EngineController::refused(const QString& message) {
    m_opening = false;
    const bool otherEngine = m_wanted.name != m_current.name;
    m_notices.show(kNotice, NoticeStrip::Tone::Warning,
                   tr("Computing goes on with %1: %2").arg(titleOf(m_current.name), message));
    m_wanted.name = m_current.name; // the arithmetic stays wanted, or every session change would ask again
    if (otherEngine && m_wanted.arithmetic != m_current.arithmetic)
        open(EngineChoice(m_wanted)); // the user chose another engine while this one was opening
    else
        emit changed();
}

} // namespace kvscope
