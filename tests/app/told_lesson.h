#pragma once

#include "tests/app/open_lesson.h"
#include "views/scene/axes.h"

#include <QTest>

#include <fmt/format.h>

#include <cctype>
#include <initializer_list>
#include <memory>
#include <regex>
#include <string>
#include <vector>

namespace kvscope::testing {

constexpr const char* kWords[] = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                                  "seven", "eight", "nine", "ten",   "eleven", "twelve"};

inline std::string word(std::size_t number) { return kWords[number]; }
inline std::string capital(std::string text) {
    text[0] = static_cast<char>(std::toupper(text[0]));
    return text;
}
inline std::string percent(double fraction) { return fmt::format("{:.0f} %", 100 * fraction); }
template <class Number> std::string count(Number value) { return formatCount(static_cast<std::int64_t>(value)); }

/// An open lesson, and those of its texts that no sentence has accounted for yet.
struct Told : OpenLesson {
    std::string name, texts;

    explicit Told(const char* file) : OpenLesson(file), name(file), texts(lesson.title + '\n' + lesson.text) {
        for (const LessonStop& stop : lesson.stops) texts += '\n' + stop.title + '\n' + stop.text;
        texts += '\n' + lesson.question + '\n' + lesson.answer;
        texts = filled(texts, [](const std::string&) { return std::string("…"); });
    }
    /// The lesson says so, or the test fails with its name.
    void says(const std::string& sentence) {
        const auto at = texts.find(sentence);
        if (at == std::string::npos) QFAIL(("the lesson '" + name + "' does not say: " + sentence).c_str());
        texts.replace(at, sentence.size(), "…");
    }
    /// Words of a formula or a name, which no run makes wrong.
    void defines(std::initializer_list<const char*> words) {
        for (const char* one : words) says(one);
    }
    /// Numbers from three up that are left. Letters before a digit make a name of it ("K10").
    QString left() const {
        static const std::regex number(
            R"((^|[^A-Za-z0-9.,])(\d[\d.,]*|([Tt]hree|[Ff]our|[Ff]ive|[Ss]ix|[Ss]even|[Ee]ight|[Nn]ine|[Tt]en|)"
            R"([Tt]welve|[Tt]wenty|[Hh]undred|[Tt]housand)(?![a-z])).{0,20})");
        std::string found;
        for (std::sregex_iterator at(texts.begin(), texts.end(), number), end; at != end; ++at)
            found += "\n  " + at->str();
        return found.empty() ? QString() : QString::fromStdString("nothing computes, in '" + name + "':" + found);
    }

    const Session& stop(std::size_t index) const { return lesson.stops.at(index).setting; }
    void show(const Session& setting) {
        bench->change([&](Session& s) { applySetting(s, setting); }, "Stop");
        executor.runAll();
    }
    std::int64_t tokens() const { return bench->capture()->info().numTokens; }
    std::int64_t cut() const { return bench->request()->cut.token; }
    const std::vector<TokenIndex>& kept(std::size_t pane) const {
        m_result = result(pane);
        return m_result->selection.heads[head()].kept;
    }
    template <class Log> std::shared_ptr<const Log> log(std::size_t pane) const {
        return std::dynamic_pointer_cast<const Log>(result(pane, true)->log);
    }
    std::string rangeOf(std::size_t index, bool rows) const {
        const ShownRange range = stop(index).look.ranges.at("attention_map");
        return count(rows ? range.yMax - range.yMin : range.xMax - range.xMin);
    }
    std::string needle() const { return count(lesson.start.selected.size()); }
    std::string textOf(const Session& setting) const {
        std::string text;
        for (const TokenIndex token : setting.selected) text += bench->capture()->tokens().textOf(token);
        return text;
    }

private:
    mutable std::shared_ptr<const RunResult> m_result;
};

} // namespace kvscope::testing
