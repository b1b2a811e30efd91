// A network drive may not answer for minutes, and the system offers no way to give a write up. So the thread that
// writes is left alone with it.
#include "app/window/widgets/write_aside.h"

#include "core/base/error.h"

#include <QFileDialog>
#include <QProgressDialog>
#include <QTimer>

#include <chrono>
#include <future>
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
            throw Error({.sentence = "the disk did not answer while the file was written",
                         .remedy = "Choose a name on another disk",
                         .path = path.toStdString()});
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

} // namespace kvscope
