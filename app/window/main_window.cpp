// The main window arranges its parts; the parts read the workbench themselves.
#include "app/window/main_window.h"

#include "app/study/regenerating_command.h"
#include "app/window/actions/engine_controller.h"
#include "app/window/actions/file_actions.h"
#include "app/window/actions/layer_errors.h"
#include "app/window/actions/live_actions.h"
#include "app/window/actions/token_search.h"
#include "app/window/actions/try_live.h"
#include "app/window/actions/window_actions.h"
#include "app/window/canvas_area.h"
#include "app/window/dialogs/export_dialog.h"
#include "app/window/dialogs/lesson_maker.h"
#include "app/window/dialogs/thumbnail_sheet.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/docks/rail_panels.h"
#include "app/window/panels/answer_panel.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/capture_panel.h"
#include "app/window/panels/decision_block.h"
#include "app/window/panels/explanation_panel.h"
#include "app/window/panels/fidelity_block.h"
#include "app/window/panels/lesson_list.h"
#include "app/window/panels/lesson_panel.h"
#include "app/window/panels/metrics_table.h"
#include "app/window/panels/pane_list.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/panels/status_line.h"
#include "app/window/panels/step_player.h"
#include "app/window/panels/top_bar.h"
#include "app/window/panels/worst_heads.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/style/system_theme.h"
#include "app/window/style/window_size.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/second_workbench.h"
#include "app/workbench/step_driver.h"
#include "views/two_captures/two_captures_data.h"

#include <QCloseEvent>
#include <QDesktopServices>
#include <QFileInfo>
#include <QResizeEvent>
#include <QScreen>
#include <QSettings>
#include <QStatusBar>
#include <QTimer>
#include <QToolBar>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace kvscope {

constexpr const char *kGeometryKey = "window/geometry", *kThemeKey = "window/theme", *kScaleKey = "window/scale",
                     *kCompactKey = "window/compact", *kLayoutKey = "window/layout";

MainWindow::MainWindow(Workbench& workbench, const TextService& text) : m_workbench(workbench), m_text(text) {
    setWindowIcon(QIcon(":/icons/kvscope.svg"));
    setAcceptDrops(true);
    setContextMenuPolicy(Qt::NoContextMenu);
    QDesktopServices::setUrlHandler("manual", this, "followManualLink");
    m_notices = new NoticeStrip(this, m_workbench.clock());
    m_engines = new EngineController(m_workbench, *m_notices, this);
    m_files = new FileActions(m_workbench, *m_notices, this);
    m_live = new LiveActions(m_workbench, *m_notices, this);
    m_tryLive = new TryLive(*m_notices, this);
    connect(m_files, &FileActions::changeWanted, this, &MainWindow::newFromText);
    new LayerErrors(m_workbench, *m_notices, this);
    recallInterface();
    addDocks();
    m_files->saveDocksFrom([this] { return m_docks->places(); });
    connect(m_docks, &DockLayout::maximisedChanged, this, &MainWindow::followMaximised);
    connect(m_docks, &DockLayout::arranged, this, &MainWindow::fitWidth); // Qt restores the rail, too
    connect(m_docks, &DockLayout::arranged, this, &MainWindow::foldRailPanels);
    connect(m_docks, &DockLayout::arranged, this, [this] { // at another size, too, a lesson shows what it speaks of
        if (m_wantedInFront.empty() && m_lessonPanel && m_lessonPanel->lesson())
            m_wantedInFront = m_lessonPanel->viewsOfPart();
    });
    m_steps = new StepDriver(m_workbench);
    m_steps->setParent(this);
    readLessons();
    m_actions = new WindowActions(*this, *this, m_workbench, *m_files);
    if (!restoreGeometry(QSettings().value(kGeometryKey).toByteArray()))
        resize(QSize(1440, 900).boundedTo(screen()->availableSize())); // the design's size, or the screen's if smaller
    followLook();
    for (const auto slot : {&MainWindow::followLook, &MainWindow::arrangeDocksSoon, &MainWindow::followMotion})
        connect(&m_workbench, &Workbench::sessionChanged, this, slot);
    m_workbench.tell(this, &MainWindow::followTitle, &Workbench::sessionChanged, &Workbench::captureChanged,
                     &Workbench::cursorChanged, &Workbench::rangeChanged);
    connect(&m_workbench.second(), &Workbench::captureChanged, this, [this] {
        followTitle();
        arrangeDocksSoon();
        QTimer::singleShot(0, this, [this] { // once the docks are arranged
            PanelDock* difference = m_docks->dock(kTwoCaptures);
            if (!m_workbench.second().isOpen())
                difference->hide();
            else if (!m_presenter && m_docks->isTight()) // the panes of both captures need the width
                m_docks->bringToFront({kTwoCaptures});
            else if (!m_presenter)
                m_docks->open(difference);
        });
    });
    connect(&LiveAnswerJobs::of(m_workbench), &LiveAnswerJobs::opened, this, [this] {
        TryLive::remember(live::descriptionOf(m_workbench.session().live.text()).command);
        QTimer::singleShot(0, this, [this] {
            if (m_presenter) return;
            const DockLayout::Sizes sizes = m_docks->sizes(); // Qt takes the answers' width from all docks
            m_docks->bringToFront({"answers"});
            QTimer::singleShot(0, this, [this, sizes] { m_docks->resize(sizes); });
        });
    });
    connect(&systemTheme(), &SystemTheme::changed, this, &MainWindow::followLook);
    connect(&systemTheme(), &SystemTheme::motionChanged, this, &MainWindow::followMotion);
    followMotion();
    followTitle();
}

MainWindow::~MainWindow() { QDesktopServices::unsetUrlHandler("manual"); }

/// Made absolute, because FileActions reads a path that begins with a brace as the description of a live context.
void MainWindow::openPath(const QString& path) { m_files->open(QFileInfo(path).absoluteFilePath()); }

void MainWindow::addDocks() {
    m_docks = new DockLayout(*this);
    m_docks->add("capture", tr("Capture"));
    m_docks->add("panes", tr("Policies"));
    m_docks->add("parameters", tr("Parameters"));
    m_docks->add("explanation", tr("Explanation"));
    m_docks->add("fidelity", tr("Fidelity"));
    m_docks->add("why", tr("Why kept or evicted"));
    m_docks->add("metrics", tr("Metrics"));
    m_docks->add("answers", tr("Answers"));
    m_docks->add("steps", tr("Steps"));
    m_docks->add("lessons", tr("Lessons"));
    m_docks->add("lesson", tr("Lesson"));
    m_docks->add("worst_heads", tr("Heads that lose most"));
    for (const View* view : allViews())
        if (!view->card().perPane) m_docks->add(fromUtf8(view->card().id), fromUtf8(view->card().name));
    m_rail = named("leftRail", new QToolBar(tr("Folded panels"), this));
    m_rail->setMovable(false);
    addToolBar(Qt::LeftToolBarArea, m_rail);
    m_rail->toggleViewAction()->setVisible(false);
}

void MainWindow::recallInterface() {
    if (!m_workbench.session().capturePath.empty()) return;
    const QSettings settings;
    const auto word = [&](const char* key, int fallback, int last) {
        return std::clamp(settings.value(key, fallback).toInt(), 0, last);
    };
    Session session = m_workbench.session();
    session.look.theme = static_cast<ThemeChoice>(word(kThemeKey, 0, static_cast<int>(ThemeChoice::Dark)));
    session.layout = static_cast<WindowLayout>(
        word(kLayoutKey, static_cast<int>(session.layout), static_cast<int>(WindowLayout::WholeModel)));
    session.look.compact = settings.value(kCompactKey).toBool();
    const double scale = settings.value(kScaleKey, 1).toDouble();
    if (std::find(kInterfaceScales.begin(), kInterfaceScales.end(), scale) != kInterfaceScales.end())
        session.look.scale = scale;
    m_workbench.startWith(std::move(session));
}

void MainWindow::rememberInterface() const {
    const Session& session = m_workbench.session();
    QSettings settings;
    settings.setValue(kThemeKey, static_cast<int>(session.look.theme));
    settings.setValue(kScaleKey, session.look.scale);
    settings.setValue(kCompactKey, session.look.compact);
    if (session.lesson.empty()) settings.setValue(kLayoutKey, static_cast<int>(session.layout)); // a lesson has its own
}

void MainWindow::followLook() {
    const Session& session = m_workbench.session();
    if (m_presenter) return showPresenter();
    makeRoomFor(session.look.scale);
    const double scale = fittingScale(session.look.scale, size());
    sayScale(scale);
    const Appearance wanted{themeFor(session.look.theme), scale, session.look.compact || isLow(height(), scale)};
    if (m_canvases && wanted == appearance()) return;
    const DockLayout::Sizes sizes = m_docks->sizes();
    setUpdatesEnabled(false); // a busy machine would show the new parts before they are laid out
    setAppearance(wanted);
    buildChrome();
    QTimer::singleShot(0, this, [this, sizes] {
        m_docks->resize(sizes);
        QTimer::singleShot(0, this, [this] { // behind the layouts of the resized docks
            setUpdatesEnabled(true);
            repaint(); // an opened session of another theme stayed unpainted by the update that Qt requests here
        });
    });
}

void MainWindow::sayScale(double scale) {
    const double wanted = m_workbench.session().look.scale;
    if (const auto said = std::pair(scale, wanted); std::exchange(m_scaleSaid, said) == said) return;
    const QSize needed = leastWindow(wanted);
    if (scale == wanted)
        m_notices->dismiss("scale");
    else
        m_notices->show("scale", NoticeStrip::Tone::Notice,
                        tr("The interface is shown at %1 %: %2 % needs a window of %3 × %4.")
                            .arg(qRound(100 * scale))
                            .arg(qRound(100 * wanted))
                            .arg(needed.width())
                            .arg(needed.height()));
}

void MainWindow::makeRoomFor(double scale) {
    if (std::exchange(m_scaleAsked, scale) == scale || isMaximized() || isFullScreen()) return;
    if (size() != m_grownTo) m_ownSize = size(); // if equal, a larger scale enlarged the window, not the user
    m_grownTo = m_ownSize.expandedTo(leastWindow(scale)).boundedTo(m_ownSize.expandedTo(screen()->availableSize()));
    resize(m_grownTo);
}

void MainWindow::followMotion() {
    m_steps->setMotionReduced(systemTheme().isMotionReduced());
    setAnimated(!systemTheme().isMotionReduced() && !m_workbench.session().look.reducedMotion); // animation of docks
}

void MainWindow::followMaximised() {
    const auto& maximised = m_docks->maximised();
    m_canvases->setRoom(maximised && !*maximised, maximised && *maximised);
}

QWidget* MainWindow::buildTop() {
    auto* top = new QWidget(this);
    auto* column = makeLayout<QVBoxLayout>(top, {0, 0, 0, 0}, 0);
    m_topBar = added(column, new TopBar(m_workbench, *m_actions, top));
    m_budgetBar = added(column, new BudgetBar(m_workbench, top));
    added(column, named("noticeRoom", new QWidget(top)))->setFixedHeight(0);
    connect(m_topBar, &TopBar::notFound, this, [this](const QString& text) {
        m_notices->show("find", NoticeStrip::Tone::Warning, tr("“%1” is not in this capture's text.").arg(text));
    });
    connect(m_topBar, &TopBar::foundAll, this, [this](const QString& text) {
        m_notices->show("find", NoticeStrip::Tone::Notice, hitsText(m_workbench.viewInput(), text));
    });
    connect(m_budgetBar, &BudgetBar::refused, this, [this](const QString& message) {
        m_notices->show("refused", NoticeStrip::Tone::Warning,
                        message); // an error would move what lies below the field
    });
    connect(m_budgetBar, &BudgetBar::accepted, this, [this] { m_notices->dismiss("refused"); });
    return top;
}

void MainWindow::buildChrome() {
    const QPointer<QWidget> before = focusWidget();
    const QString focused = before ? before->objectName() : QString();
    if (before) before->setObjectName({}); // else findChild could find the old widget, which is deleted later
    delete m_gallery;
    delete m_heads;
    foldRailPanels();
    setMenuWidget(buildTop());
    m_notices->restyle();
    m_notices->placeBelow(m_topBar->height() + m_budgetBar->height(), menuWidget()->findChild<QWidget*>("noticeRoom"));
    m_canvases = new CanvasArea(m_workbench, m_text, this);
    connect(m_canvases, &CanvasArea::dataWanted, this,
            [this](ViewCanvas* canvas) { (new DataDialog(canvas->workbench(), *canvas, this))->show(); });
    connect(m_canvases, &CanvasArea::exportWanted, this,
            [this](ViewCanvas* canvas) { showExportDialog(*this, m_workbench, *canvas, *m_notices, m_live->saved()); });
    connect(m_canvases, &CanvasArea::headsWanted, this, [this](ViewCanvas* canvas) { showHeads(*canvas); });
    connect(m_canvases, &CanvasArea::parametersWanted, this, [this] { m_docks->bringToFront({"parameters"}); });
    connect(m_canvases, &CanvasArea::turnedTo, m_steps, &StepDriver::prefer);
    connect(m_canvases, &CanvasArea::openWanted, m_files, &FileActions::openWithDialog);
    connect(m_canvases, &CanvasArea::maximiseWanted, m_docks, [this] { m_docks->maximise(nullptr); });
    setCentralWidget(m_canvases);
    followMaximised();
    fillDocks();
    qDeleteAll(m_rail->actions());         // `clear` would keep the buttons
    m_rail->setIconSize({px(16), px(16)}); // a tool bar sets its buttons' icon size
    auto* unfold = added(m_rail, named("unfold", iconButton("panel", tr("Folded panels"), m_rail)));
    connect(unfold, &QToolButton::clicked, this, &MainWindow::toggleRailPanels);
    auto* bar = new QStatusBar(this);
    bar->setSizeGripEnabled(false);
    m_status = added(bar, new StatusLine(m_workbench, *m_engines, bar), 1);
    bar->setFixedHeight(m_status->height());
    setStatusBar(bar);
    fitWidth();
    auto* again = focused.isEmpty() ? nullptr : findChild<QWidget*>(focused);
    if (!again && !focused.isEmpty() && before && before->isVisible()) { // it was not rebuilt
        before->setObjectName(focused);
        again = before;
    }
    (again ? again : centralWidget())->setFocus(); // else Qt focuses the first tab stop
}

void MainWindow::fillDocks() {
    m_policyPanel = new PolicyPanel(m_workbench);
    m_docks->dock("capture")->fillScrolled(new CapturePanel(m_workbench));
    m_docks->dock("panes")->fillPlain(new PaneList(m_workbench));
    m_docks->dock("parameters")->fillScrolled(m_policyPanel);
    m_docks->dock("explanation")->fillScrolled(new ExplanationPanel(m_workbench, *m_steps));
    m_docks->dock("fidelity")->fillScrolled(new FidelityBlock(m_workbench));
    m_docks->dock("why")->fillScrolled(new DecisionBlock(m_workbench));
    m_docks->dock("metrics")->fillPlain(new MetricsTable(m_workbench));
    auto* answers = new AnswerPanel(m_workbench, m_text);
    m_docks->dock("answers")->fill(answers, answers->header());
    m_docks->dock("steps")->fillPlain(new StepPlayer(*m_steps));
    m_docks->dock("worst_heads")->fillPlain(new WorstHeads(m_workbench));
    fillLessons();
    for (ViewDock* view : m_canvases->docks())
        m_docks->dock(fromUtf8(view->canvas()->view().card().id))->fill(view, view->header());
}

void MainWindow::toggleRailPanels() {
    if (foldRailPanels() || m_docks->foldLeft()) return;
    m_railPanels = new RailPanels(*m_rail, this);
    if (m_workbench.session().layout == WindowLayout::Teach) {
        LessonList* lessons = newLessonList();
        connect(lessons, &LessonList::chosen, this, &MainWindow::foldRailPanels); // its pictures lie below
        m_railPanels->add(tr("Lessons"), lessons, 1);
    } else {
        m_railPanels->add(tr("Capture"), new CapturePanel(m_workbench), 1);
        m_railPanels->add(tr("Policies"), new PaneList(m_workbench), 0);
    }
    m_railPanels->open();
}

bool MainWindow::foldRailPanels() { return m_railPanels && m_railPanels->isVisible() && m_railPanels->close(); }

void MainWindow::fitWidth() {
    m_topBar->fitWidth(width());
    m_rail->setVisible(sizeOf(width()) == WindowSize::Narrow ||
                       m_workbench.session().layout == WindowLayout::WholeModel);
}

void MainWindow::arrangeDocksSoon() {
    if (m_presenter) return; // the docks under the presenter stay as they are
    // Deferred: the session also changes while Qt lays out the window (a canvas scrolls when it is resized), and moving
    // docks then would free them during the layout.
    if (m_shown && !std::exchange(m_arrangesSoon, true)) QTimer::singleShot(0, this, &MainWindow::arrangeDocks);
}

void MainWindow::arrangeDocks() {
    m_arrangesSoon = false;
    if (m_presenter) return;
    fitWidth(); // the folded rail depends on the layout
    PanelDock *steps = m_docks->dock("steps"), *answers = m_docks->dock("answers");
    const bool wasHidden = steps->isHidden();
    const bool isAnswering = m_workbench.live() && !answers->isHidden();
    // Four panes may stand in one row, which depends on the height that the docks leave: two are the worse case.
    m_docks->arrange(m_workbench.session().layout,
                     m_workbench.session().panes.size() > 3 || m_workbench.second().isOpen());
    if (const DockPlaces& docks = m_workbench.session().look.docks; std::exchange(m_docksOfFile, docks) != docks)
        m_docks->restore(docks);
    if (isAnswering && answers->isHidden()) m_docks->bringToFront({"answers"}); // in other layouts, too
    if (wasHidden && m_hasSteps == false && m_workbench.session().layout == WindowLayout::Teach)
        steps->hide(); // the arrangement of another window size may show them
    raiseLessonDocks();
}

void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    m_shown = true;
    arrangeDocks();
}

void MainWindow::followTitle() {
    const QString session = QFileInfo(m_files->sessionPath()).fileName();
    const QString capture = m_workbench.capture() ? fromUtf8(m_workbench.capture()->info().fileName) : QString();
    QString name = session.isEmpty() ? capture : session;
    if (const auto& second = m_workbench.second().capture(); second && session.isEmpty())
        name = tr("%1 and %2").arg(capture, fromUtf8(second->info().fileName));
    setWindowTitle(name.isEmpty() ? tr("KVScope") : tr("%1[*] – KVScope").arg(name));
    const bool isModified = !session.isEmpty() && !m_workbench.history().isSaved();
    if (isModified != isWindowModified()) setWindowModified(isModified); // Qt tells the window system even if unchanged
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    followLook();
    fitWidth();
    arrangeDocksSoon();
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::ThemeChange) systemTheme().readPaletteSoon();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    auto* maker = findChild<LessonMaker*>();
    if ((maker && !maker->close()) || !m_files->mayClose()) {
        event->ignore();
        return;
    }
    if (m_presenter) endPresentation();
    m_docks->remember();
    QSettings().setValue(kGeometryKey, saveGeometry());
    rememberInterface();
    event->accept();
}

} // namespace kvscope
