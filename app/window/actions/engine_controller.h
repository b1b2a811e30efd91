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

/// Which engine the window computes on. The engine chosen by hand is remembered for this machine, because a machine has
/// it and kept lists do not depend on it; the arithmetic is the session's, because fast results differ. An engine that
/// cannot be had leaves the one there is, and one line says why.
class EngineController : public QObject {
    Q_OBJECT

public:
    using Make = std::function<std::unique_ptr<Engine>(const EngineChoice&)>;
    EngineController(Workbench& workbench, NoticeStrip& notices, QObject* parent, Make make = makeEngine);

    /// What the window starts with beside the CPU engine that it has: `asked`, or, where that has no name, the engine
    /// chosen last time. Threads hold for every engine from now on. Not remembered.
    void start(EngineChoice asked);
    void choose(const std::string& name);
    void chooseArithmetic(Arithmetic arithmetic); ///< a step that can be undone

    const EngineChoice& current() const { return m_current; }
    bool opening() const { return m_opening; }
    const EngineChoice& wanted() const { return m_wanted; } ///< what is being opened, else the current one
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
