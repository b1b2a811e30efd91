#pragma once

#include "app/lessons/lesson.h"
#include "app/study/makers/view_data_maker.h"

#include <string>

namespace kvscope {

struct LessonAnswer {
    double value = 0;
    int choice = 0;          ///< index of the one that the value falls into
    bool isRecorded = false; ///< the value is the lesson's record, since the model does not run
    std::string valueText;   ///< "59.7 %"
    std::string text;        ///< the lesson's answer with its numbers filled in; explains the lesson's own setting
};

/// Computes the answer from the request's panes. Runs on a worker. Throws Error or Cancelled.
LessonAnswer answerOf(const Lesson& lesson, const LayerRunner& runner, const ViewDataRequest& request,
                      const Checkpoint& checkpoint);

} // namespace kvscope
