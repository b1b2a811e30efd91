// Creates engine, runner, workers, workbench and main window.
#include "app/window/run_window.h"

#include "app/study/sample_path.h"
#include "app/text/qt_text_service.h"
#include "app/window/actions/engine_controller.h"
#include "app/window/main_window.h"
#include "app/window/style/appearance.h"
#include "app/window/style/system_theme.h"
#include "app/window/widgets/notice_strip.h"
#include "core/engine/engine.h"

#include <QApplication>
#include <QCoreApplication>
#include <QOpenGLContext>
#include <QProcess>
#include <QSurfaceFormat>

#include <cstdio>

namespace kvscope {

namespace {

// Panes run in parallel, and each uses the engine's own threads, so more workers would only compete.
constexpr int kWorkers = 2;

} // namespace

int runWindow(int& argc, char** argv, std::string path, int threads, const std::string& engine) {
    QSurfaceFormat format;
    format.setVersion(3, 3);
    format.setProfile(QSurfaceFormat::CoreProfile);
    format.setSwapInterval(0);
    QSurfaceFormat::setDefaultFormat(format);
    QApplication application(argc, argv);
    if (QOpenGLContext probe; !probe.create()) { // the platforms offscreen and minimal would crash later
        std::fputs("kvscope: the display has no OpenGL, which the window needs; use a subcommand (kvscope --help) or "
                   "xvfb-run\n",
                   stderr);
        return 2;
    }
    QApplication::setApplicationName("KVScope");
    QApplication::setOrganizationName("KVScope");
    QApplication::setStyle(makeChromeStyle());
    systemTheme().start();

    const QtTextService text;
    // The window opens at once on the CPU engine; another engine takes over when it is ready.
    const auto runner = std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(threads)));
    WorkerPool workers(kWorkers);
    Workbench workbench(
        runner, [&workers](Scheduler::Task task) { workers.run(std::move(task)); },
        [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); });
    MainWindow window(workbench, text);
    // Another process, so that windows do not affect each other.
    QObject::connect(&window, &MainWindow::besideWanted, &window, [&window](const QString& path) {
        if (!QProcess::startDetached(QCoreApplication::applicationFilePath(), {path}))
            window.notices().show(
                "error", NoticeStrip::Tone::Error,
                MainWindow::tr("A second window cannot be started: open the file here instead. %1").arg(path));
    });
    window.engines().start({.name = engine, .threads = threads});
    window.show();
    window.offerTour();
    if (path.empty()) path = findSampleCapture(QCoreApplication::applicationDirPath().toStdString());
    if (!path.empty()) window.openPath(QString::fromStdString(path));
    return QApplication::exec();
}

} // namespace kvscope
