// What is written may take seconds: it has a slot of its own, and the window goes on.
#include "app/window/widgets/writing_job.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"

#include <QPointer>

#include <cmath>
#include <exception>
#include <memory>
#include <utility>

namespace kvscope {

void submitWriting(Workbench& workbench, NoticeStrip& notices, const QString& path,
                   std::function<std::function<void()>(const Checkpoint&)> work) {
    const std::string slot = "write " + path.toStdString();
    const auto show = [strip = QPointer<NoticeStrip>(&notices), path](NoticeStrip::Tone tone, const QString& message,
                                                                      auto... action) {
        if (strip) strip->show("write " + path, tone, message, action...);
    };
    Scheduler::Job job;
    job.failed = [show](std::exception_ptr failure) { show(NoticeStrip::Tone::Error, fromUtf8(messageOf(failure))); };
    job.work = [work = std::move(work), show, path, failed = job.failed](const Checkpoint& checkpoint,
                                                                         const auto& post) {
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
