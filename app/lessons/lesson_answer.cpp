// The answer after a prediction: the deciding number, the choice it falls into, and the text around it.
#include "app/lessons/lesson_answer.h"

#include "app/lessons/lesson_quantities.h"
#include "app/live/live_capture.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace kvscope {

LessonAnswer answerOf(const Lesson& lesson, const LayerRunner& runner, const ViewDataRequest& request,
                      const Checkpoint& checkpoint) {
    const auto pane = static_cast<std::size_t>(lesson.pane);
    const LessonQuantity& deciding = lessonQuantityById(lesson.quantity);
    const bool isRun = dynamic_cast<const live::LiveCapture*>(request.capture.get());
    const auto recordedOf = [&](const LessonQuantity& quantity, std::size_t whose) {
        const auto at = lesson.recorded.find(quantity.id + "@" + std::to_string(whose));
        return isRun || at == lesson.recorded.end() ? std::nullopt : std::optional(at->second);
    };
    const auto valueOf = [&](const LessonQuantity& quantity, std::size_t whose) {
        const auto recorded = recordedOf(quantity, whose);
        return recorded ? *recorded : quantity.compute({runner, request, whose, checkpoint});
    };
    LessonAnswer answer;
    answer.isRecorded = recordedOf(deciding, pane).has_value();
    answer.value = valueOf(deciding, pane);
    answer.valueText = quantityText(deciding, answer.value);
    const auto falls =
        std::ranges::find_if(lesson.choices, [&](const LessonChoice& c) { return answer.value < c.below; });
    answer.choice = static_cast<int>(std::min(falls - lesson.choices.begin(), std::ssize(lesson.choices) - 1));
    answer.text = filled(lesson.answer, [&](const std::string& name) {
        if (name == "value") return answer.valueText;
        const auto [id, whose] = namedQuantity(name, pane);
        const LessonQuantity& other = lessonQuantityById(id);
        return quantityText(other, valueOf(other, whose));
    });
    return answer;
}

} // namespace kvscope
