// One balancing walk, step by step: the sum that decides, the sign, and the growth of the signed sum.
#include "core/parameters/parameter_rows.h"
#include "core/policies/policy.h"
#include "views/common/balance_words.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/walk/walk_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    const char* paper = "BalanceKV Algorithm 2";
    return {
        choiceRow("show", "Show", {{"walk", "Walk", "y, signs and Q"}, {"kernel", "Kernel matrix", "M as a heat map"}},
                  Stage::Select, "What is drawn.", paper),
        integerRow("level", "Round or level", "", "", {1, 20, 1}, Stage::Features,
                   "Round of the blocked algorithm; level that a node of the streaming one moves into; from 1.", paper),
        integerRow("block", "Block", "", "", {-1, 100'000, -1}, Stage::Features,
                   "Block of the round, node of the level, from 0; −1: the one at the cursor, or the last.", paper),
        balanceTreeOption("Whose walks, in the streaming form."),
        octaveOption(),
        integerRow("coins", "Coin runs", "", "", {0, 400, 60}, Stage::Features,
                   "Runs of fair coins on the same kernel for the 10–90 % band; 0: none.", "BalanceKV Algorithm 2"),
        choiceRow("scale", "Kernel colours",
                  {{"root", "Signed root", "lifts small entries"}, {"linear", "Linear", "in proportion"}},
                  Stage::Select, "Of the heat map.", "diverging for signed values"),
        valueRangeOption([](std::string_view text) {
            constexpr std::array<std::string_view, 1> known{"kernel"};
            checkValueRange(text, known, "the walk");
        })};
}

std::vector<LegendEntry> legendOf(const WalkData& data, const WalkNow& now, const Theme& theme, Colour policy) {
    const std::int64_t outside = now.walk ? stepsOutside(*now.walk->log, now.steps) : 0;
    std::vector<LegendEntry> legend = {barEntry("Q of this walk", policy),
                                       lineEntry("fair coins: E[Q] = Σ Mⱼⱼ", {theme.control, 1.4, {5, 3}})};
    if (now.walk && !now.walk->band.low.empty())
        legend.push_back(markEntry(fmt::format("10–90 % of {} coin runs, seed {}", data.coinRuns, data.seed),
                                   Marker::Square, withAlpha(theme.control, 0.28), 5, {theme.axis, 1, {}}));
    if (outside > 0)
        legend.push_back(markEntry(fmt::format("p outside [0, 1]: {} of {}, {}", outside, now.steps,
                                               fails(*now.walk->log) ? "FAIL" : "sign certain"),
                                   Marker::TriangleUp, theme.error, 4));
    return legend;
}

/// Names the line of the upper row in the legend, since low plots have no axis title; shorter where the whole name
/// would take a row from a low plot.
void nameLean(std::vector<LegendEntry>& legend, const Viewport& viewport, const Theme& theme) {
    constexpr double kFurtherRows = 220; ///< from this height on there is room for rows
    const auto rowsOf = [&](const std::vector<LegendEntry>& entries) {
        return legendRows(entries, viewport.width - 20, 2, *viewport.text);
    };
    std::vector<LegendEntry> longer = legend;
    longer.insert(longer.begin(), lineEntry("yᵀη / (cR²) = 1 − 2p", {theme.text1, 1.3, {}}));
    if (viewport.height < kFurtherRows && rowsOf(longer) > rowsOf(legend)) longer.front().label = "yᵀη / (cR²)";
    legend = std::move(longer);
}

class WalkView final : public View {
public:
    WalkView()
        : View({.id = "walk",
                .name = "Self-balancing walk",
                .summary = "How BalanceKV signs one block, against fair coins",
                .paper = "BalanceKV Algorithm 2, Theorem 3.3",
                .group = ViewGroup::Algorithm,
                .needs = {{"octave", {{"tree", {"octave"}}}},
                          {"coins", {{"show", {"walk"}}}},
                          {"scale", {{"show", {"kernel"}}}},
                          {kValueRangeOption, {{"show", {"kernel"}}}}},
                .data = "walk",
                .teaching = TeachingRole::DetailFirst,
                .leastHeight = 200},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        if (const std::string why = whyNoData(input, "BalanceKV signs the prompt…"); !why.empty()) return why;
        return dataAs<WalkData>(input)->whyNone;
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<WalkData>(input);
        const WalkNow now = walkNow(*data, input.cursor);
        const bool kernel = options.choice("show") == "kernel";
        if (!now.walk) return emptyScene(walkCaption(*data, now), viewport);
        if (kernel && now.walk->kernel.empty())
            return emptyScene(data->whyNoKernel.empty() ? "Computing the kernel…" : data->whyNoKernel + ".", viewport);
        const Theme& theme = themeOf(viewport.theme);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const Colour policy = policyStyle(firstOf(PolicyFamily::BalanceRounds), viewport.theme).colour;
        std::vector<LegendEntry> legend;
        if (!kernel) {
            legend = legendOf(*data, now, theme, policy);
            nameLean(legend, viewport, theme);
        }
        const double top =
            28 + (data->standIn ? kStandInRow : 0) + (kernel ? -14 : furtherLegendRows(viewport, legend));
        const WalkPicture picture{input, *data, now, viewport, theme, policy, top};
        drawBalanceLegend(builder, viewport, legend, *data, "No pane runs BalanceKV");
        if (kernel)
            paintKernel(builder, picture, KernelScale(*now.walk, options));
        else
            paintWalk(builder, picture);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<WalkData>(input);
        return walkFinding(*data, walkNow(*data, input.cursor));
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        std::vector<std::vector<std::string>> rows;
        const WalkNow now =
            whyNoPicture(input, options).empty() ? walkNow(*dataAs<WalkData>(input), input.cursor) : WalkNow{};
        for (std::int64_t step = 0; now.walk && step < now.steps; ++step)
            rows.push_back(stepCells(input, *now.walk, step));
        return tableOf({"step", "token", "text", "u", "y", "1 - 2p", "p", "sign", "imbalance", "Q", "sum of M_jj",
                        "coins 10 %", "coins 90 %"},
                       std::move(rows));
    }

    StepSequence stepSequence(const ViewInput& input, const ParameterValues& options) const override {
        StepSequence sequence;
        if (!whyNoPicture(input, options).empty()) return sequence;
        const auto data = dataAs<WalkData>(input);
        sequence.title = "Self-balancing walk";
        for (const WalkData::Walk& walk : data->walks) {
            const std::vector<TokenIndex>& tokens = walk.log->tokens;
            const TokenIndex end = *std::ranges::max_element(tokens) + 1;
            if (arrivesToken(*data))
                for (const TokenIndex token : tokens) sequence.events.push_back(token + 1);
            else
                sequence.events.push_back(data->streaming ? end : data->end);
            sequence.milestones.push_back(sequence.events.back());
        }
        for (auto* list : {&sequence.events, &sequence.milestones}) {
            std::ranges::sort(*list);
            list->erase(std::unique(list->begin(), list->end()), list->end());
        }
        return sequence;
    }

    std::string caption(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<WalkData>(input);
        return walkCaption(*data, walkNow(*data, input.cursor));
    }

    std::unique_ptr<const ColourScale> colourScale(const ViewInput& input,
                                                   const ParameterValues& options) const override {
        if (options.choice("show") != "kernel" || !whyNoPicture(input, options).empty()) return nullptr;
        const WalkNow now = walkNow(*dataAs<WalkData>(input), input.cursor); // the input keeps its data alive
        return now.walk && !now.walk->kernel.empty() ? std::make_unique<const KernelScale>(*now.walk, options)
                                                     : nullptr;
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        if (pickAt(scene, at, 0).kind != PickId::Kind::Cell) return {};
        const auto data = dataAs<WalkData>(input);
        const WalkNow now = walkNow(*data, input.cursor);
        const double along = scene.dataAt(at).x;
        PointFacts facts = stepFacts(input, now, static_cast<std::int64_t>(along));
        if (options.choice("show") != "kernel" || !now.walk || now.walk->kernel.empty()) return facts;
        const auto cell = [&](double share) {
            return std::clamp<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(now.walk->side)), 0,
                                            now.walk->side - 1);
        };
        const std::int64_t column = cell((at.x - scene.plot.x) / scene.plot.width),
                           row = cell((at.y - scene.plot.y) / scene.plot.height);
        const bool pooled = now.walk->side < now.size();
        facts.rows.emplace_back(pooled ? "M, largest of the cell" : fmt::format("M with pair {}", row),
                                formatShort(now.walk->kernel[row * now.walk->side + column]));
        return facts;
    }

    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                     Point at) const override {
        const TokenIndex token = factsAt(input, options, scene, at).token;
        return token < 0 ? std::vector<TokenIndex>() : std::vector<TokenIndex>{token};
    }
};

std::size_t at(std::int64_t step) { return static_cast<std::size_t>(step); }

const char* signText(std::int8_t sign) { return sign > 0 ? "+" : sign < 0 ? "−" : "0"; }

std::string signedCount(std::int64_t value) { return value < 0 ? "−" + formatCount(-value) : formatCount(value); }

/// Number of signs given after so many tokens of the stream.
std::int64_t stepsAt(const WalkData& data, const BalanceWalkLog& walk, TokenIndex cursor) {
    if (arrivesToken(data)) return std::ranges::lower_bound(walk.tokens, cursor) - walk.tokens.begin();
    const TokenIndex ready = data.streaming ? *std::ranges::max_element(walk.tokens) + 1 : data.end;
    return cursor >= ready ? std::ssize(walk.tokens) : 0;
}

std::string withDigits(double value, int digits) {
    if (value == 0) return formatShort(value);
    int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
    if (std::abs(value) / std::pow(10, exponent) >= 10 - 0.5 * std::pow(10, 1 - digits)) ++exponent; // rounds to 10
    if (exponent >= -4 && exponent < 6) return formatFixed(value, std::max(0, digits - 1 - exponent));
    return formatFixed(value / std::pow(10, exponent), digits - 1) + (exponent < 0 ? "e−" : "e") +
           std::to_string(std::abs(exponent));
}

/// Both numbers in a few digits; in as many as tell them apart, where seven do.
std::pair<std::string, std::string> toldApart(double a, double b) {
    std::pair text{formatShort(a), formatShort(b)};
    if (text.first != text.second) return text;
    for (int digits = 3; digits <= 7; ++digits)
        if (std::pair longer{withDigits(a, digits), withDigits(b, digits)}; longer.first != longer.second)
            return longer;
    return text;
}

std::string coinSentence(const WalkData::Walk& walk, std::int64_t step) {
    const double q = walk.log->quadratic[at(step)], fair = walk.log->fairCoins[at(step)];
    const auto [own, coins] = toldApart(q, fair);
    std::string text = fmt::format("Q = {} against {} for fair coins", own, coins);
    if (walk.band.low.empty()) return text;
    constexpr double kRounding = 1e-12; // all walks have the same Q after one pair, but not the same roundings of it
    const double slack = kRounding * fair;
    const bool below = q<walk.band.low[at(step)] - slack, above = q> walk.band.high[at(step)] + slack;
    return text + (below   ? ", below their 10–90 % band"
                   : above ? ", above their 10–90 % band"
                           : ", within their 10–90 % band");
}

} // namespace

const View& walkView() { return onlyOne<WalkView>(); }

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
