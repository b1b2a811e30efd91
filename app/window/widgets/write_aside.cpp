// A network drive may not answer for minutes, and the system offers no way to cancel a write. So the thread that writes
// is detached.
#include "app/window/widgets/write_aside.h"

#include "app/study/session.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"

#include <QFileDialog>
#include <QPointer>
#include <QProgressDialog>
#include <QTimer>

#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace kvscope {

void writeAside(QWidget* window, const QString& path, std::function<void()> write) {
    using namespace std::chrono_literals;
    std::packaged_task<void()> task(std::move(write));
    std::future<void> written = task.get_future();
    std::thread(std::move(task)).detach();
    const auto isWritten = [&](std::chrono::milliseconds patience) {
        return written.wait_for(patience) == std::future_status::ready;
    };
    if (!isWritten(300ms)) {
        QProgressDialog dialog(QObject::tr("The disk has not yet written %1.").arg(path), QObject::tr("Stop waiting"),
                               0, 0, window);
        dialog.setWindowTitle(QObject::tr("KVScope"));
        dialog.setBar(nullptr); // nobody knows how long
        dialog.setWindowModality(Qt::ApplicationModal);
        QTimer look;
        QObject::connect(&look, &QTimer::timeout, &dialog, [&] {
            if (isWritten(0ms)) dialog.accept();
        });
        look.start(50);
        dialog.exec();
        if (!isWritten(0ms))
            throw Error({"the disk did not answer while the file was written", "", "Choose a name on another disk",
                         path.toStdString()});
    }
    written.get();
}

QString fileToWrite(QWidget* parent, const QString& title, const QString& proposed, const QString& filter) {
    const QFileInfo file(proposed);
    QFileDialog dialog(parent, title, file.path(), filter);
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(file.suffix());
    dialog.selectFile(file.fileName());
    return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
}

void submitWriting(Workbench& workbench, NoticeStrip& notices, const QString& path,
                   std::function<std::function<void()>(const Checkpoint&)> work) {
    const std::string slot = "write " + path.toStdString();
    const auto show = [strip = QPointer<NoticeStrip>(&notices), path](NoticeStrip::Tone tone, const QString& message,
                                                                      auto... action) {
        if (strip) strip->show("write " + path, tone, message, action...);
    };
    Scheduler::Job job;
    job.failed = [show](std::exception_ptr failure) { show(NoticeStrip::Tone::Error, fromUtf8(messageOf(failure))); };
    job.work = [work = std::move(work), show, path, sources = filesReadBy(workbench.session()),
                failed = job.failed](const Checkpoint& checkpoint, const auto& post) {
        checkIsNoSource(path.toStdString(), sources);
        post([rest = work(checkpoint), show, path, failed] {
            try {
                if (rest) rest();
                show(NoticeStrip::Tone::Success, QObject::tr("Written: %1").arg(path));
            } catch (...) {
                failed(std::current_exception());
            }
        });
    };
    job.progress = [show, path, slot, bench = QPointer<Workbench>(&workbench), strip = QPointer<NoticeStrip>(&notices),
                    shown = std::make_shared<int>(-1)](double fraction) {
        const int percent = static_cast<int>(std::lround(100 * fraction)) / 5 * 5;
        if (percent == std::exchange(*shown, percent)) return;
        show(NoticeStrip::Tone::Progress, QObject::tr("Writing %1: %2 %").arg(path).arg(percent), QObject::tr("Cancel"),
             std::function<void()>([bench, strip, slot, path] {
                 if (bench) bench->writers().cancel(slot);
                 if (strip) strip->dismiss("write " + path);
             }));
    };
    job.progress(0);
    workbench.writers().submit(slot, std::move(job));
}

} // namespace kvscope
