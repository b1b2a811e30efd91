// Numbers and texts of a balancing walk: which one is shown, its current step, and the decision of a step.
#include "views/walk/walk_picture.h"

#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

std::size_t at(std::int64_t step) { return static_cast<std::size_t>(step); }

const char* signText(std::int8_t sign) { return sign > 0 ? "+" : sign < 0 ? "−" : "0"; }

std::string signedCount(std::int64_t value) { return value < 0 ? "−" + formatCount(-value) : formatCount(value); }

/// Number of signs given after so many tokens of the stream.
std::int64_t stepsAt(const WalkData& data, const BalanceWalkLog& walk, TokenIndex cursor) {
    if (arrivesToken(data)) return std::ranges::lower_bound(walk.tokens, cursor) - walk.tokens.begin();
    const TokenIndex ready = data.streaming ? *std::ranges::max_element(walk.tokens) + 1 : data.end;
    return cursor >= ready ? std::ssize(walk.tokens) : 0;
}

std::string coinSentence(const WalkData::Walk& walk, std::int64_t step) {
    const double q = walk.log->quadratic[at(step)], fair = walk.log->fairCoins[at(step)];
    std::string text = fmt::format("Q = {} against {} for fair coins", formatShort(q), formatShort(fair));
    if (walk.band.low.empty()) return text;
    const bool below = q<walk.band.low[at(step)], above = q> walk.band.high[at(step)];
    return text + (below   ? ", below their 10–90 % band"
                   : above ? ", above their 10–90 % band"
                           : ", within their 10–90 % band");
}

} // namespace

bool arrivesToken(const WalkData& data) { return data.level == 1; }

WalkNow walkNow(const WalkData& data, std::optional<TokenIndex> cursor) {
    WalkNow now;
    const TokenIndex until = cursor.value_or(std::numeric_limits<TokenIndex>::max());
    for (const WalkData::Walk& walk : data.walks) {
        const std::int64_t steps = stepsAt(data, *walk.log, until);
        if (steps == 0 && data.chosen < 0) continue;
        now.walk = &walk;
        now.steps = steps;
    }
    return now;
}

double leanOf(const BalanceWalkLog& walk, std::int64_t step) { return 1 - 2 * walk.probabilities[at(step)]; }

std::int64_t stepsOutside(const BalanceWalkLog& walk, std::int64_t steps) {
    std::int64_t outside = 0;
    for (std::int64_t step = 0; step < steps; ++step) outside += std::abs(leanOf(walk, step)) > 1 ? 1 : 0;
    return outside;
}

bool fails(const BalanceWalkLog& walk) { return std::isfinite(walk.walk.failAbove); }

std::string walkName(const WalkData& data, const BalanceWalkLog& walk) {
    return fmt::format("{} {} of {}", data.streaming ? "node" : "block", walk.place, data.what);
}

std::string walkCaption(const WalkData& data, const WalkNow& now) {
    if (!now.walk || now.steps == 0)
        return arrivesToken(data) ? "No pair has been read yet: the first one gets its sign when the cursor passes it."
                                  : fmt::format("{} runs when the tokens that it needs have been read.", data.what);
    const BalanceWalkLog& walk = *now.walk->log;
    const std::int64_t step = now.steps - 1;
    const double lean = leanOf(walk, step), u = walk.walk.uniforms[at(step)], p = walk.probabilities[at(step)];
    std::string text =
        fmt::format("Pair {} of {} (token {}): ", now.steps, now.size(), formatCount(walk.tokens[at(step)]));
    if (walk.signs[at(step)] == 0)
        text += "protected as a needle, it gets no sign.";
    else if (step == 0 && walk.walk.firstIsPlus)
        text += "the first sign is + without a draw (B3).";
    else
        text += fmt::format("yᵀη/(cR²) = {}, so p = ½ − half of it = {}{}; u = {} {} p gives {}.", formatShort(lean),
                            formatShort(p),
                            p > 1   ? ", clipped to 1"
                            : p < 0 ? ", clipped to 0"
                                    : "",
                            formatFixed(u, 3), u < p ? "<" : "≥", signText(walk.signs[at(step)]));
    return text +
           fmt::format(" Imbalance {}; {}.", signedCount(walk.imbalance[at(step)]), coinSentence(*now.walk, step));
}

std::string walkFinding(const WalkData& data, const WalkNow& now) {
    const std::string prefix = data.standIn ? "Example: " : "";
    if (!now.walk || now.steps == 0) return prefix + walkCaption(data, now);
    const BalanceWalkLog& walk = *now.walk->log;
    const auto plus = std::count(walk.signs.begin(), walk.signs.begin() + now.steps, std::int8_t{1});
    const auto minus = std::count(walk.signs.begin(), walk.signs.begin() + now.steps, std::int8_t{-1});
    const std::int64_t outside = stepsOutside(walk, now.steps);
    double largest = 0;
    for (std::int64_t step = 0; step < now.steps; ++step) largest = std::max(largest, std::abs(leanOf(walk, step)));
    std::string text = fmt::format("{}{}, {} of {} pairs: {} + and {} −; {}", prefix, walkName(data, walk), now.steps,
                                   now.size(), plus, minus, coinSentence(*now.walk, now.steps - 1));
    if (outside > 0)
        return text + fmt::format("; p leaves [0, 1] on {} steps and is clipped: there the sign is certain", outside);
    return text + fmt::format("; largest |yᵀη|/(cR²) {}{}", formatShort(largest),
                              largest < 1e-3 ? ": the signs are fair coins (B1)" : "");
}

PointFacts stepFacts(const ViewInput& input, const WalkNow& now, std::int64_t step) {
    PointFacts facts;
    if (!now.walk || step < 0 || step >= now.size()) return facts;
    const BalanceWalkLog& walk = *now.walk->log;
    facts.token = walk.tokens[at(step)];
    facts.rows = {{"step", fmt::format("{} of {} (0-based)", step, now.size())},
                  {"token", fmt::format("{}  \"{}\"", formatCount(facts.token), tokenText(input, facts.token))}};
    if (step >= now.steps) {
        facts.rows.emplace_back("sign", "not yet");
        return facts;
    }
    facts.rows.emplace_back("yᵀη/(cR²)", formatShort(leanOf(walk, step)));
    facts.rows.emplace_back("p", formatShort(walk.probabilities[at(step)]));
    facts.rows.emplace_back("u", formatFixed(walk.walk.uniforms[at(step)], 4));
    facts.rows.emplace_back("sign η", signText(walk.signs[at(step)]));
    facts.rows.emplace_back("imbalance", signedCount(walk.imbalance[at(step)]));
    facts.rows.emplace_back("Q", formatShort(walk.quadratic[at(step)]));
    facts.rows.emplace_back("fair coins expect", formatShort(walk.fairCoins[at(step)]));
    if (!now.walk->band.low.empty())
        facts.rows.emplace_back("coins, 10–90 %", formatShort(now.walk->band.low[at(step)]) + " – " +
                                                      formatShort(now.walk->band.high[at(step)]));
    return facts;
}

std::vector<std::string> stepCells(const ViewInput& input, const WalkData::Walk& shown, std::int64_t step) {
    const BalanceWalkLog& walk = *shown.log;
    const std::size_t i = at(step);
    const auto inBand = [&](const auto& ends) { return ends.empty() ? "" : tableNumber(ends[i]); };
    return tableRow(step, walk.tokens[i], tokenText(input, walk.tokens[i]), walk.walk.uniforms[i], walk.products[i],
                    leanOf(walk, step), walk.probabilities[i], std::to_string(walk.signs[i]), walk.imbalance[i],
                    walk.quadratic[i], walk.fairCoins[i], inBand(shown.band.low), inBand(shown.band.high));
}

} // namespace kvscope
