// Resolves a cut as typed to a token index. Refuses cuts that leave no token before or no evaluation query after them.
#include "core/capture/cut.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/capture/capture.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>

namespace kvscope {

namespace {

constexpr const char* kForms = "Give segment:context, segment:question, last:256, a token number, none or default";

[[noreturn]] void refuse(const std::string& typed, const std::string& why, const std::string& remedy,
                         const CaptureReader& capture) {
    throw Error({"cut '" + typed + "' " + why, "cut", remedy, capture.info().path});
}

std::optional<std::int64_t> wholeNumber(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status == std::errc::result_out_of_range) return std::numeric_limits<std::int64_t>::max();
    if (status != std::errc{} || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
    return value;
}

/// Of the segments of a kind that end after `after`, the one that begins first; or null.
const Segment* firstOf(const std::vector<Segment>& segments, SegmentKind kind, TokenIndex after = 0) {
    const Segment* first = nullptr;
    for (const Segment& segment : segments)
        if (segment.kind == kind && segment.end > after && (!first || segment.begin < first->begin)) first = &segment;
    return first;
}

const Segment* contextOf(const std::vector<Segment>& segments) {
    const Segment* question = firstOf(segments, SegmentKind::Question);
    const Segment* context = nullptr;
    for (const Segment& segment : segments) {
        const bool counts = segment.kind == SegmentKind::Context && (!question || segment.begin < question->begin);
        if (counts && (!context || segment.begin > context->begin)) context = &segment;
    }
    return context;
}

const Segment* segmentOf(const std::vector<Segment>& segments, SegmentKind kind) {
    const Segment* context = contextOf(segments);
    if (kind == SegmentKind::Context) return context;
    if (kind == SegmentKind::Question && context) return firstOf(segments, kind, context->end);
    return firstOf(segments, kind);
}

std::string namesOf(const std::vector<Segment>& segments) {
    std::string names;
    for (const SegmentKind kind : kSegmentKinds)
        if (firstOf(segments, kind)) names += (names.empty() ? "" : ", ") + std::string(segmentName(kind));
    return names.empty() ? "none" : names;
}

/// "32,742": labels are read beside counts that are written so.
std::string withThousands(std::int64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

Cut atToken(const std::string& typed, std::int64_t token, const std::string& label, const CaptureReader& capture) {
    const std::int64_t n = capture.info().numTokens;
    const std::string none = "'none' to evaluate on the last queries, which the policy then has seen";
    const std::string range = n < 2 ? "Give " + none : "Give a token from 1 to " + std::to_string(n - 1);
    if (token < 1) refuse(typed, "leaves nothing to see: it lies at or before token 0", range, capture);
    if (token > n) refuse(typed, "lies outside the capture of " + std::to_string(n) + " tokens", range, capture);
    if (token == n)
        refuse(typed, "leaves no evaluation queries: it lies at the end of the capture, token " + std::to_string(n),
               n < 2 ? range : range + ", or " + none, capture);
    return {typed, static_cast<TokenIndex>(token), false, label + withThousands(token)};
}

Cut atSegment(const std::string& typed, const std::string& name, const CaptureReader& capture) {
    const std::vector<Segment>& segments = capture.tokens().segments;
    const auto kind = segmentKindNamed(name);
    if (!kind) {
        std::vector<std::string> known;
        for (const SegmentKind candidate : kSegmentKinds) known.emplace_back(segmentName(candidate));
        refuse(typed, "names no kind of segment", suggestName(name, known), capture);
    }
    const Segment* segment = segmentOf(segments, *kind);
    if (!segment)
        refuse(typed, "finds no such segment in the capture; it has: " + namesOf(segments),
               "Give last:256 or a token number", capture);
    return atToken(typed, segment->end, "end of " + name + ", ", capture);
}

Cut noCut(const std::string& typed, const CaptureReader& capture) {
    const auto n = static_cast<TokenIndex>(capture.info().numTokens);
    return {typed, n, true, "none, all " + withThousands(n) + " tokens seen"};
}

Cut lastTokens(const std::string& typed, std::int64_t count, const CaptureReader& capture) {
    return atToken(typed, capture.info().numTokens - std::max<std::int64_t>(count, 0),
                   "before the last " + withThousands(count) + ": ", capture);
}

Cut defaultCut(const CaptureReader& capture) {
    const std::int64_t n = capture.info().numTokens;
    const Segment* context = contextOf(capture.tokens().segments);
    if (context && context->end < n) return atToken("default", context->end, "end of context, ", capture);
    return n < 2 ? noCut("default", capture) : lastTokens("default", std::min<std::int64_t>(256, n / 2), capture);
}

} // namespace

Cut Cut::resolve(const std::string& text, const CaptureReader& capture) {
    if (text == "default") return defaultCut(capture);
    if (text == "none") return noCut(text, capture);
    const std::size_t colon = text.find(':');
    const std::string form = text.substr(0, colon);
    const std::string rest = colon == std::string::npos ? std::string() : text.substr(colon + 1);
    if (colon != std::string::npos && form == "segment") return atSegment(text, rest, capture);
    if (colon != std::string::npos && form == "last") {
        if (const auto count = wholeNumber(rest)) return lastTokens(text, *count, capture);
        refuse(text, "does not say how many of the last tokens evaluate", "Give, for example, last:256", capture);
    }
    if (const auto token = wholeNumber(text)) return atToken(text, *token, "token ", capture);
    refuse(text, "has no form that is known", kForms, capture);
}

} // namespace kvscope
