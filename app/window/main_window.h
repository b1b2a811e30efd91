#pragma once

#include <QMainWindow>
#include <QPointer>
#include <QUrl>

#include "app/lessons/lesson.h"
#include "app/window/actions/window_commands.h"
#include "app/window/panels/lesson_question.h"
#include "app/workbench/workbench.h"

class QToolBar;

namespace kvscope {

class BudgetBar;
class CanvasArea;
class DockLayout;
class EngineController;
class FileActions;
class HeadGallery;
class ManualWindow;
class NoticeStrip;
class LessonList;
class LiveActions;
class LessonPanel;
class PolicyPanel;
class Presenter;
class RailPanels;
class StatusLine;
class StepDriver;
class TopBar;
class TryLive;
class ViewGallery;
class ViewCanvas;
class WindowActions;

/// The main window: bars, panels and canvases around one workbench. All state is in the session, so the chrome is
/// rebuilt when the interface scale or the density changes.
class MainWindow : public QMainWindow, public WindowCommands {
    Q_OBJECT

public:
    MainWindow(Workbench& workbench, const TextService& text);
    ~MainWindow() override;

    void openPath(const QString& path);
    NoticeStrip& notices() { return *m_notices; }
    EngineController& engines() { return *m_engines; }
    CanvasArea* canvases() const { return m_canvases; }
    BudgetBar* budgetBar() const { return m_budgetBar; }
    DockLayout* docks() const override { return m_docks; }
    PolicyPanel* policyPanel() const { return m_policyPanel; }
    StatusLine* statusLine() const { return m_status; }
    WindowActions* actions() const { return m_actions; }
    StepDriver* steps() const override { return m_steps; }
    const std::vector<LessonFile>& lessons() const override { return m_lessons; }

    // Commands, see WindowCommands.
    ViewCanvas* currentCanvas() const override;
    void stepLesson(int by) override;
    void newFromText() override;
    void saveCapture() override;
    void tryLive() override;
    void togglePresenter() override { m_presenter ? endPresentation() : present(); }
    Presenter* presenter() const { return m_presenter; } ///< null while none is shown
    void focusFind() override;
    void findNext(int by) override;
    void showGoTo() override;
    void showViews() override;
    void exportReport() override;
    void exportHandout() override;
    void makeLesson() override;
    void startTour() override;
    void offerTour(); ///< on the first run, once a capture is open
    void escape() override;
    bool mayStep() const; ///< a view with steps is shown, and no pinned read-out uses the arrow keys
    void saveScreenshot() override;
    void showKeys() override;
    void showManual() override;
    Q_INVOKABLE void followManualLink(const QUrl& link); ///< manual:PAGE#HEADING, from any text of the window
    void showAbout() override;

protected:
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    /// Theme, scale, density and layout of the last window; a session that is opened brings its own.
    void recallInterface();
    void rememberInterface() const;
    void followLook();
    /// Enlarges a window that is too small for a new interface scale, up to the screen.
    void makeRoomFor(double scale);
    void sayScale(double scale); ///< tells the user when another scale than the requested one is shown
    void followMotion();
    void followMaximised();
    void buildChrome();
    void addDocks();
    void fillDocks();
    void fillLessons();
    LessonList* newLessonList();
    void readLessons();
    QWidget* buildTop();
    void toggleRailPanels(); ///< what the window has no room for, over the pictures
    bool foldRailPanels();   ///< false: none is shown
    void fitWidth();
    void arrangeDocks();
    void arrangeDocksSoon(); ///< after the window has been laid out
    void raiseLessonDocks();
    void present();
    void showPresenter();
    void endPresentation();
    void startLessonModel(); ///< starts the open lesson's model and keeps the session's other settings
    void openLesson(int by); ///< the lesson `by` places after the open one, if there is one; 0: the first lesson
    void turnLesson(int by); ///< the same; backwards to its end
    void followTurn();
    void followTitle();
    void showHeads(const ViewCanvas& canvas); ///< the view for all heads of the layer

    Workbench& m_workbench;
    const TextService& m_text;
    WindowActions* m_actions = nullptr;
    FileActions* m_files = nullptr;
    LiveActions* m_live = nullptr;
    TryLive* m_tryLive = nullptr;
    QPointer<ManualWindow> m_manual; ///< null while it is closed
    QPointer<HeadGallery> m_heads;
    QPointer<RailPanels> m_railPanels; ///< null while they are folded
    QPointer<ViewGallery> m_gallery;   ///< null until it is shown, and again when the chrome is rebuilt
    NoticeStrip* m_notices = nullptr;
    EngineController* m_engines = nullptr;
    DockLayout* m_docks = nullptr;
    QToolBar* m_rail = nullptr;
    TopBar* m_topBar = nullptr;
    BudgetBar* m_budgetBar = nullptr;
    CanvasArea* m_canvases = nullptr;
    PolicyPanel* m_policyPanel = nullptr;
    LessonList* m_lessonList = nullptr;
    LessonPanel* m_lessonPanel = nullptr;
    StatusLine* m_status = nullptr;
    StepDriver* m_steps = nullptr;
    std::vector<LessonFile> m_lessons;
    DockPlaces m_docksOfFile; ///< of the session that was opened last
    bool m_shown = false, m_arrangesSoon = false;
    double m_scaleAsked = 1;
    std::pair<double, double> m_scaleSaid{1, 1}; ///< shown and wanted, as said last
    QSize m_ownSize, m_grownTo;                  ///< the window's size before and after a larger scale enlarged it
    LessonProgress m_progress;
    std::ptrdiff_t m_turnedBackTo = -1;       ///< the lesson that will be shown from its end; -1: none
    std::vector<std::string> m_wantedInFront; ///< docks to raise for an opened lesson or its stop
    std::vector<QString> m_ofLesson;          ///< docks that a lesson opened, to be hidden again after it
    std::optional<bool> m_hasSteps;           ///< of the open lesson; empty at first, when docks are as remembered
    Presenter* m_presenter = nullptr;
    struct BeforePresenting;
    std::shared_ptr<const BeforePresenting> m_before; ///< what is restored after the presentation
};

} // namespace kvscope
