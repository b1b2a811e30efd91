#pragma once

#include "app/lessons/lesson.h"
#include "app/study/makers/view_data_maker.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A number that a lesson may ask for, of one pane of a request.
struct LessonQuantity {
    enum class Form { Percent, Count, Decimal };
    using Compute = double (*)(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane, const Checkpoint& checkpoint);

    std::string id, help;
    Form form = Form::Decimal;
    Compute compute = nullptr;
};

const std::vector<LessonQuantity>& lessonQuantities();
/// Throws Error with the nearest name.
const LessonQuantity& lessonQuantityById(std::string_view id);
std::string quantityText(const LessonQuantity& quantity, double value);

/// The names in braces of a text, in their order, without the pane after an @.
std::vector<std::string> quantitiesIn(const std::string& text);

struct LessonAnswer {
    double value = 0;
    int choice = 0;        ///< that the value falls into
    std::string valueText; ///< "59.7 %"
    std::string text;      ///< the lesson's answer with its numbers filled in; of other settings only the number
};

/// Computes the answer from the panes of the request as they are. Runs on a worker. Throws Error or Cancelled.
LessonAnswer answerOf(const Lesson& lesson, const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint);

} // namespace kvscope
