// The list of commands. Single keys without Ctrl do nothing while a text field has the focus, because the field
// receives them first.
#include "app/window/actions/window_actions.h"

#include "app/lessons/lesson.h"
#include "app/study/selection_history.h"
#include "app/window/actions/file_actions.h"
#include "app/window/actions/token_search.h"
#include "app/window/actions/window_commands.h"
#include "app/window/canvas/policy_menu.h"
#include "app/window/canvas/view_canvas.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/style/number_text.h"
#include "app/window/style/system_theme.h"
#include "app/window/style/window_size.h"
#include "app/workbench/step_driver.h"

#include <QAction>
#include <QApplication>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QMenuBar>
#include <QSettings>

#include <algorithm>
#include <functional>
#include <numeric>

namespace kvscope {

constexpr const char* kMotionKey = "reducedMotion";

WindowActions::WindowActions(QWidget& window, WindowCommands& commands, Workbench& workbench, FileActions& files)
    : QObject(&window), m_window(window), m_commands(commands), m_workbench(workbench), m_files(files),
      m_selectionHistory(std::make_unique<SelectionHistory>()) {
    addFileActions();
    addEditActions();
    addViewActions();
    addHeadActions();
    addStepActions();
    connect(&m_workbench, &Workbench::sessionChanged, this, &WindowActions::follow);
    connect(&m_workbench, &Workbench::captureChanged, this, [this] {
        *m_selectionHistory = {}; // tokens of another text are meaningless
        follow();
    });
    connect(&m_workbench, &Workbench::focusChanged, this, &WindowActions::followSelection);
    connect(&m_files, &FileActions::recentChanged, this, &WindowActions::fillRecent);
    follow();
}

WindowActions::~WindowActions() = default;

QAction* WindowActions::add(const char* name, const QString& text, const QList<QKeySequence>& keys,
                            const std::function<void()>& run) {
    auto* action = new QAction(text, this);
    action->setObjectName(name);
    action->setShortcuts(keys);
    connect(action, &QAction::triggered, this, run);
    m_window.addAction(action);
    return action;
}

QAction* WindowActions::byName(const QString& name) const {
    return findChild<QAction*>(name, Qt::FindDirectChildrenOnly);
}

template <class Command> std::function<void()> WindowActions::onCanvas(Command command) const {
    return [this, command] {
        if (ViewCanvas* canvas = m_commands.currentCanvas()) std::invoke(command, *canvas);
    };
}

void WindowActions::addFileActions() {
    add("open", tr("&Open…"), {QKeySequence("Ctrl+O")}, [this] { m_files.openWithDialog(); });
    add("newFromText", tr("&New from text…"), {QKeySequence("Ctrl+N")}, [this] { m_commands.newFromText(); });
    add("compareWith", tr("Compare &with…"), {QKeySequence("Ctrl+Shift+O")}, [this] { m_files.compareWithDialog(); });
    add("reload", tr("Re&load"), {QKeySequence("F5")}, [this] { m_files.reload(); });
    add("afresh", tr("Start a&fresh"), {}, [this] { m_files.startAfresh(); });
    add("save", tr("&Save session"), {QKeySequence("Ctrl+S")}, [this] { m_files.save(); });
    add("saveAs", tr("Save session &as…"), {QKeySequence("Ctrl+Shift+S")}, [this] { m_files.saveAs(); });
    add("saveCapture", tr("Save as cap&ture…"), {}, [this] { m_commands.saveCapture(); });
    add("addRecorded", tr("Add a recorded &list…"), {}, [this] { m_files.addRecordedWithDialog(); });
    add("export", tr("&Export…"), {QKeySequence("Ctrl+E")}, onCanvas(&ViewCanvas::exportWanted));
    add("report", tr("Export re&port…"), {}, [this] { m_commands.exportReport(); });
    add("handout", tr("&Handout of the lesson as PDF…"), {}, [this] { m_commands.exportHandout(); });
    add("makeLesson", tr("&Make a lesson of this session…"), {}, [this] { m_commands.makeLesson(); });
    add("close", tr("&Close"), {QKeySequence("Ctrl+W")}, [this] { m_files.closeCapture(); });
    add("quit", tr("&Quit"), {QKeySequence("Ctrl+Q")}, [this] { m_window.close(); });
}

void WindowActions::addEditActions() {
    add("undo", tr("&Undo"), {QKeySequence("Ctrl+Z")}, [this] { m_workbench.undo(); })->setIconText(tr("Undo"));
    add("redo", tr("&Redo"), {QKeySequence("Ctrl+Y"), QKeySequence("Ctrl+Shift+Z")}, [this] {
        m_workbench.redo();
    })->setIconText(tr("Redo")); // without the name of the step
    add("copyImage", tr("&Copy image or selected text"), {QKeySequence("Ctrl+C")}, onCanvas(&ViewCanvas::copy));
    add("copyData", tr("Copy &data or selected positions"), {QKeySequence("Ctrl+Shift+C")},
        onCanvas(&ViewCanvas::copyMore));
    add("selectAll", tr("Select &all tokens"), {QKeySequence("Ctrl+A")}, [this] {
        std::vector<TokenIndex> all(static_cast<std::size_t>(m_workbench.capture()->info().numTokens));
        std::iota(all.begin(), all.end(), TokenIndex{0});
        m_workbench.change([&](Session& s) { select(s, all); }, tr("Selection"));
    });
    add("find", tr("&Find token or text"), {QKeySequence("Ctrl+F")}, [this] { m_commands.focusFind(); });
    add("findNext", tr("Find &next"), {QKeySequence("F3")}, [this] { m_commands.findNext(1); });
    add("findPrevious", tr("Find pre&vious"), {QKeySequence("Shift+F3")}, [this] { m_commands.findNext(-1); });
    add("selectNeedle", tr("Select the n&eedle"), {QKeySequence("N")}, [this] { selectNextNeedle(m_workbench); });
    add("selectionBack", tr("Previous &selection"), {QKeySequence("Ctrl+[")}, [this] { stepSelection(-1); });
    add("selectionForward", tr("Ne&xt selection"), {QKeySequence("Ctrl+]")}, [this] { stepSelection(1); });
    add("lasso", tr("Select with a &lasso"), {QKeySequence("L")}, onCanvas(&ViewCanvas::armLasso));
    add("clear", tr("Clear the selection"), {QKeySequence("Esc")}, [this] { m_commands.escape(); });
}

void WindowActions::addViewActions() {
    add("explore", tr("&Explore head"), {QKeySequence("Ctrl+1")}, [this] { setLayout(WindowLayout::ExploreHead); });
    add("compare", tr("&Compare policies"), {QKeySequence("Ctrl+2")},
        [this] { setLayout(WindowLayout::ComparePolicies); });
    add("teach", tr("&Teach"), {QKeySequence("Ctrl+3")}, [this] { setLayout(WindowLayout::Teach); });
    add("wholeModel", tr("&Whole model"), {QKeySequence("Ctrl+4")}, [this] { setLayout(WindowLayout::WholeModel); });
    add("data", tr("Show the &data"), {QKeySequence("Ctrl+D")}, onCanvas(&ViewCanvas::dataWanted));
    add("resetView", tr("&Reset view"), {QKeySequence("Home")}, onCanvas(&ViewCanvas::resetView));
    add("frame", tr("&Frame the selection"), {QKeySequence("F")}, onCanvas(&ViewCanvas::frameSelection));
    add("range", tr("Rang&e…"), {}, onCanvas(&ViewCanvas::showRange));
    add("views", tr("&Views…"), {QKeySequence("V")}, [this] { m_commands.showViews(); });
    add("maximise", tr("&Maximise, or give back"), {QKeySequence("M")}, [this] {
        DockLayout& docks = *m_commands.docks();
        docks.maximise(docks.dockOf(QApplication::focusWidget()));
    });
    add("nextPlace", tr("Next &panel or view"), {QKeySequence("F6")}, [this] { m_commands.docks()->stepFocus(1); });
    add("previousPlace", tr("Previous panel or view"), {QKeySequence("Shift+F6")},
        [this] { m_commands.docks()->stepFocus(-1); });
    add("resetPanels", tr("Reset the &arrangement"), {}, [this] { m_commands.docks()->reset(); });
    add("larger", tr("&Larger"), {QKeySequence("Ctrl++"), QKeySequence("Ctrl+=")}, [this] { stepScale(1); });
    add("smaller", tr("&Smaller"), {QKeySequence("Ctrl+-")}, [this] { stepScale(-1); });
    add("normalSize", tr("&Normal size"), {QKeySequence("Ctrl+0")}, [this] { stepScale(0); });
    add("compact", tr("Com&pact"), {}, [this] {
        m_workbench.change([](Session& s) { s.look.compact = !s.look.compact; }, tr("Compact"));
    })->setCheckable(true);
    add("themeSystem", tr("As the &system"), {}, [this] { setTheme(ThemeChoice::System); })->setCheckable(true);
    add("themeLight", tr("&Light"), {}, [this] { setTheme(ThemeChoice::Light); })->setCheckable(true);
    add("themeDark", tr("&Dark"), {}, [this] { setTheme(ThemeChoice::Dark); })->setCheckable(true);
    add("presenter", tr("Presente&r mode"), {QKeySequence("P")}, [this] { m_commands.togglePresenter(); });
    add("fullScreen", tr("&Full screen"), {QKeySequence("F11")},
        [this] { m_window.setWindowState(m_window.windowState() ^ Qt::WindowFullScreen); });
    add("screenshot", tr("Screensh&ot…"), {QKeySequence("F12")}, [this] { m_commands.saveScreenshot(); });
    add("explain", tr("How to read this &view"), {QKeySequence("Shift+F1")}, onCanvas(&ViewCanvas::explain));
    add("manual", tr("&Manual"), {}, [this] { m_commands.showManual(); });
    add("keys", tr("&Keys"), {QKeySequence("F1"), QKeySequence("?")}, [this] { m_commands.showKeys(); });
    add("tour", tr("&Tour again"), {}, [this] { m_commands.startTour(); });
    add("tryLive", tr("Tr&y it live…"), {}, [this] { m_commands.tryLive(); });
    add("about", tr("&About KVScope"), {}, [this] { m_commands.showAbout(); });
}

void WindowActions::addHeadActions() {
    add("previousHead", tr("Previous KV head"), {QKeySequence("[")}, [this] { stepHead(-1); });
    add("nextHead", tr("Next KV head"), {QKeySequence("]")}, [this] { stepHead(1); });
    add("previousLayer", tr("Previous layer"), {QKeySequence("{")}, [this] { stepLayer(-1); });
    add("nextLayer", tr("Next layer"), {QKeySequence("}")}, [this] { stepLayer(1); });
    add("allHeads", tr("&All heads of this layer…"), {QKeySequence("H")}, onCanvas(&ViewCanvas::headsWanted));
    add("goTo", tr("&Go to layer, head, query, key…"), {QKeySequence("Ctrl+G")}, [this] { m_commands.showGoTo(); });
    add("removePane", tr("&Remove the active pane"), {},
        [this] { removePane(m_workbench, m_workbench.session().activePane); });
}

void WindowActions::addStepActions() {
    StepDriver& steps = *m_commands.steps();
    add("playSteps", tr("&Play or pause the steps"), {QKeySequence("Space")}, [&steps] { steps.toggle(); });
    add("stepBack", tr("One step &back"), {QKeySequence("Left")}, [&steps] { steps.stepBy(-1); });
    add("stepForward", tr("One step &on"), {QKeySequence("Right")}, [&steps] { steps.stepBy(1); });
    add("stepFirst", tr("To the &start"), {}, [&steps] { steps.goTo(0); });
    add("stepLast", tr("To the &end"), {}, [&steps] { steps.goTo(steps.steps()); });
    add("nextStop", tr("&Next stop of the lesson"), {QKeySequence("PgDown")}, [this] { m_commands.stepLesson(1); });
    add("previousStop", tr("P&revious stop of the lesson"), {QKeySequence("PgUp")},
        [this] { m_commands.stepLesson(-1); });
    const auto followLesson = [this] {
        for (const char* name : {"nextStop", "previousStop", "handout"})
            byName(name)->setEnabled(!m_workbench.session().lesson.empty());
    };
    connect(&m_workbench, &Workbench::sessionChanged, this, followLesson);
    followLesson();
    add("reducedMotion", tr("Reduced mot&ion"), {}, [this] {
        m_workbench.change([](Session& s) { s.look.reducedMotion = !s.look.reducedMotion; }, tr("Reduced motion"));
        QSettings().setValue(kMotionKey,
                             m_workbench.session().look.reducedMotion); // the user's choice for every session
    })->setCheckable(true);
    if (QSettings().value(kMotionKey, false).toBool())
        m_workbench.change([](Session& s) { s.look.reducedMotion = true; }, tr("Reduced motion"));
    connect(&systemTheme(), &SystemTheme::motionChanged, this, &WindowActions::followMotion);
    const auto follow = [this, &steps] {
        for (const char* name : {"playSteps", "stepBack", "stepForward", "stepFirst", "stepLast"})
            byName(name)->setEnabled(steps.steps() > 0);
        // Where steps are taught, Home and End are theirs.
        const bool areTaught = steps.steps() > 0 && m_workbench.session().layout == WindowLayout::Teach;
        byName("resetView")->setShortcut(areTaught ? QKeySequence() : QKeySequence("Home"));
        byName("stepFirst")->setShortcut(areTaught ? QKeySequence("Home") : QKeySequence());
        byName("stepLast")->setShortcut(areTaught ? QKeySequence("End") : QKeySequence());
    };
    connect(&steps, &StepDriver::changed, this, follow);
    connect(&m_workbench, &Workbench::sessionChanged, this, follow);
    follow();
}

QAction* WindowActions::stepActionFor(const QKeyEvent& event) const {
    const QKeySequence key(QKeyCombination(event.modifiers() & ~Qt::KeypadModifier, static_cast<Qt::Key>(event.key())));
    for (const char* name : {"playSteps", "stepBack", "stepForward", "stepFirst", "stepLast"})
        if (byName(name)->shortcut() == key) return byName(name);
    return nullptr;
}

void WindowActions::fillMenus(QMenuBar* bar) {
    const auto fill = [&](QMenu* menu, std::initializer_list<const char*> names) {
        for (const char* name : names) *name == '-' ? (void)menu->addSeparator() : menu->addAction(byName(name));
        return menu;
    };
    QMenu* file = fill(bar->addMenu(tr("&File")), {"newFromText", "open", "compareWith"});
    m_recent = file->addMenu(tr("Open &recent"));
    fill(file, {"reload", "afresh", "-", "save", "saveAs", "saveCapture", "-", "export", "report", "makeLesson",
                "handout", "-", "close", "quit"});
    fill(bar->addMenu(tr("&Edit")),
         {"undo", "redo", "-", "copyImage", "copyData", "-", "find", "findNext", "findPrevious", "selectNeedle",
          "selectAll", "selectionBack", "selectionForward", "lasso", "clear"});
    QMenu* view = fill(bar->addMenu(tr("&View")), {"views", "-", "explore", "compare", "teach", "wholeModel", "-"});
    fillPanels(view->addMenu(tr("&Panels")));
    fill(view, {"maximise", "resetPanels", "-"});
    fill(view->addMenu(tr("&Size")), {"larger", "smaller", "normalSize", "-", "compact"});
    fill(view->addMenu(tr("T&heme")), {"themeSystem", "themeLight", "themeDark"});
    fill(view, {"reducedMotion", "-", "presenter", "fullScreen", "screenshot"});
    fill(bar->addMenu(tr("&Go")), {"goTo", "allHeads", "-", "previousHead", "nextHead", "previousLayer", "nextLayer",
                                   "-", "nextPlace", "previousPlace", "-", "resetView", "frame", "range", "data"});
    QMenu* policies = bar->addMenu(tr("&Policies"));
    m_policies = policies->addMenu(tr("&Add a pane"));
    fillPolicyMenu(m_policies, m_workbench);
    fill(policies, {"addRecorded", "removePane"});
    fill(bar->addMenu(tr("&Steps")), {"playSteps", "stepBack", "stepForward", "-", "stepFirst", "stepLast", "-",
                                      "previousStop", "nextStop", "-", "reducedMotion"});
    QMenu* help = bar->addMenu(tr("&Help"));
    QMenu* lessons = help->addMenu(tr("&Lessons"));
    const auto fillLessons = [this, lessons] {
        lessons->clear();
        for (const LessonFile& file : m_commands.lessons())
            lessons->addAction(QString("%1  %2").arg(file.lesson.number).arg(fromUtf8(file.lesson.title)), this,
                               [this, path = fromUtf8(file.path)] { m_files.open(path); });
    };
    fillLessons();
    connect(lessons, &QMenu::aboutToShow, this, fillLessons); // the user may have made lessons since
    fill(help, {"tryLive", "-", "explain", "manual", "tour", "keys", "about"});
    fillRecent();
    follow();
}

void WindowActions::fillPanels(QMenu* menu) {
    for (PanelDock* dock : m_commands.docks()->all()) {
        if (DockLayout::isView(dock)) continue;
        // Qt's own action treats a panel behind another tab as shown, and hides it.
        QAction* action = menu->addAction(dock->windowTitle());
        action->setCheckable(true);
        action->setChecked(!dock->visibleRegion().isEmpty());
        connect(dock, &QDockWidget::visibilityChanged, action, &QAction::setChecked);
        connect(action, &QAction::triggered, dock, [this, dock](bool shown) {
            if (shown)
                m_commands.docks()->open(dock);
            else
                dock->close();
        });
    }
}

void WindowActions::fillRecent() {
    if (!m_recent) return;
    m_recent->clear();
    for (const QString& path : m_files.recent()) {
        const bool isLive = path.startsWith('{');
        const QString name = FileActions::recentName(path);
        if (name.isEmpty()) continue;
        QAction* action = m_recent->addAction(QString(name).replace('&', "&&"));
        action->setToolTip(isLive ? tr("Starts its model again and reads the text") : path);
        action->setEnabled(isLive || QFileInfo::exists(path));
        connect(action, &QAction::triggered, this, [this, path] { m_files.open(path); });
    }
    m_recent->addSeparator();
    m_recent->addAction(tr("Clear"), this, [this] { m_files.clearRecent(); });
    m_recent->setToolTipsVisible(true);
}

void WindowActions::follow() {
    const Session& session = m_workbench.session();
    const SessionHistory& history = m_workbench.history();
    const bool open = m_workbench.capture() != nullptr;
    const auto named = [&](const QString& verb, const std::string& step) {
        return step.empty() ? verb : verb + " " + QString::fromStdString(step).toLower();
    };
    byName("undo")->setEnabled(history.canUndo());
    byName("undo")->setText(named(tr("&Undo"), history.undoLabel()));
    byName("redo")->setEnabled(history.canRedo());
    byName("redo")->setText(named(tr("&Redo"), history.redoLabel()));
    for (const char* name :
         {"reload",     "save",         "saveAs",    "addRecorded",   "export",           "report",        "makeLesson",
          "close",      "copyImage",    "copyData",  "find",          "findNext",         "findPrevious",  "explain",
          "views",      "selectNeedle", "selectAll", "selectionBack", "selectionForward", "clear",         "data",
          "resetView",  "range",        "goTo",      "previousHead",  "nextHead",         "previousLayer", "nextLayer",
          "removePane", "explore",      "compare",   "teach",         "wholeModel"})
        byName(name)->setEnabled(open);
    byName("compareWith")->setEnabled(open);
    byName("saveCapture")->setEnabled(m_workbench.live() != nullptr);
    byName("close")->setText(session.compared.path.empty() ? tr("&Close") : tr("&Close the second capture"));
    byName("frame")->setEnabled(open && !session.selected.empty());
    followSelection();
    if (m_policies) m_policies->setEnabled(open && session.panes.size() < static_cast<std::size_t>(kMaxPanes));
    byName("compact")->setChecked(session.look.compact);
    followMotion();
    byName("themeSystem")->setChecked(session.look.theme == ThemeChoice::System);
    byName("themeLight")->setChecked(session.look.theme == ThemeChoice::Light);
    byName("themeDark")->setChecked(session.look.theme == ThemeChoice::Dark);
}

void WindowActions::followMotion() {
    // Reduced motion set by the desktop cannot be switched off here.
    const bool bySystem = systemTheme().isMotionReduced();
    QAction* action = byName("reducedMotion");
    action->setChecked(bySystem || m_workbench.session().look.reducedMotion);
    action->setEnabled(!bySystem);
    action->setText(bySystem ? tr("Reduced mot&ion (as the desktop)") : tr("Reduced mot&ion"));
}

void WindowActions::followSelection() {
    if (!m_workbench.brushing()) // a drag counts as one selection
        m_selectionHistory->note(m_workbench.session());
}

void WindowActions::stepHead(int by) {
    const auto capture = m_workbench.capture();
    const int last = capture->info().numKvHeads - 1;
    const int head = std::clamp(m_workbench.session().kvHead.value + by, 0, last);
    m_workbench.change([&](Session& s) { chooseKvHead(s, KvHeadIndex(head), *capture); }, tr("KV head"));
}

void WindowActions::stepLayer(int by) {
    const auto& layers = m_workbench.capture()->info().layers;
    const auto here = std::ranges::find(layers, m_workbench.session().layer, &LayerInfo::layer);
    const auto next =
        std::clamp<std::ptrdiff_t>(here - layers.begin() + by, 0, static_cast<std::ptrdiff_t>(layers.size()) - 1);
    m_workbench.change([&](Session& s) { s.layer = layers[next].layer; }, tr("Layer"));
}

void WindowActions::stepSelection(int by) {
    m_workbench.change([&](Session& s) { m_selectionHistory->step(s, by); }, tr("Selection"));
}

void WindowActions::stepScale(int by) {
    const double now = m_workbench.session().look.scale;
    const auto here = std::ranges::min_element(
        kInterfaceScales, [&](double a, double b) { return std::abs(a - now) < std::abs(b - now); });
    const auto next = std::clamp<std::ptrdiff_t>(here - kInterfaceScales.begin() + by, 0,
                                                 static_cast<std::ptrdiff_t>(kInterfaceScales.size()) - 1);
    const double scale = by == 0 ? 1 : kInterfaceScales[next];
    m_workbench.change([&](Session& s) { s.look.scale = scale; }, tr("Interface scale"));
}

void WindowActions::setLayout(WindowLayout layout) {
    m_workbench.change([&](Session& s) { s.layout = layout; }, tr("Layout"));
}

void WindowActions::setTheme(ThemeChoice choice) {
    m_workbench.change([&](Session& s) { s.look.theme = choice; }, tr("Theme"));
}

} // namespace kvscope
