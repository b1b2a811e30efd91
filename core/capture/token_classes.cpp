// Token classes that compressors treat differently: sinks, separators, digits, repeats, early and late tokens.
#include "core/capture/token_classes.h"

#include "core/base/one_line.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>
#include <utility>

namespace kvscope {

namespace {

enum class Character { Letter, Digit, Punctuation, Blank, LineBreak };

bool within(std::uint32_t point, std::uint32_t from, std::uint32_t to) { return from <= point && point <= to; }

Character characterOf(std::uint32_t point) {
    if (point == '\n' || point == '\r' || within(point, 0x2028, 0x2029)) return Character::LineBreak;
    if (point == ' ' || point == '\t' || point == 0xA0 || within(point, 0x2000, 0x200B) || point == 0x3000)
        return Character::Blank;
    if (within(point, '0', '9') || within(point, 0xFF10, 0xFF19)) return Character::Digit;
    if (within(point, 'A', 'Z') || within(point, 'a', 'z')) return Character::Letter;
    // The rest of ASCII and Latin-1 signs; general, currency, mathematical and other symbols; CJK and full-width
    // punctuation; emoji.
    const bool latinLetter = point == 0xAA || point == 0xB5 || point == 0xBA;
    const bool sign = (within(point, 0, 0xBF) && !latinLetter) || point == 0xD7 || point == 0xF7 ||
                      within(point, 0x2010, 0x206F) || within(point, 0x20A0, 0x20CF) || within(point, 0x2190, 0x2BFF) ||
                      within(point, 0x3001, 0x3003) || within(point, 0x3008, 0x3020) || within(point, 0xFF01, 0xFF0F) ||
                      within(point, 0xFF1A, 0xFF20) || within(point, 0xFF3B, 0xFF40) || within(point, 0xFF5B, 0xFF65) ||
                      within(point, 0x1F000, 0x1FAFF) || within(point, 0xFE00, 0xFE0F);
    return sign ? Character::Punctuation : Character::Letter;
}

/// Scripts without blanks between words: every token begins a word.
bool writesNoBlanks(std::uint32_t point) {
    return within(point, 0x0E00, 0x0EFF) || within(point, 0x3040, 0x30FF) || within(point, 0x3400, 0x9FFF) ||
           within(point, 0xF900, 0xFAFF) || within(point, 0x20000, 0x3FFFF);
}

/// A part of a character counts as a letter: the next token continues it.
bool endsInLetter(std::string_view bytes) {
    bool letter = false;
    for (std::size_t at = 0; at < bytes.size();) {
        const CodePoint point = codePointAt(bytes.substr(at));
        letter = point.length == 0 || characterOf(point.value) == Character::Letter;
        at += point.length == 0 ? 1 : point.length;
    }
    return letter;
}

} // namespace

TextClass textClassOf(std::string_view bytes, bool afterLetter) {
    std::array<bool, 3> holds{}; // letters, digits, punctuation
    bool lineBreak = false, goesOn = afterLetter;
    for (std::size_t at = 0; at < bytes.size();) {
        const CodePoint point = codePointAt(bytes.substr(at));
        if (point.length == 0) return TextClass::Broken;
        const Character character = characterOf(point.value);
        if (character == Character::Blank || character == Character::LineBreak)
            lineBreak |= character == Character::LineBreak;
        else
            holds[static_cast<std::size_t>(character)] = true;
        goesOn &= at > 0 || (character == Character::Letter && !writesNoBlanks(point.value));
        at += point.length;
    }
    const auto kinds = std::ranges::count(holds, true);
    if (kinds == 0) return lineBreak ? TextClass::LineBreak : TextClass::Blank;
    if (kinds > 1) return TextClass::Mixed;
    if (holds[0]) return goesOn ? TextClass::WordPart : TextClass::WordStart;
    return holds[1] ? TextClass::Digits : TextClass::Punctuation;
}

TokenClasses classesByText(const TokenTable& tokens) {
    TokenClasses classes{
        {"word start", "word part", "digits", "punctuation", "blanks", "line breaks", "mixed", "part of a character"},
        {}};
    bool afterLetter = false;
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
        const std::string_view text = tokens.textOf(static_cast<TokenIndex>(i));
        classes.classOf.push_back(static_cast<std::uint8_t>(textClassOf(text, afterLetter)));
        afterLetter = endsInLetter(text);
    }
    return classes;
}

TokenClasses classesBySegment(const TokenTable& tokens) {
    TokenClasses classes;
    for (const SegmentKind kind : kSegmentKinds) classes.names.emplace_back(segmentName(kind));
    classes.names.emplace_back("no segment");
    classes.classOf.assign(tokens.ids.size(), static_cast<std::uint8_t>(classes.names.size() - 1));
    std::vector<Segment> outerFirst = tokens.segments;
    std::ranges::stable_sort(outerFirst,
                             [](const Segment& a, const Segment& b) { return a.end - a.begin > b.end - b.begin; });
    for (const Segment& segment : outerFirst)
        std::fill(classes.classOf.begin() + segment.begin, classes.classOf.begin() + segment.end,
                  static_cast<std::uint8_t>(segment.kind));
    return classes;
}

TokenClasses classesByRepeat(const TokenTable& tokens) {
    TokenClasses classes{{"first occurrence", "repeat", "repeat after the same token"}, {}};
    std::unordered_set<std::int32_t> seen;
    std::set<std::pair<std::int32_t, std::int32_t>> seenPairs;
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
        const bool known = !seen.insert(tokens.ids[i]).second;
        const bool knownPair = i > 0 && !seenPairs.insert({tokens.ids[i - 1], tokens.ids[i]}).second;
        classes.classOf.push_back(knownPair ? 2 : known ? 1 : 0);
    }
    return classes;
}

TokenClasses classesByDecile(std::int64_t tokens, std::int64_t visible) {
    TokenClasses classes;
    for (int tenth = 0; tenth < 10; ++tenth)
        classes.names.push_back(std::to_string(10 * tenth) + "–" + std::to_string(10 * tenth + 10) + " %");
    for (std::int64_t token = 0; token < tokens; ++token)
        classes.classOf.push_back(
            static_cast<std::uint8_t>(std::min<std::int64_t>(9, 10 * token / std::max<std::int64_t>(1, visible))));
    return classes;
}

} // namespace kvscope
