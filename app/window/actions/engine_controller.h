#pragma once

#include "app/workbench/workbench.h"
#include "gpu/engine_factory.h"

#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <string>

namespace kvscope {

class NoticeStrip;

/// Chooses the engine that the window computes on. The user's choice is remembered per machine, because kept lists do
/// not depend on it; the arithmetic belongs to the session, because fast results differ. If an engine cannot be opened,
/// the current one stays and a notice gives the reason.
class EngineController : public QObject {
    Q_OBJECT

public:
    using Make = std::function<std::unique_ptr<Engine>(const EngineChoice&)>;
    EngineController(Workbench& workbench, NoticeStrip& notices, QObject* parent, Make make = makeEngine);

    /// Opens the engine `asked` for, or without a name the one chosen last time; until then the CPU engine computes.
    /// `asked.threads` holds for every later engine. The choice is not remembered.
    void start(EngineChoice asked);
    void choose(const std::string& name);
    void chooseArithmetic(Arithmetic arithmetic); ///< a step that can be undone

    const EngineChoice& current() const { return m_current; }
    bool opening() const { return m_opening; }
    const EngineChoice& wanted() const { return m_wanted; } ///< the engine being opened, else the current one
    static QString titleOf(const std::string& name);        ///< "NVIDIA GPU"

signals:
    void changed();

private:
    void open(const EngineChoice& choice);
    void followSession();
    void installed();
    void refused(const QString& message);

    Workbench& m_workbench;
    NoticeStrip& m_notices;
    Make m_make;
    EngineChoice m_current, m_wanted;
    bool m_opening = false, m_byHand = false;
};

} // namespace kvscope
