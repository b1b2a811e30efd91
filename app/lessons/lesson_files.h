#pragma once

#include "app/lessons/lesson.h"

namespace kvscope {

/// The lessons of a folder by number, also where some are broken: the messages of these are added to `broken`.
std::vector<LessonFile> readableLessonsIn(const std::string& folder, std::vector<std::string>& broken);

/// The file of the session's lesson: the one with the same words, else the first of its title; null: none of them.
const LessonFile* fileOf(const Session& session, const std::vector<LessonFile>& files);

} // namespace kvscope
