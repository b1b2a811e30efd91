// A page runs every view once, which takes seconds: it has a slot of its own and the window goes on.
#include "app/window/actions/report_export.h"

#include "app/report/report.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "core/base/error.h"
#include "core/base/own_output.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QPointer>

#include <cmath>
#include <memory>
#include <utility>

namespace kvscope {

namespace {

constexpr const char *kReportSlot = "report", *kReportNotice = "report";

Scheduler::Job reportJob(Workbench& workbench, const QString& path, QPointer<NoticeStrip> notices) {
    Scheduler::Job job;
    job.work = [session = workbench.session(), capture = workbench.capture(), runner = workbench.sharedRunner(), path,
                notices](const Checkpoint& checkpoint, const auto& post) {
        writeReport(path.toStdString(), reportPage(session, capture, *runner, {}, checkpoint));
        post([notices, path] {
            if (notices)
                notices->show(kReportNotice, NoticeStrip::Tone::Notice, QObject::tr("Written: %1").arg(path));
        });
    };
    job.progress = [notices, bench = QPointer<Workbench>(&workbench),
                    shown = std::make_shared<int>(-1)](double fraction) {
        const int percent = static_cast<int>(std::lround(100 * fraction)) / 5 * 5;
        if (!notices || percent == std::exchange(*shown, percent))
            return;
        notices->show(kReportNotice, NoticeStrip::Tone::Notice, QObject::tr("Writing the report: %1 %").arg(percent),
                      QObject::tr("Cancel"), [bench, notices] {
                          if (bench)
                              bench->cancel(kReportSlot);
                          if (notices)
                              notices->dismiss(kReportNotice);
                      });
    };
    job.failed = [notices](std::exception_ptr failure) {
        if (notices)
            notices->show(kReportNotice, NoticeStrip::Tone::Error, fromUtf8(messageOf(failure)));
    };
    return job;
}

} // namespace

void exportReport(QWidget& window, Workbench& workbench, NoticeStrip& notices) {
    const QFileInfo capture(fromUtf8(workbench.session().capturePath));
    QString path = QFileDialog::getSaveFileName(&window, QObject::tr("Export report"),
                                                capture.dir().filePath(capture.completeBaseName() + "-report.html"),
                                                QObject::tr("Pages (*.html)"));
    if (path.isEmpty() || !workbench.capture())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += ".html";
    try {
        checkIsNoSource(path.toStdString(), filesReadBy(workbench.session()));
    } catch (const Error& error) {
        notices.show(kReportNotice, NoticeStrip::Tone::Error, fromUtf8(error.what()));
        return;
    }
    Scheduler::Job job = reportJob(workbench, path, &notices);
    job.progress(0);
    workbench.submit(kReportSlot, std::move(job));
}

} // namespace kvscope
