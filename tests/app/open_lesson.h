#pragma once

#include "app/lessons/lesson_answer.h"
#include "app/lessons/lesson_quantities.h"
#include "app/study/session_file.h"
#include "tests/app/manual_workbench.h"
#include "tests/support/source_dir.h"

#include <memory>
#include <string>

namespace kvscope::testing {

inline std::string lessonFolder() { return sourceDir() + "/resources/lessons"; }

/// A lesson of the program, opened without a window and with everything computed.
struct OpenLesson {
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = manualWorkbench(executor);
    Lesson lesson;

    explicit OpenLesson(const std::string& name) {
        Session session = readSession(lessonFolder() + "/" + name + ".kvscope");
        lesson = *lessonOf(session);
        bench->openSession(std::move(session));
        executor.runAll();
    }

    LessonAnswer answer() const { return answerOf(lesson, bench->runner(), *bench->request(), {}); }
    double quantity(const char* id, std::size_t pane = 0) const {
        return lessonQuantityById(id).compute({bench->runner(), *bench->request(), pane, {}});
    }
    std::shared_ptr<const RunResult> result(std::size_t pane, bool steps = false) const {
        RunRequest request = bench->request()->panes[pane].run;
        request.recordSteps = steps;
        return bench->runner().run(request, {});
    }
    std::size_t head() const { return static_cast<std::size_t>(bench->session().kvHead.value); }
};

} // namespace kvscope::testing
