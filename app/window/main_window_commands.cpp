// Commands that need more than the session: dialogs, focus, clipboard, screenshots.
#include "app/lessons/lesson.h"
#include "app/report/handout.h"
#include "app/report/report.h"
#include "app/study/live_example.h"
#include "app/study/regenerating_command.h"
#include "app/study/session_requests.h"
#include "app/study/session_source.h"
#include "app/window/actions/file_actions.h"
#include "app/window/actions/key_sheet.h"
#include "app/window/actions/live_actions.h"
#include "app/window/actions/tour.h"
#include "app/window/actions/try_live.h"
#include "app/window/actions/window_actions.h"
#include "app/window/canvas_area.h"
#include "app/window/dialogs/from_text_dialog.h"
#include "app/window/dialogs/go_to_dialog.h"
#include "app/window/dialogs/lesson_maker.h"
#include "app/window/dialogs/manual_window.h"
#include "app/window/dialogs/thumbnail_sheet.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/main_window.h"
#include "app/window/panels/lesson_list.h"
#include "app/window/panels/lesson_panel.h"
#include "app/window/panels/top_bar.h"
#include "app/window/presenter.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/write_aside.h"
#include "app/workbench/second_workbench.h"
#include "app/workbench/step_driver.h"
#include "app/workbench/workbench.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/run/stage_cache.h"

#include <QBuffer>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMenuBar>
#include <QMimeData>
#include <QStandardPaths>
#include <QTimer>

#include <algorithm>

namespace kvscope {

namespace {

/// True if the session has no lesson or its lesson can be read; otherwise a notice says why not.
bool isLessonSound(const Session& session, NoticeStrip& notices) {
    try {
        (void)lessonOf(session);
        return true;
    } catch (const Error& error) {
        notices.show("lessons", NoticeStrip::Tone::Error, fromUtf8(error.what()));
        return false;
    }
}

} // namespace

ViewCanvas* MainWindow::currentCanvas() const { return m_canvases->currentCanvas(); }

void MainWindow::focusFind() { m_topBar->focusFind(); }

void MainWindow::findNext(int by) { m_topBar->findNext(by); }

void MainWindow::newFromText() {
    if (auto* shown = findChild<FromTextDialog*>()) return shown->raise();
    auto* dialog = new FromTextDialog(m_workbench, FromTextDialog::remembered(TryLive::knownPython()), this);
    connect(dialog, &FromTextDialog::chosen, m_files, &FileActions::openLive);
    dialog->show();
}

void MainWindow::saveCapture() { m_live->saveCapture(); }

void MainWindow::tryLive() {
    const auto example = liveExample();
    if (!example)
        return m_notices->show("error", NoticeStrip::Tone::Error,
                               tr("The example's model was not found: an installed program has it in "
                                  "../share/kvscope, seen from its own folder."));
    m_tryLive->start([this, example = *example](const std::string& command) mutable {
        example.command = command;
        m_files->openLive(example);
    });
}

void MainWindow::startLessonModel() {
    m_tryLive->start([this](const std::string& command) {
        const auto lesson = lessonOf(m_workbench.session());
        if (!lesson || lesson->live.empty()) return; // the lesson was left meanwhile
        live::LiveDescription described = live::descriptionOf(lesson->live);
        described.command = command;
        Session next = m_workbench.session();
        nameSource(next, {{}, SharedText(live::textOf(described))});
        m_workbench.openSession(std::move(next));
    });
}

void MainWindow::showGoTo() {
    if (auto* shown = findChild<GoToDialog*>()) return shown->raise();
    (new GoToDialog(m_workbench, this))->show();
}

void MainWindow::showViews() {
    if (m_presenter) return;
    if (!m_gallery) {
        m_gallery = new ViewGallery(m_workbench, m_text, this);
        connect(m_gallery, &ViewGallery::chosen, this, [this](const ViewThumbnail& card) {
            const View& view = card.view();
            if (!view.card().perPane) return m_docks->open(m_docks->dock(fromUtf8(view.card().id)));
            m_docks->giveBack(); // the panes show it
            m_workbench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, tr("Layout"));
        });
    }
    m_gallery->present();
}

void MainWindow::showHeads(const ViewCanvas& canvas) {
    Workbench& of = canvas.workbench(); // of the first or of the second capture
    if (m_presenter || !of.capture()) return;
    if (headsOf(canvas.view(), of.capture()->info().layerInfo(of.session().layer)).empty())
        return m_notices->show("heads", NoticeStrip::Tone::Notice,
                               tr("%1 is not about one head.").arg(fromUtf8(canvas.view().card().name)));
    if (canvas.view().card().perPane) of.change([&](Session& s) { s.activePane = canvas.pane(); }, tr("Active pane"));
    delete m_heads;
    m_heads = new HeadGallery(of, canvas.view(), m_text, this);
    connect(m_heads, &HeadGallery::chosen, this, [&of](const ViewThumbnail& card) {
        of.change([&](Session& s) { chooseQueryHead(s, *card.head(), *of.capture()); }, tr("Head"));
    });
    m_heads->present();
}

/// A worker writes the session as it is at the time of the call; progress, success and failure are notices.
void MainWindow::exportReport() {
    const Session& session = m_workbench.session();
    const QFileInfo capture(fromUtf8(session.capturePath));
    const QString path =
        fileToWrite(this, tr("Export report"), capture.dir().filePath(fromUtf8(stemOf(session)) + "-report.html"),
                    tr("Pages (*.html)"));
    if (path.isEmpty() || !m_workbench.capture()) return;
    submitWriting(m_workbench, *m_notices, path,
                  [session = m_workbench.session(), capture = m_workbench.capture(),
                   runner = m_workbench.sharedRunner(), path, saved = m_live->saved()](const Checkpoint& checkpoint) {
                      const ReportOptions options{.views = {}, .command = {}, .saved = saved};
                      writeReport(path.toStdString(), reportPage(session, capture, *runner, options, checkpoint));
                      return std::function<void()>();
                  });
}

/// As exportReport: the handout of the open lesson; nothing without one.
void MainWindow::exportHandout() {
    if (!isLessonSound(m_workbench.session(), *m_notices)) return;
    const auto lesson = lessonOf(m_workbench.session());
    if (!lesson || !m_workbench.capture()) return;
    const QFileInfo capture(fromUtf8(m_workbench.session().capturePath));
    const QString name = fromUtf8(lesson->title).replace('/', '-') + ".pdf";
    const QString path =
        fileToWrite(this, tr("Handout of the lesson"), capture.dir().filePath(name), tr("PDF (*.pdf)"));
    if (path.isEmpty()) return;
    submitWriting(m_workbench, *m_notices, path,
                  [of = HandoutLesson{*lesson, m_workbench.capture(), m_workbench.sharedRunner()},
                   path](const Checkpoint& checkpoint) {
                      writeFileAtomically(path.toStdString(), handoutPdf({of}, checkpoint));
                      return std::function<void()>();
                  });
}

void MainWindow::makeLesson() {
    if (auto* shown = findChild<LessonMaker*>()) return shown->raise();
    if (!isLessonSound(m_workbench.session(), *m_notices)) return;
    auto* maker = new LessonMaker(m_workbench, this);
    connect(maker, &LessonMaker::saved, this, [this](const QString& path) {
        readLessons();
        m_lessonList->refresh();
        foldRailPanels(); // their list of lessons is now an old one
        const bool listed = QFileInfo(path).absoluteDir() == QDir(LessonMaker::folder());
        m_notices->show(
            "lessons", NoticeStrip::Tone::Notice,
            listed ? tr("%1 is written, and the list of lessons shows it.").arg(path)
                   : tr("%1 is written. The list of lessons shows those in %2.").arg(path, LessonMaker::folder()),
            tr("Open it"), [this, path] { m_files->open(path); });
    });
    maker->show();
}

void MainWindow::startTour() {
    if (!findChild<Tour*>()) new Tour(*this, Tour::firstRun());
}

void MainWindow::offerTour() {
    auto* once = new QObject(this);
    connect(&m_workbench, &Workbench::captureChanged, once, [this, once] {
        once->deleteLater();
        // A lesson guides the user itself, so the tour waits for the next start.
        if (!m_workbench.session().lesson.empty() || !Tour::takeFirstRun()) return;
        QTimer::singleShot(0, this, &MainWindow::startTour); // after the docks have been laid out
    });
}

void MainWindow::escape() {
    if (auto* tour = findChild<Tour*>()) return tour->deleteLater();
    if (foldRailPanels()) return;
    const auto canvases = m_canvases->canvases();
    // True if `does` succeeded on any canvas; it is called on every one.
    const auto any = [&](const auto& does) { return std::ranges::count_if(canvases, does) > 0; };
    if (any([](ViewCanvas* canvas) { return canvas->canvas()->abandonLasso(); }) || m_topBar->leaveFind()) return;
    // One step per Esc: the next one clears the selection.
    for (Workbench* of : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())}) {
        const auto panes = of->viewInput().panes;
        for (std::size_t pane = 0; pane < panes.size(); ++pane)
            if (panes[pane].computing) return of->cancelPane(static_cast<int>(pane));
    }
    if (m_presenter) return togglePresenter();
    if (any(&ViewCanvas::releaseCell)) return;
    const bool wasPinned = any([](ViewCanvas* canvas) { return canvas->readOut()->isPinned(); });
    for (ViewCanvas* canvas : canvases) canvas->readOut()->dismiss();
    if (wasPinned || m_docks->giveBack()) return;
    m_workbench.setHovered(-1);
    m_workbench.setBrushing(false);
    m_workbench.change([](Session& s) { select(s, {}); }, tr("Clear selection"));
}

bool MainWindow::mayStep() const {
    return m_steps->steps() > 0 && std::ranges::none_of(m_canvases->canvases(), [](const ViewCanvas* canvas) {
               return canvas->readOut()->isPinned() || canvas->hasLockedCell();
           });
}

bool MainWindow::event(QEvent* event) {
    // Keys of the step player go to the focused widget first; those that it does not use go to the player.
    if (event->type() == QEvent::ShortcutOverride && m_actions->stepActionFor(*static_cast<QKeyEvent*>(event))) {
        event->accept();
        return true;
    }
    return QMainWindow::event(event);
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
    QAction* action = m_actions->stepActionFor(*event);
    const bool isArrow = event->key() == Qt::Key_Left || event->key() == Qt::Key_Right;
    if (action && (mayStep() || !isArrow))
        action->trigger();
    else
        QMainWindow::keyPressEvent(event);
}

void MainWindow::stepLesson(int by) {
    if (m_presenter) return m_presenter->step(by);
    if (!m_lessonPanel->step(by)) turnLesson(by);
}

void MainWindow::turnLesson(int by) {
    const LessonFile* here = fileOf(m_workbench.session(), m_lessons);
    const auto to = by < 0 && here ? here - m_lessons.data() + by : -1;
    openLesson(by);
    m_turnedBackTo = to;
}

void MainWindow::followTurn() {
    const LessonFile* here = fileOf(m_workbench.session(), m_lessons);
    const auto turned = std::exchange(m_turnedBackTo, -1);
    if (turned < 0 || !here || here - m_lessons.data() != turned) return;
    QTimer::singleShot(0, this, [this] { m_presenter ? m_presenter->goToLast() : m_lessonPanel->goToLast(); });
}

void MainWindow::openLesson(int by) {
    const LessonFile* here = fileOf(m_workbench.session(), m_lessons);
    const auto next = by == 0 ? 0 : here ? here - m_lessons.data() + by : -1;
    if (next < 0 || next >= std::ssize(m_lessons)) return;
    m_files->open(fromUtf8(m_lessons[static_cast<std::size_t>(next)].path));
}

void MainWindow::saveScreenshot() {
    const QPixmap picture = grab();
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::PicturesLocation);
    const QString name = "kvscope-" + QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss") + ".png";
    const QString path = fileToWrite(this, tr("Save screenshot"), QDir(folder).filePath(name), tr("PNG (*.png)"));
    if (path.isEmpty()) return;
    QByteArray png;
    QBuffer buffer(&png);
    picture.save(&buffer, "PNG");
    try {
        writeAside(this, path,
                   [file = path.toStdString(), content = png.toStdString()] { writeFileAtomically(file, content); });
    } catch (const Error& error) {
        m_notices->show("error", NoticeStrip::Tone::Error, fromUtf8(error.what()));
    }
}

void MainWindow::showKeys() {
    if (auto* shown = findChild<KeySheet*>()) // pressing F1 again brings it to the front
        return shown->raise();
    (new KeySheet(*m_topBar->findChild<QMenuBar*>(),
                  {m_actions->byName("explain"), m_actions->byName("manual"), m_actions->byName("tour")}, this))
        ->show();
}

void MainWindow::showManual() {
    if (!m_manual) m_manual = new ManualWindow(this);
    m_manual->show();
    m_manual->raise();
    m_manual->activateWindow();
}

void MainWindow::followManualLink(const QUrl& link) {
    showManual();
    m_manual->openPage(link.toString(QUrl::RemoveScheme));
}

void MainWindow::showAbout() {
    m_notices->show(
        "about", NoticeStrip::Tone::Notice,
        tr("KVScope %1: what KV-cache compression keeps, what it evicts and what that costs. Engine %2, %3. Kept for "
           "going back: %4, at most %5.")
            .arg(QGuiApplication::applicationVersion(), fromUtf8(m_workbench.runner().engine().name()),
                 fromUtf8(m_workbench.runner().engine().arithmetic()),
                 bytesText(static_cast<double>(m_workbench.runner().cache().bytes())),
                 bytesText(static_cast<double>(m_workbench.runner().cache().maxBytes()))));
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const bool compare = event->modifiers() & Qt::ControlModifier;
    event->acceptProposedAction();
    for (const QUrl& url : event->mimeData()->urls()) {
        if (!url.isLocalFile())
            m_notices->show("error", NoticeStrip::Tone::Error,
                            tr("%1 is not a file on this computer: save it first.").arg(url.toString()));
        else if (compare)
            m_files->compareWith(url.toLocalFile());
        else
            m_files->open(url.toLocalFile());
    }
}

} // namespace kvscope
