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
        choiceRow("tree", "Tree",
                  {{"keys", "Denominator", "all keys, values of 1"},
                   {"fullest", "Fullest octave", "the octave of value norms with the most tokens"},
                   {"octave", "One octave", "the one numbered below"}},
                  Stage::Features, "Whose walks, in the streaming form.", "BalanceKV Algorithm 1"),
        integerRow("octave", "Octave", "", "", {-150, 128, 0}, Stage::Features,
                   "i of 2^(i−1) < ‖v‖ ≤ 2^i; read when the tree is one octave.", "BalanceKV Algorithm 1"),
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

/// Names the upper line where there is room: low plots have no axis title.
void nameLean(std::vector<LegendEntry>& legend, const Viewport& viewport, const Theme& theme) {
    constexpr double kFurtherRows = 220; ///< from this height on there is room for rows
    std::vector<LegendEntry> longer = legend;
    longer.insert(longer.begin(), lineEntry("yᵀη / (cR²) = 1 − 2p", {theme.text1, 1.3, {}}));
    if (viewport.height >= kFurtherRows || legendRows(longer, viewport.width - 20, 2, *viewport.text) == 1)
        legend = std::move(longer);
}

void drawHead(SceneBuilder& builder, const WalkPicture& p, const std::vector<LegendEntry>& legend) {
    const TextStyle note{FontFace::Interface, 11};
    const double room = p.viewport.width - 20;
    double y = 13;
    if (p.data.standIn) {
        const std::string words = standInWords("No pane runs BalanceKV", p.data.source, [&](const std::string& text) {
            return builder.width(text, note) <= room;
        });
        builder.label({10, y}, builder.elide(words, note, room), note, p.theme.warning);
        y += 18;
    }
    drawTopLegend(builder, p.viewport, legend, 10, y);
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
        const double top = (data->standIn ? 46 : 28) + (kernel ? -14 : furtherLegendRows(viewport, legend));
        const WalkPicture picture{input, *data, now, viewport, theme, policy, top};
        drawHead(builder, picture, legend);
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

    std::string explainedPolicy(const ViewInput& input) const override {
        const auto data = dataAs<WalkData>(input);
        return data ? data->policy : std::string();
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
        const WalkNow now = walkNow(*dataAs<WalkData>(input), input.cursor); // of data that the input holds
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

} // namespace

const View& walkView() { return onlyOne<WalkView>(); }

} // namespace kvscope
