// Searches the text of the whole prompt, because a word may span tokens, and maps the hit to tokens.
#include "app/window/actions/token_search.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace kvscope {

namespace {

std::string lowered(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::vector<TokenIndex> tokensOfBytes(const TokenTable& tokens, std::int64_t begin, std::int64_t end) {
    const auto first = std::ranges::upper_bound(tokens.offsets, begin) - tokens.offsets.begin() - 1;
    const auto last = std::ranges::lower_bound(tokens.offsets, end) - tokens.offsets.begin() - 1;
    std::vector<TokenIndex> found;
    for (auto token = first; token <= last; ++token) found.push_back(static_cast<TokenIndex>(token));
    return found;
}

} // namespace

std::vector<TokenIndex> findTokens(const TokenTable& tokens, const QString& needle, TokenIndex after) {
    const auto count = static_cast<TokenIndex>(tokens.ids.size());
    bool isNumber = false;
    const int position = needle.trimmed().remove(',').toInt(&isNumber);
    const std::string text = lowered(tokens.bytes), wanted = lowered(needle.toStdString());
    if (wanted.empty() || count == 0) return {};
    const auto from = static_cast<std::size_t>(tokens.offsets[std::clamp(after + 1, 0, count)]);
    std::size_t hit = text.find(wanted, from);
    if (hit == std::string::npos) hit = text.find(wanted);
    if (hit != std::string::npos)
        return tokensOfBytes(tokens, static_cast<std::int64_t>(hit), static_cast<std::int64_t>(hit + wanted.size()));
    if (isNumber && position >= 0 && position < count) return {position};
    return {};
}

bool selectNextSegment(Workbench& workbench, SegmentKind kind) {
    if (!workbench.capture()) return false;
    std::vector<Segment> segments;
    for (const Segment& segment : workbench.capture()->tokens().segments)
        if (segment.kind == kind) segments.push_back(segment);
    if (segments.empty()) return false;
    const auto& selected = workbench.session().selected;
    const TokenIndex after = selected.empty() ? -1 : selected.front();
    auto next = std::ranges::find_if(segments, [&](const Segment& s) { return s.begin > after; });
    if (next == segments.end()) next = segments.begin();
    std::vector<TokenIndex> tokens(static_cast<std::size_t>(next->end - next->begin));
    std::iota(tokens.begin(), tokens.end(), next->begin);
    workbench.change([&](Session& s) { select(s, tokens, std::string(segmentName(kind))); }, QObject::tr("Selection"));
    return true;
}

} // namespace kvscope
