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
/// open lesson at a time, in type that is readable from the last row. Without a lesson it shows the view that was in
/// use. Covers the window; the interface scale is `scaleFor` the window's size.
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
    /// Goes to the next (1) or the previous (-1) part of the lesson; past its ends, to the next or the previous lesson.
    void step(int by);
    void goToLast(); ///< the lesson's last part

    /// With this scale the smallest type of the interface, the tick labels, is 2.5 % of the window's height.
    static double scaleFor(QSize window) { return window.height() / 400.0; }

signals:
    void lessonWanted(int by);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    bool focusNextPrevChild(bool next) override; ///< stays inside, so that covered widgets take no keys

private:
    void follow();
    void showPictures(const std::vector<Picture>& pictures);
    void showViews(const std::vector<std::string>& views);
    void followPart(); ///< of the lesson: its caption and its type size
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
    std::string m_shown; ///< names the pictures that are shown
};

} // namespace kvscope
