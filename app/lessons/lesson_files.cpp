// The lessons of a folder, and which of them a session shows.
#include "app/lessons/lesson.h"

#include "app/study/session_file.h"
#include "core/base/error.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

/// `broken` is told of the lessons that cannot be read, with their paths.
std::vector<LessonFile> readLessons(const std::string& folder, const std::function<void(const Error&)>& broken) {
    std::vector<LessonFile> lessons;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string path = entry.path().string();
        if (entry.path().extension() != ".kvscope" || !isSessionFile(path)) continue;
        try {
            if (auto lesson = lessonOf(readSession(path))) lessons.push_back({path, std::move(*lesson)});
        } catch (const Error& error) {
            Error::Parts parts = error.parts();
            parts.path = path;
            broken(Error(parts));
        }
    }
    std::ranges::sort(lessons, [](const LessonFile& a, const LessonFile& b) {
        return std::pair(a.lesson.number, a.path) < std::pair(b.lesson.number, b.path);
    });
    return lessons;
}

} // namespace

std::vector<LessonFile> lessonsIn(const std::string& folder) {
    return readLessons(folder, [](const Error& error) { throw error; });
}

std::vector<LessonFile> readableLessonsIn(const std::string& folder, std::vector<std::string>& broken) {
    return readLessons(folder, [&](const Error& error) { broken.emplace_back(error.what()); });
}

const LessonFile* fileOf(const Session& session, const std::vector<LessonFile>& files) {
    std::optional<Lesson> open;
    try {
        open = lessonOf(session);
    } catch (const Error&) { // the lesson panel shows it
    }
    if (!open) return nullptr;
    const auto words = [](const Lesson& of) { return std::tie(of.title, of.text, of.question, of.answer, of.claim); };
    auto file = std::ranges::find_if(files, [&](const LessonFile& of) { return words(of.lesson) == words(*open); });
    if (file == files.end()) file = std::ranges::find(files, open->title, [](auto& of) { return of.lesson.title; });
    return file == files.end() ? nullptr : &*file;
}

} // namespace kvscope
