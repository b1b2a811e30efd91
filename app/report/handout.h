#pragma once

#include "app/lessons/lesson.h"
#include "core/base/checkpoint.h"
#include "core/run/run.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// A lesson with what computes it.
struct HandoutLesson {
    Lesson lesson;
    std::shared_ptr<const CaptureReader> capture;
    std::shared_ptr<const LayerRunner> runner;
};

/// Lessons on paper, as PDF (A4): each begins on a page of its own with its text, then its stops with the picture of
/// the first view of each and its finding, then the question with its choices. The answers, computed, follow on the
/// last pages. The same lessons give the same bytes. Needs Qt's fonts, no display. Throws Error or Cancelled.
std::string handoutPdf(const std::vector<HandoutLesson>& lessons, const Checkpoint& checkpoint);

/// Reads a lesson and opens its capture. Throws Error for a session that is no lesson.
HandoutLesson readHandoutLesson(const std::string& path, std::shared_ptr<const LayerRunner> runner);

} // namespace kvscope
