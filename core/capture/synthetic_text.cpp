// The words of a synthetic prompt. Each sentence uses the words of its cluster's topic, so that clusters are visible as
// text; the needle states a code, the question asks for it and the answer gives it.
#include "core/capture/synthetic_text.h"

#include "core/base/error.h"
#include "core/base/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace kvscope {

namespace {

enum Draw : std::uint32_t { ClusterDraw = 101, WordDraw, DigitDraw };

constexpr std::array<std::array<std::string_view, 8>, 8> kTopics = {{
    {" river", " water", " bridge", " stream", " boat", " fish", " shore", " rain"},
    {" garden", " rose", " seed", " soil", " bee", " leaf", " apple", " hedge"},
    {" engine", " valve", " piston", " gear", " fuel", " belt", " spark", " wheel"},
    {" letter", " paper", " ink", " stamp", " word", " page", " book", " script"},
    {" star", " moon", " orbit", " comet", " planet", " night", " lens", " sky"},
    {" bread", " flour", " oven", " salt", " yeast", " crust", " table", " knife"},
    {" market", " price", " coin", " trade", " cloth", " scale", " debt", " ship"},
    {" mountain", " snow", " stone", " ridge", " goat", " pine", " cave", " wind"},
}};
constexpr std::array<std::string_view, 7> kGlue = {" the", " of", " and", " near", " with", " under", " was"};
constexpr std::array<std::string_view, 14> kNeedle = {" The", " secret", " code", " of", " the", " garden",  " is",
                                                      " #d",  "#d",      "#d",    "#d",  "#d",   " exactly", "."};
constexpr std::array<std::string_view, 20> kQuestion = {
    "\n",      "Question", ":",       " What", " is",  " the",  " secret", " code", " of",     " the",
    " garden", "?",        " Answer", ":",     " The", " code", " of",     " the",  " garden", " is"};
constexpr std::array<std::string_view, 6> kAnswer = {" #d", "#d", "#d", "#d", "#d", "."};

double draw(const SyntheticSpec& spec, Draw what, std::int64_t place) {
    return uniformAt({.seed = spec.seed, .round = what, .token = static_cast<std::uint32_t>(place)});
}

int drawBelow(const SyntheticSpec& spec, Draw what, std::int64_t place, int count) {
    return static_cast<int>(draw(spec, what, place) * count);
}

// "#d" stands for a digit of the code, which depends on the seed.
std::string spelled(const SyntheticSpec& spec, std::string_view pattern, int& digitsSoFar) {
    const std::size_t mark = pattern.find("#d");
    if (mark == std::string_view::npos) return std::string(pattern);
    const int digit = drawBelow(spec, DigitDraw, digitsSoFar++ % 5, 10);
    return std::string(pattern.substr(0, mark)) + std::to_string(digit);
}

std::string narrativeWord(const SyntheticSpec& spec, std::int64_t token) {
    const std::int64_t place = token % kSentenceTokens;
    if (place == kSentenceTokens - 1) return ".";
    if (place == 0) return " The";
    if (place % 2 == 0) return std::string(kGlue[drawBelow(spec, WordDraw, token, kGlue.size())]);
    const auto& topic = kTopics[static_cast<std::size_t>(clusterOf(spec, token)) % kTopics.size()];
    return std::string(topic[drawBelow(spec, WordDraw, token, topic.size())]);
}

// Equal texts get the same id, as in a vocabulary.
std::int32_t idOf(std::string_view word) {
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return static_cast<std::int32_t>(hash % 50'000u) + 1;
}

class TokenList {
public:
    explicit TokenList(TokenTable& table) : m_table(table) { m_table.offsets.push_back(0); }
    std::int64_t size() const { return static_cast<std::int64_t>(m_table.ids.size()); }
    void add(const std::string& word) {
        m_table.positions.push_back(size());
        m_table.ids.push_back(size() == 0 ? 0 : idOf(word));
        m_table.bytes += word;
        m_table.offsets.push_back(static_cast<std::int64_t>(m_table.bytes.size()));
    }

private:
    TokenTable& m_table;
};

void require(bool holds, const char* sentence, const char* field, const std::string& remedy) {
    if (!holds) throw Error({sentence, field, remedy});
}

} // namespace

std::int64_t fewestTokens(const SyntheticSpec& spec) {
    const std::int64_t asked = spec.needleLength > 0 ? std::int64_t{kQuestion.size() + kAnswer.size()} : 0;
    return spec.sinks + spec.needleLength + asked + 1;
}

SyntheticPlan planOf(const SyntheticSpec& spec) {
    if (spec.needleLength == 0) return {spec.tokens, spec.tokens, spec.tokens, spec.tokens, spec.tokens};
    SyntheticPlan plan;
    plan.answerEnd = spec.tokens;
    plan.questionEnd = plan.answerEnd - static_cast<std::int64_t>(kAnswer.size());
    plan.contextEnd = plan.questionEnd - static_cast<std::int64_t>(kQuestion.size());
    const std::int64_t latest = plan.contextEnd - spec.needleLength;
    const std::int64_t usual = std::max<std::int64_t>(spec.sinks, spec.tokens * 45 / 100);
    plan.needleBegin = spec.needleBegin >= 0 ? spec.needleBegin : std::min(latest, usual);
    plan.needleEnd = plan.needleBegin + spec.needleLength;
    return plan;
}

int clusterOf(const SyntheticSpec& spec, std::int64_t token) {
    return drawBelow(spec, ClusterDraw, token / kSentenceTokens, std::max(1, spec.clusters));
}

void checkSpec(const SyntheticSpec& spec) {
    require(spec.tokens >= 1 && spec.tokens <= (std::int64_t{1} << 24), "the number of tokens is out of range",
            "--tokens", "Give 1 to 16777216");
    require(spec.layers >= 1 && spec.layers <= 1000, "the number of layers is out of range", "--layers",
            "Give 1 to 1000");
    require(spec.kvHeads >= 1 && spec.kvHeads <= 1024, "the number of KV heads is out of range", "--kv-heads",
            "Give 1 to 1024");
    require(spec.queryHeads >= 1 && spec.queryHeads <= 4096 && spec.queryHeads % spec.kvHeads == 0,
            "query heads do not divide among the KV heads", "--q-heads",
            fmt::format("Give a multiple of {}", spec.kvHeads));
    require(spec.headDim >= 4 && spec.headDim <= 4096 && spec.headDim % 2 == 0, "the head dimension is out of range",
            "--head-dim", "Give an even number from 4 to 4096");
    require(spec.clusters >= 0 && spec.clusters <= 10'000, "the number of clusters is out of range", "--clusters",
            "Give 0 (none) to 10000");
    require(spec.sinks >= 0, "the number of sinks is negative", "--sinks", "Give 0 or more");
    require(spec.needleLength >= 0, "the length of the needle is negative", "--needle-length", "Give 0 for none");
    const bool asks = spec.needleLength > 0;
    require(spec.tokens >= fewestTokens(spec),
            asks ? "the prompt is too short for its sinks, needle, question and answer"
                 : "the prompt is too short for its sinks and a token after them",
            "--tokens",
            fmt::format("Give at least {}, or {}{}", fewestTokens(spec), asks ? "--needle-length 0" : "fewer --sinks",
                        asks && spec.tokens <= spec.sinks ? fmt::format(" and at least {}", spec.sinks + 1) : ""));
    const SyntheticPlan plan = planOf(spec);
    require(spec.needleLength == 0 || (plan.needleBegin >= spec.sinks && plan.needleEnd <= plan.contextEnd),
            "the needle does not fit between the sinks and the question", "--needle-begin",
            fmt::format("Give {} to {}", spec.sinks, plan.contextEnd - spec.needleLength));
    require(spec.collinearity >= 0 && spec.collinearity < 1, "the collinearity is out of range", "--collinearity",
            "Give 0 up to, not including, 1");
    require(spec.queryWindow >= 0 && spec.queryWindow <= spec.tokens, "the query window is larger than the prompt",
            "--q-window", "Give at most the number of tokens");
}

TokenTable syntheticTokens(const SyntheticSpec& spec) {
    checkSpec(spec);
    const SyntheticPlan plan = planOf(spec);
    TokenTable table;
    TokenList list(table);
    list.add("<|bos|>");
    int needleDigits = 0, answerDigits = 0;
    while (list.size() < spec.tokens) {
        const std::int64_t t = list.size();
        if (t >= plan.questionEnd)
            list.add(spelled(spec, kAnswer[t - plan.questionEnd], answerDigits));
        else if (t >= plan.contextEnd)
            list.add(std::string(kQuestion[t - plan.contextEnd]));
        else if (t >= plan.needleBegin && t < plan.needleEnd)
            list.add(
                spelled(spec, kNeedle[static_cast<std::size_t>(t - plan.needleBegin) % kNeedle.size()], needleDigits));
        else
            list.add(narrativeWord(spec, t));
    }
    const auto segment = [&](std::int64_t begin, std::int64_t end, SegmentKind kind) {
        table.segments.push_back({static_cast<TokenIndex>(begin), static_cast<TokenIndex>(end), kind});
    };
    segment(0, plan.contextEnd, SegmentKind::Context);
    if (spec.needleLength > 0) {
        segment(plan.needleBegin, plan.needleEnd, SegmentKind::Needle);
        segment(plan.contextEnd, plan.questionEnd, SegmentKind::Question);
        segment(plan.questionEnd, plan.answerEnd, SegmentKind::Answer);
    }
    return table;
}

} // namespace kvscope
