// The report of the session as it is when the file is chosen.
#include "app/window/actions/report_export.h"

#include "app/report/handout.h"
#include "app/report/report.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/file_to_write.h"
#include "app/window/widgets/writing_job.h"
#include "core/base/atomic_file.h"
#include "core/base/own_output.h"

#include <QDir>
#include <QFileInfo>

namespace kvscope {

void exportReport(QWidget& window, Workbench& workbench, NoticeStrip& notices) {
    const QFileInfo capture(fromUtf8(workbench.session().capturePath));
    const QString path =
        fileToWrite(&window, QObject::tr("Export report"),
                    capture.dir().filePath(capture.completeBaseName() + "-report.html"), QObject::tr("Pages (*.html)"));
    if (path.isEmpty() || !workbench.capture()) return;
    submitWriting(workbench, notices, path,
                  [session = workbench.session(), capture = workbench.capture(), runner = workbench.sharedRunner(),
                   path](const Checkpoint& checkpoint) {
                      checkIsNoSource(path.toStdString(), filesReadBy(session));
                      writeReport(path.toStdString(), reportPage(session, capture, *runner, {}, checkpoint));
                      return std::function<void()>();
                  });
}

void exportHandout(QWidget& window, Workbench& workbench, NoticeStrip& notices) {
    const auto lesson = lessonOf(workbench.session());
    if (!lesson || !workbench.capture()) return;
    const QFileInfo capture(fromUtf8(workbench.session().capturePath));
    const QString path =
        fileToWrite(&window, QObject::tr("Handout of the lesson"),
                    capture.dir().filePath(fromUtf8(lesson->title) + ".pdf"), QObject::tr("PDF (*.pdf)"));
    if (path.isEmpty()) return;
    submitWriting(workbench, notices, path,
                  [of = HandoutLesson{*lesson, workbench.capture(), workbench.sharedRunner()},
                   session = workbench.session(), path](const Checkpoint& checkpoint) {
                      checkIsNoSource(path.toStdString(), filesReadBy(session));
                      writeFileAtomically(path.toStdString(), handoutPdf({of}, checkpoint));
                      return std::function<void()>();
                  });
}

} // namespace kvscope
