#pragma once

#include "app/lessons/lesson.h"

namespace kvscope {

/// The session that a lesson's file holds: `of` at the lesson's start, with title, text, views, stops and question of
/// `lesson`. Stops and question name only what differs from the start. What `of` says of a lesson beside that (its
/// paper) stays.
Session sessionWith(const Lesson& lesson, const Session& of);

} // namespace kvscope
