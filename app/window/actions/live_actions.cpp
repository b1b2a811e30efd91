// A live context's worker is another program, perhaps on another machine: it may end at any time.
#include "app/window/actions/live_actions.h"

#include "app/live/worker_process.h"
#include "app/study/regenerating_command.h"
#include "app/study/session_source.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/write_aside.h"
#include "core/base/error.h"
#include "views/common/view_facts.h"

#include <QDir>
#include <QFileInfo>

namespace kvscope {

LiveActions::LiveActions(Workbench& workbench, NoticeStrip& notices, QWidget* window)
    : QObject(window), m_workbench(workbench), m_notices(notices), m_window(window) {
    live::keepNiceness(); // of this thread, because the jobs that start workers run at a lower priority
    connect(&m_workbench, &Workbench::workerLost, this, [this](const QString& message) {
        m_notices.show("worker", NoticeStrip::Tone::Error,
                       tr("%1 What was computed stays.").arg(fromUtf8(withFullStop(asSentence(message.toStdString())))),
                       tr("Start again"), [this] { m_workbench.reload(); });
    });
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { m_notices.dismiss("worker"); });
}

void LiveActions::saveCapture() {
    const auto live = m_workbench.live();
    if (!live) return;
    const QString path =
        fileToWrite(m_window, tr("Save as capture, on the machine of the model"),
                    QDir::home().filePath(fromUtf8(stemOf(m_workbench.session())) + ".h5"), tr("Captures (*.h5)"));
    if (path.isEmpty()) return;
    submitWriting(m_workbench, m_notices, path,
                  [this, live, path, text = m_workbench.session().live](const Checkpoint& checkpoint) {
                      live->writeCapture(path.toStdString(), checkpoint);
                      return std::function<void()>([this, path, text] {
                          m_savedLive = text;
                          m_savedCapture = path.toStdString();
                          if (!QFileInfo::exists(path))
                              throw Error({"the model's worker has written the capture on its own machine", "",
                                           "Copy it from there", path.toStdString()});
                      });
                  });
}

SavedLive LiveActions::saved() const {
    return {m_workbench.history().file(), m_savedLive == m_workbench.session().live ? m_savedCapture : std::string()};
}

} // namespace kvscope
