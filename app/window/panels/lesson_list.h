#pragma once

#include <QWidget>

#include "app/lessons/lesson.h"
#include "app/workbench/workbench.h"

class QVBoxLayout;

namespace kvscope {

/// The lessons by group: the open one filled with ink, answered ones with a check mark.
class LessonList : public QWidget {
    Q_OBJECT

public:
    LessonList(Workbench& workbench, const std::vector<LessonFile>& lessons, QWidget* parent = nullptr);
    void refresh(); ///< after a lesson was answered, too

signals:
    void chosen(const QString& path);

private:
    QWidget* rowOf(const LessonFile& file, bool open, bool answered);

    Workbench& m_workbench;
    const std::vector<LessonFile>& m_lessons;
    QVBoxLayout* m_rows = nullptr;
    std::string m_shown, m_opened; ///< as drawn: lessons and their states; path of the open one
};

/// The reader has seen the lesson's answer; kept in the settings.
void markAnswered(const Lesson& lesson);

} // namespace kvscope
