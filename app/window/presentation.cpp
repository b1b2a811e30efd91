// Presentation mode: the presenter covers the window, and covered widgets are suspended until the chrome is rebuilt.
#include "app/window/actions/tour.h"
#include "app/window/canvas_area.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/main_window.h"
#include "app/window/presenter.h"
#include "app/window/style/appearance.h"
#include "app/window/style/system_theme.h"
#include "app/window/widgets/small_widgets.h"

#include <QStatusBar>
#include <QTimer>
#include <QToolBar>

#include <utility>

namespace kvscope {

struct MainWindow::BeforePresenting {
    double scale;
    bool compact;
    QByteArray docks;
    DockLayout::Sizes sizes;
    Presenter::Picture current; ///< shown while no lesson is open
    std::string lesson;
};

void MainWindow::present() {
    const ViewCanvas* current = currentCanvas();
    if (!current || !m_workbench.capture()) return;
    if (auto* tour = findChild<Tour*>()) tour->deleteLater(); // it would lie over the pictures
    m_before = std::make_shared<const BeforePresenting>(
        BeforePresenting{appearance().scale,
                         appearance().compact,
                         saveState(),
                         m_docks->sizes(),
                         {&current->view(), m_workbench.session().activePane, &current->workbench()},
                         m_workbench.session().lesson});
    foldRailPanels();
    for (PanelDock* dock : m_docks->all()) {
        dock->suspend(true);
        if (dock->isFloating()) dock->hide();
    }
    m_docks->dock("lesson")->fillPlain(new QWidget); // else two lesson panels would both ask for the answer
    m_canvases->hide();
    for (QWidget* covered : {menuWidget(), static_cast<QWidget*>(m_rail), static_cast<QWidget*>(statusBar())})
        covered->setEnabled(false);
    showPresenter();
}

void MainWindow::showPresenter() {
    const Appearance wanted{themeFor(m_workbench.session().look.theme), Presenter::scaleFor(size()), false};
    if (m_presenter && wanted == appearance()) return m_presenter->setGeometry(rect());
    setAppearance(wanted);
    discard(m_presenter);
    m_presenter = new Presenter(m_workbench, *m_steps, m_text, m_lessons, m_progress, m_before->current, this);
    m_lessonPanel = m_presenter->lesson();
    connect(m_presenter, &Presenter::lessonWanted, this, &MainWindow::turnLesson);
    connect(m_lessonPanel, &LessonPanel::opened, this, &MainWindow::followTurn);
    connect(m_lessonPanel, &LessonPanel::modelWanted, this, &MainWindow::startLessonModel);
    m_presenter->setGeometry(rect());
    m_presenter->show();
    m_presenter->raise();
    m_presenter->setFocus();
}

void MainWindow::endPresentation() {
    discard(std::exchange(m_presenter, nullptr));
    const BeforePresenting before = *m_before;
    setAppearance({themeFor(m_workbench.session().look.theme), before.scale, before.compact});
    for (PanelDock* dock : m_docks->all()) dock->suspend(false);
    m_rail->setEnabled(true);
    restoreState(before.docks);
    buildChrome();
    if (const auto& lesson = m_lessonPanel->lesson(); lesson && m_workbench.session().lesson != before.lesson)
        m_wantedInFront = lesson->views;
    followLook(); // the window may have another size now
    arrangeDocks();
    QTimer::singleShot(0, this, [this, sizes = before.sizes] { m_docks->resize(sizes); });
}

} // namespace kvscope
