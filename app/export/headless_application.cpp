// Figures without a display. Qt's offscreen platform measures text like any other; its messages about the desktop's
// run-time folders are suppressed.
#include "app/export/headless_application.h"

#include <QString>

namespace kvscope {

namespace {

QtMessageHandler g_next = nullptr;

void withoutDesktopNotes(QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (!message.startsWith(QLatin1String("QStandardPaths: XDG_RUNTIME_DIR"))) g_next(type, context, message);
}

} // namespace

HeadlessApplication::HeadlessApplication() {
    if (qGuiApp) return;
    qputenv("QT_QPA_PLATFORM", "offscreen"); // before the application looks at the environment
    if (!g_next) g_next = qInstallMessageHandler(withoutDesktopNotes);
    m_application = std::make_unique<QGuiApplication>(m_count, m_arguments);
}

} // namespace kvscope
