// Paper against authors' code against libraries, as lists of tokens at one budget.
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/variant_diff/variant_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* source = "KeyDiff Tables 14 and 15, Compactor Tables 2 to 4, BalanceKV Table 6";
    return {choiceRow("reference", "Reference",
                      {{"first", "First variant", "the paper's or the original's, as the policy's card lists them"},
                       {"pane", "The pane", "the policy as it is set in the active pane"}},
                      Stage::Features, "What the variants are compared with.", source)};
}

/// Whether the dock is low: the legend then has two rows instead of three, and may lose an entry.
bool isLow(const Viewport& viewport) { return viewport.height < 200; }

/// Whether no label is cut.
bool fitsInTwoRows(const std::vector<LegendEntry>& legend, const Viewport& viewport) {
    const auto inOne = [&](auto begin, auto end) {
        return legendRows({begin, end}, viewport.width - 28, 2, *viewport.text) == 1;
    };
    for (auto split = legend.begin() + 1; split != legend.end(); ++split)
        if (inOne(legend.begin(), split) && inOne(split, legend.end())) return true;
    return false;
}

/// The policy's name is left out where the colours' entries need the room.
std::vector<LegendEntry> legendOf(const VariantDiffData& data, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    std::vector<LegendEntry> legend = {
        areaEntry(letteredName(data) + " at " + data.budget, policyStyle(data.policyId, viewport.theme).colour),
        {"reference", Marker::Square, theme.text2, {}, 4, true},
        {"kept by both", Marker::Square, keptByBothColour(theme), {}, 4, true},
        {"only here", Marker::Square, theme.kept, {}, 4, true},
        {"only in the reference", Marker::Square, theme.evicted, {}, 4, true}};
    if (isLow(viewport) && !fitsInTwoRows(legend, viewport)) legend.erase(legend.begin());
    return legend;
}

/// The rail under a point; its pick is the index of its list. Null beside the rails.
const RectangleItem* railAt(const VariantDiffData& data, const Scene& scene, Point at) {
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick.kind == PickId::Kind::Cell &&
                                                                 box->box.contains(at) &&
                                                                 std::cmp_less(box->pick.index, data.lists.size()))
            return box;
    return nullptr;
}

/// Names lists that hold sinks and recents alone, for the end of the sentence.
std::string nothingWords(const VariantDiffData& data) {
    std::vector<std::string> labels;
    for (const VariantList& list : data.lists)
        if (list.balancedNothing) labels.push_back("“" + list.label + "”");
    return labels.empty() ? ""
                          : fmt::format(" · nothing was balanced by {}: sinks and recents take the whole budget",
                                        fmt::join(labels, ", "));
}

std::string notesOf(const VariantDiffData& data, const VariantList& list) {
    const bool reference = data.lists.front().balancedNothing;
    return fmt::format("{}{}{}", reference ? "the reference balanced nothing" : "",
                       reference && list.balancedNothing ? "; " : "",
                       list.balancedNothing ? "the variant balanced nothing" : "");
}

class VariantDiffView final : public View {
public:
    VariantDiffView()
        : View({.id = "variant_diff",
                .name = "Variant diff",
                .summary = "Paper against authors' code against libraries: which tokens change, and why",
                .paper = "KeyDiff Tables 14 and 15, Compactor Tables 2 to 4: the same choices by their lists",
                .group = ViewGroup::Why,
                .data = "variant_diff",
                .waiting = "Running the first variant…",
                .needsPane = true},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<VariantDiffData>(input);
        return data->lists.empty() ? card().waiting
                                   : data->lists.front().error; // nothing to compare without a reference
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<VariantDiffData>(input);
        const Theme& theme = themeOf(viewport.theme);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const std::vector<LegendEntry> legend = legendOf(*data, viewport);
        const int rows = legendRows(legend, viewport.width - 28, isLow(viewport) ? 2 : 3, *viewport.text);
        drawLegend(builder, {14, 13}, viewport.width - 28, legend, theme, rows);
        drawVariantLists(builder, variantLayoutOf(builder, *data, input, 24 + kLegendPitch * (rows - 1), viewport),
                         *data, theme);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<VariantDiffData>(input);
        if (data->variants == 1)
            return fmt::format("{} has one variant only: there is nothing to compare", data->policyName);
        std::size_t most = 0, listed = 1;
        std::int64_t changed = -1;
        for (std::size_t i = 1; i < data->lists.size(); ++i)
            if (data->lists[i].error.empty() && ++listed > 0 && changeOf(*data, i).count() > changed)
                most = i, changed = changeOf(*data, i).count();
        const std::string nothing = nothingWords(*data);
        if (most == 0) return fmt::format("{} of {} variants so far{}", data->lists.size(), data->variants, nothing);
        if (changed == 0 && listed < data->variants)
            return fmt::format("{} of {} variants of {} keep the same tokens at {}; the others have no list{}", listed,
                               data->variants, data->policyName, data->budget, nothing);
        if (changed == 0)
            return fmt::format("All variants of {} keep the same tokens at {}{}", data->policyName, data->budget,
                               nothing);
        const VariantList& list = data->lists[most];
        const ListChange change = changeOf(*data, most);
        const std::string why = list.traps.empty()
                                    ? ""
                                    : fmt::format("; {} {}", list.traps.size() == 1 ? "disagreement" : "disagreements",
                                                  fmt::join(list.traps, ", "));
        return fmt::format("“{}” differs most from “{}”: {} in, {} out, Jaccard {}{}{}", list.label,
                           data->lists.front().label, formatCounted(std::ssize(change.gained), "token"),
                           formatCount(std::ssize(change.lost)), formatWithin(change.jaccard, 1, 2), why, nothing);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        std::vector<std::vector<std::string>> rows;
        const auto data = dataAs<VariantDiffData>(input);
        for (std::size_t i = 1; data && i < data->lists.size() && data->lists.front().error.empty(); ++i) {
            const VariantList& list = data->lists[i];
            if (!list.error.empty()) continue;
            const ListChange change = changeOf(*data, i);
            const auto add = [&](const std::vector<TokenIndex>& tokens, const char* side) {
                for (const TokenIndex token : tokens)
                    rows.push_back({list.label, side, std::to_string(token), tokenText(input, token), causesText(list),
                                    fmt::format("{}", fmt::join(list.traps, " ")), notesOf(*data, list)});
            };
            add(change.gained, "kept here only");
            add(change.lost, "kept by the reference only");
        }
        return tableOf({"variant", "change", "token", "text", "parameters that differ", "disagreements", "notes"},
                       std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<VariantDiffData>(input);
        const RectangleItem* rail = railAt(*data, scene, at);
        if (!rail) return {};
        const auto token =
            static_cast<TokenIndex>((at.x - rail->box.x) / rail->box.width * static_cast<double>(data->visible));
        PointFacts facts;
        facts.token = token;
        facts.rows = {{"token", quotedToken(input, token)}};
        for (const VariantList& list : data->lists)
            if (list.error.empty())
                facts.rows.emplace_back(list.label, std::ranges::binary_search(list.kept, token) ? "kept" : "evicted");
        return facts;
    }

    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                     Point at) const override {
        const auto data = dataAs<VariantDiffData>(input);
        const RectangleItem* rail = data && whyNoPicture(input, options).empty() ? railAt(*data, scene, at) : nullptr;
        if (!rail || !data->lists[rail->pick.index].error.empty()) return {};
        const ListChange change = changeOf(*data, static_cast<std::size_t>(rail->pick.index));
        std::vector<TokenIndex> changed;
        std::ranges::merge(change.gained, change.lost, std::back_inserter(changed));
        return changed;
    }
};

} // namespace

const View& variantDiffView() { return onlyOne<VariantDiffView>(); }

} // namespace kvscope
