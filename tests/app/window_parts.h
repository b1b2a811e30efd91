#pragma once

#include "app/text/qt_text_service.h"
#include "app/window/main_window.h"
#include "core/engine/engine.h"

#include <QCoreApplication>
#include <QSurfaceFormat>

namespace kvscope::testing {

/// A window as the program composes it, not yet shown.
struct WindowParts {
    int threads = 0; ///< of the engine; 0: all cores
    QtTextService text;
    WorkerPool workers{2};
    Workbench bench{
        std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(threads))),
        [this](Scheduler::Task task) { workers.run(std::move(task)); },
        [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); }};
    MainWindow window{bench, text};

    explicit WindowParts(int engineThreads) : threads(engineThreads) {}
};

/// As the program's, before there is an application.
inline void useFormatOfTheProgram() {
    QSurfaceFormat format;
    format.setVersion(3, 3);
    format.setProfile(QSurfaceFormat::CoreProfile);
    format.setSwapInterval(0);
    QSurfaceFormat::setDefaultFormat(format);
}

} // namespace kvscope::testing
