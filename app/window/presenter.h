#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/window/panels/lesson_panel.h"
#include "app/workbench/step_driver.h"

#include <QWidget>

#include <string>
#include <vector>

class QLabel;
class QScrollArea;
class QVBoxLayout;

namespace kvscope {

/// What a lecture shows instead of the whole window: one picture or two, the caption of the step, and one part of the
/// open lesson at a time, in type that is read from the last row. Without a lesson, the view that was in use. Covers
/// the window; the scale of the interface is `scaleFor` its size.
class Presenter : public QWidget {
    Q_OBJECT

public:
    struct Picture {
        const View* view;
        int pane;
        Workbench* workbench; ///< of the capture that it shows
    };
    /// `current`: what is shown while no lesson is open.
    Presenter(Workbench& workbench, StepDriver& steps, const TextService& text, const std::vector<LessonFile>& lessons,
              LessonProgress& progress, Picture current, QWidget* window);

    LessonPanel* lesson() const { return m_lesson; }
    /// To the next part of the lesson, or the one before; over the ends to the lessons beside it.
    void step(int by);

    /// The smallest type of the interface, the tick labels, is then 2.5 % of the window's height.
    static double scaleFor(QSize window) { return window.height() / 400.0; }

signals:
    void lessonWanted(int by);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    bool focusNextPrevChild(bool next) override; ///< stays inside: what is covered takes no key

private:
    void follow();
    void showPictures(const std::vector<Picture>& pictures);
    void showViews(const std::vector<std::string>& views);
    void followSteps();
    void fitText();
    QWidget* frameOf(Picture picture, bool alone);

    Workbench& m_workbench;
    StepDriver& m_steps;
    const TextService& m_text;
    const Picture m_current;
    QVBoxLayout* m_pictures;
    QLabel *m_stepTitle, *m_caption, *m_place;
    QScrollArea* m_area;
    LessonPanel* m_lesson;
    QWidget* m_side;
    std::string m_shown; ///< the pictures
};

} // namespace kvscope
