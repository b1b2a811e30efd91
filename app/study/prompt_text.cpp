// Words and hits are found in the bytes of the text, because both may span tokens.
#include "app/study/prompt_text.h"

#include "core/run/run.h"

#include <algorithm>
#include <cctype>

namespace kvscope {

namespace {

/// Letters, digits and every byte of a character beyond ASCII.
bool isWordByte(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) || c == '_';
}

bool isBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Whether two neighbours are parts of one word.
bool isInsideWord(const TokenTable& tokens, TokenIndex before, TokenIndex after) {
    const std::string_view left = tokens.textOf(before), right = tokens.textOf(after);
    return !left.empty() && !right.empty() && isWordByte(left.back()) && isWordByte(right.front());
}

bool beginsSentence(const TokenTable& tokens, TokenIndex token) {
    if (token == 0) return true;
    const std::string_view before = tokens.textOf(token - 1), own = tokens.textOf(token);
    if (before.find('\n') != std::string_view::npos) return true;
    const std::size_t last = before.find_last_not_of(" \t\r");
    const bool ended =
        last != std::string_view::npos && std::string_view(".!?").find(before[last]) != std::string::npos;
    return ended && (last + 1 < before.size() || own.empty() || isBlank(own.front()));
}

std::int64_t sharedWithQuestion(const Segment& needle, const TokenTable& tokens) {
    std::int64_t shared = 0;
    for (const Segment& question : tokens.segments) {
        if (question.kind != SegmentKind::Question) continue;
        for (TokenIndex token = needle.begin; token < needle.end; ++token)
            shared += std::count(tokens.ids.begin() + question.begin, tokens.ids.begin() + question.end,
                                 tokens.ids[token]) > 0;
    }
    return shared;
}

std::string lowered(std::string_view text) {
    std::string low(text);
    std::ranges::transform(low, low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return low;
}

} // namespace

TokenRun wordAround(const TokenTable& tokens, TokenIndex token) {
    TokenRun word{token, token + 1};
    while (word.begin > 0 && isInsideWord(tokens, word.begin - 1, word.begin)) --word.begin;
    const auto n = static_cast<TokenIndex>(tokens.ids.size());
    while (word.end < n && isInsideWord(tokens, word.end - 1, word.end)) ++word.end;
    return word;
}

TokenRun sentenceAround(const TokenTable& tokens, TokenIndex token) {
    TokenRun sentence{token, token + 1};
    while (!beginsSentence(tokens, sentence.begin)) --sentence.begin;
    const auto n = static_cast<TokenIndex>(tokens.ids.size());
    while (sentence.end < n && !beginsSentence(tokens, sentence.end)) ++sentence.end;
    return sentence;
}

std::vector<TokenRun> hitsOf(const TokenTable& tokens, std::string_view wanted) {
    std::vector<TokenRun> hits;
    if (wanted.empty()) return hits;
    const std::string text = lowered(tokens.bytes), low = lowered(wanted);
    for (std::size_t at = text.find(low); at != std::string::npos; at = text.find(low, at + low.size())) {
        const auto begin = static_cast<std::int64_t>(at), end = begin + static_cast<std::int64_t>(low.size());
        const auto first = std::ranges::upper_bound(tokens.offsets, begin) - tokens.offsets.begin() - 1;
        const auto behind = std::ranges::lower_bound(tokens.offsets, end) - tokens.offsets.begin();
        hits.push_back({static_cast<TokenIndex>(first), static_cast<TokenIndex>(behind)});
    }
    return hits;
}

std::optional<TokenRun> askedNeedle(const TokenTable& tokens) {
    const Segment* asked = nullptr;
    for (const Segment& segment : tokens.segments)
        if (segment.kind == SegmentKind::Needle &&
            (!asked || sharedWithQuestion(segment, tokens) > sharedWithQuestion(*asked, tokens)))
            asked = &segment;
    return asked ? std::optional(TokenRun{asked->begin, asked->end}) : std::nullopt;
}

KeptCount keptWhole(const ViewInput& input, const PaneData& pane, const std::vector<TokenRun>& hits) {
    KeptCount count;
    for (const TokenRun& hit : hits) {
        if (hit.end > pane.result->visible) continue;
        ++count.of;
        count.kept += keptAmong(input, pane, tokensOf({hit})).kept == hit.end - hit.begin;
    }
    return count;
}

std::string textOf(const TokenTable& tokens, const std::vector<TokenIndex>& chosen) {
    std::string text;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i > 0 && chosen[i] != chosen[i - 1] + 1) text += '\n';
        text += tokens.textOf(chosen[i]);
    }
    return text;
}

std::vector<TokenIndex> tokensOf(const std::vector<TokenRun>& runs) {
    std::vector<TokenIndex> all;
    for (const TokenRun& run : runs)
        for (TokenIndex token = run.begin; token < run.end; ++token)
            if (all.empty() || all.back() < token) all.push_back(token);
    return all;
}

} // namespace kvscope
