// Lessons in the window: where they are read from, their panels, and the docks that an open one brings to the front.
#include "app/lessons/lesson.h"
#include "app/study/resources.h"
#include "app/window/actions/file_actions.h"
#include "app/window/dialogs/lesson_maker.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/main_window.h"
#include "app/window/panels/lesson_list.h"
#include "app/window/panels/lesson_panel.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "app/workbench/step_driver.h"
#include "views/scene/axes.h"

#include <algorithm>
#include <utility>

namespace kvscope {

void MainWindow::readLessons() {
    std::vector<std::string> broken;
    m_lessons = readableLessonsIn(findResource("resources/lessons"), broken);
    for (LessonFile& own : readableLessonsIn(LessonMaker::folder().toStdString(), broken)) {
        own.lesson.number = static_cast<int>(m_lessons.size()) + 1;
        m_lessons.push_back(std::move(own));
    }
    if (broken.empty()) return m_notices->dismiss("lessons");
    if (broken.size() > 1)
        broken.front() += " (" + formatCounted(std::ssize(broken) - 1, "more lesson") + " cannot be read)";
    m_notices->show("lessons", NoticeStrip::Tone::Error, fromUtf8(broken.front()));
}

LessonList* MainWindow::newLessonList() {
    auto* list = new LessonList(m_workbench, m_lessons);
    connect(list, &LessonList::chosen, m_files, &FileActions::open);
    return list;
}

void MainWindow::fillLessons() {
    auto* list = m_lessonList = newLessonList();
    auto* lesson = m_lessonPanel = new LessonPanel(m_workbench, m_lessons, m_progress);
    connect(lesson, &LessonPanel::answered, list, &LessonList::refresh);
    connect(lesson, &LessonPanel::opened, this, [this](const Lesson& opened) {
        m_wantedInFront = opened.views; // raised once the docks of the layout are arranged
        m_wantedInFront.emplace_back("lesson");
        arrangeDocksSoon();
        followTurn();
    });
    connect(lesson, &LessonPanel::viewsWanted, this, [this](const std::vector<std::string>& views) {
        m_wantedInFront = views;
        arrangeDocksSoon();
    });
    connect(lesson, &LessonPanel::modelWanted, this, &MainWindow::startLessonModel);
    connect(lesson, &LessonPanel::lessonWanted, this, &MainWindow::openLesson);
    m_docks->dock("lessons")->fillScrolled(list);
    m_docks->dock("lesson")->fillScrolled(lesson);
}

void MainWindow::raiseLessonDocks() {
    const std::vector<std::string> front = std::exchange(m_wantedInFront, {});
    const auto& lesson = m_lessonPanel->lesson();
    const auto isWanted = [&](const QString& id) {
        return lesson && (std::ranges::find(lesson->views, id.toStdString()) != lesson->views.end() ||
                          std::ranges::find(front, id.toStdString()) != front.end());
    };
    if (!lesson || !front.empty())
        std::erase_if(m_ofLesson, [&](const QString& id) {
            if (isWanted(id)) return false;
            m_docks->dock(id)->hide();
            return true;
        });
    if (m_workbench.session().layout != WindowLayout::Teach) return;
    // A lesson without steps hides the step player, so that its pictures get that room.
    const bool hasSteps =
        !lesson || lesson->start.look.cursor ||
        std::ranges::any_of(lesson->stops, [](const LessonStop& stop) { return stop.setting.look.cursor.has_value(); });
    if (std::exchange(m_hasSteps, hasSteps) != hasSteps) m_docks->dock("steps")->setVisible(hasSteps);
    if (front.empty()) return;
    for (const std::string& id : front)
        if (const PanelDock* dock = m_docks->dock(fromUtf8(id)); dock && dock->isHidden())
            m_ofLesson.push_back(dock->id());
    m_docks->bringToFront(front);
    const auto isFirst = [&](const View* view) { return view->card().id == front.front(); };
    if (const auto view = std::ranges::find_if(allViews(), isFirst); view != allViews().end()) m_steps->prefer(**view);
}

} // namespace kvscope
