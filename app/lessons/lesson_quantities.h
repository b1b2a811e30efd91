#pragma once

#include "app/lessons/lesson_asked.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope {

/// A number that a lesson may use.
struct LessonQuantity {
    enum class Form { Percent, Count, Decimal, Magnitude, Bytes };

    std::string id, help;
    Form form = Form::Decimal;
    double (*compute)(const LessonAsked& asked) = nullptr;
};

const std::vector<LessonQuantity>& lessonQuantities();
/// Throws Error with the nearest name.
const LessonQuantity& lessonQuantityById(std::string_view id);
std::string quantityText(const LessonQuantity& quantity, double value);

/// The names in braces of a text, in order, without the pane after an @.
std::vector<std::string> quantitiesIn(const std::string& text);

/// "coin_ratio@1": the quantity and its pane; `pane` if the name gives none.
std::pair<std::string, std::size_t> namedQuantity(const std::string& name, std::size_t pane);
/// The text with each name in braces replaced.
std::string filled(const std::string& text, const std::function<std::string(const std::string&)>& valueOf);

} // namespace kvscope
