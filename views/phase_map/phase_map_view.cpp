// A measure over two parameters of a policy: where a setting matters and where another policy becomes better. A click
// on a cell sets both parameters.
#include "core/parameters/parameter_rows.h"
#include "core/policies/balance/balance_rounds.h"
#include "views/common/measure_options.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/phase_map/phase_painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr const char* kSource = "KeyDiff Tables 9 to 13, BalanceKV Fig. 3, Compactor 3.4";

void checkRange(std::string_view text) {
    static const std::vector<ParameterChoice> measures = measureChoices();
    checkValueRange(text, idsOf(measures), "the phase map");
}

ParameterTable makeOptions() {
    return {textRow("x", "Across", "", Stage::Features,
                    "Parameter of the horizontal axis, as id or id=v1,v2; empty: the budget.", kSource, nullptr,
                    kParameterUnit),
            textRow("y", "Upwards", "", Stage::Features,
                    "Parameter of the vertical axis, as id or id=v1,v2; empty: the policy's first number.", kSource,
                    nullptr, kParameterUnit),
            choiceRow("colour", "Colour",
                      {{"measure", "Measure", "of the active pane's policy"},
                       {"winner", "Winner", "the pane that does best there"}},
                      Stage::Features, "What a cell shows.", kSource),
            choiceRow("measure", "Measure", measureChoices(), Stage::Features, "What is measured.", kSource),
            choiceRow("heads", "Heads",
                      {{"kv_head", "This KV head", "with the query heads that read it"},
                       {"layer", "The layer", "all query heads"}},
                      Stage::Features, "Over which heads the mean runs.", kSource),
            integerRow("grid", "Grid", "", "", {2, 24, 8}, Stage::Features, "Values along each axis.", "the map's own"),
            colourMapOption(),
            valueRangeOption(checkRange)};
}

std::string measureWords(const PhaseMapData& data) { return measureWords(measureById(data.measure)); }

std::string valueText(const PhaseMapData& data, double value) {
    return formatShort(value) + unitBehind(measureById(data.measure).unit);
}

/// "budget", "sliding window w": as the axis is called within a sentence, without its unit.
std::string nameOf(const PhaseAxis& axis) { return uncapitalised(axis.title.substr(0, axis.title.find(','))); }

std::int64_t tiesOf(const PhaseMapData& data) {
    return std::ranges::count_if(
        data.cells, [&](const PhaseCell& cell) { return cell.computed && data.winner(cell) == PhaseMapData::kTie; });
}

/// For winners: the panes with their colours. For a measure: its pane in words, since cells have the colours of values.
std::vector<LegendEntry> legendOf(const PhaseMapData& data, const ViewInput& input, const Theme& theme) {
    std::vector<LegendEntry> legend;
    const auto add = [&](const std::string& words) { legend.push_back(wordsEntry(words)); };
    if (data.winners) {
        for (const PaneName& pane : data.panes)
            legend.push_back(identityOf(input, pane, theme.id).legend(letteredName(pane)));
        if (tiesOf(data) > 0) legend.push_back({"= tie", Marker::Square, theme.sunken, {theme.axis, 1, {}}, 5});
        add(fmt::format("best pane by {}, {}", measureWords(data), data.where));
    } else {
        add(fmt::format("{}, {}, {}", letteredName(data.panes.front()), measureWords(data), data.where));
    }
    if (phasePresentPlace(data, input))
        legend.push_back({"now", Marker::Circle, kTransparent, {theme.ink, 1.6, {}}, 4});
    return legend;
}

/// Legend and layout; an axis name without room moves into the legend.
std::pair<std::vector<LegendEntry>, PhaseLayout> arrange(const PhaseMapData& data, const ViewInput& input,
                                                         const Viewport& viewport) {
    std::vector<LegendEntry> legend = legendOf(data, input, themeOf(viewport.theme));
    PhaseLayout layout = phaseLayoutOf(data, legend, viewport);
    if (!layout.titles || viewport.text->measure(data.y.title, kPhaseTitle).width > layout.grid.height) {
        legend.push_back(wordsEntry(fmt::format("across: {}, up: {}", nameOf(data.x), nameOf(data.y))));
        layout = phaseLayoutOf(data, legend, viewport);
    }
    return {std::move(legend), layout};
}

/// "budget 90 %, sliding window w 0.13".
std::string settingOf(const PhaseMapData& data, std::size_t cell) {
    const std::size_t across = data.x.texts.size();
    return fmt::format("{} {}, {} {}", nameOf(data.x), data.x.label(cell % across), nameOf(data.y),
                       data.y.label(cell / across));
}

std::string winnersText(const PhaseMapData& data) {
    std::vector<std::size_t> wins(data.panes.size(), 0);
    const std::int64_t ties = tiesOf(data);
    auto counted = static_cast<std::size_t>(ties);
    for (const PhaseCell& cell : data.cells)
        if (const int winner = cell.computed ? data.winner(cell) : -1; winner >= 0) {
            ++wins[winner];
            ++counted;
        }
    std::string text;
    for (std::size_t i = 0; i < wins.size(); ++i)
        text += fmt::format("{}{} wins {}", text.empty() ? "" : ", ", letteredName(data.panes[i]), wins[i]);
    if (ties > 0) text += fmt::format(", tied {}", ties);
    return fmt::format("{} of {} settings", text, counted);
}

SettingChange settingChangeOf(const PhaseMapData& data, std::size_t cell) {
    SettingChange settingChange;
    settingChange.pane = data.activePane;
    const std::size_t x = cell % data.x.texts.size(), y = cell / data.x.texts.size();
    for (const auto& [axis, text] : {std::pair(&data.x, data.x.texts[x]), std::pair(&data.y, data.y.texts[y])}) {
        if (axis->id == "budget")
            settingChange.budget = Budget::parse(text);
        else
            settingChange.values.emplace_back(axis->id, text);
    }
    return settingChange;
}

std::vector<OptionNeed> optionNeeds() {
    const OptionIs shaded{"colour", {"measure"}};
    return {{"colours", {shaded}},
            {"colours", {{"measure", choicesBut(makeOptions(), "measure", signedMeasures())}}},
            {kValueRangeOption, {shaded}}};
}

class PhaseMapView final : public View {
public:
    PhaseMapView()
        : View({.id = "phase_map",
                .name = "Phase map",
                .summary = "Two parameters against each other, coloured by a measure or by the winning pane",
                .paper = "KeyDiff Tables 9, 10, 12, 13; BalanceKV Fig. 3; Compactor 3.4",
                .group = ViewGroup::Cost,
                .needs = optionNeeds(),
                .data = "phase_map",
                .waiting = "Running the first setting…",
                .needsPane = true},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        return dataAs<PhaseMapData>(input)->cells.empty() ? card().waiting : "";
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<PhaseMapData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const auto [legend, layout] = arrange(*data, input, viewport);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        drawTopLegend(builder, viewport, legend, 12);
        drawPhaseCells(builder, input, layout, *data, phaseScale(*data, options), viewport);
        drawPhasePresent(builder, layout, *data, input, theme);
        drawPhaseAxes(builder, layout, *data, theme);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<PhaseMapData>(input);
        const auto done = static_cast<std::size_t>(std::ranges::count_if(data->cells, &PhaseCell::computed));
        std::string rest =
            done < data->cells.size() ? fmt::format(" ({} of {} settings so far)", done, data->cells.size()) : "";
        if (const auto nothing = std::ranges::count_if(data->cells, &PhaseCell::balancedNothing))
            rest += fmt::format(" · nothing was balanced at {} of {} settings", nothing, data->cells.size());
        if (data->winners) return winnersText(*data) + rest;
        std::size_t best = data->cells.size(), worst = best;
        for (std::size_t i = 0; i < data->cells.size(); ++i) {
            const double value = data->cells[i].computed ? data->cells[i].values.front() : NAN;
            if (std::isnan(value)) continue;
            const auto better = [&](double a, double b) { return data->higherIsBetter ? a > b : a < b; };
            best = best == data->cells.size() || better(value, data->cells[best].values.front()) ? i : best;
            worst = worst == data->cells.size() || better(data->cells[worst].values.front(), value) ? i : worst;
        }
        if (best == data->cells.size())
            return done < data->cells.size()
                       ? "Running the first setting…"
                       : "The policy refuses every setting of this map: " + data->cells.front().error;
        const bool takesSide = measureById(data->measure).better != MeasureDirection::Neither;
        const double low = data->cells[best].values.front(), high = data->cells[worst].values.front();
        if (low == high)
            return fmt::format("The {} of {} is {} at every setting{}", measureWords(*data),
                               data->panes.front().policyName, valueText(*data, low), rest);
        return fmt::format("The {} of {} is {} at {}, where it is {}; {} at {}, where it is {}{}", measureWords(*data),
                           data->panes.front().policyName, takesSide ? "best" : "smallest", settingOf(*data, best),
                           valueText(*data, low), takesSide ? "worst" : "largest", settingOf(*data, worst),
                           valueText(*data, high), rest);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<PhaseMapData>(input);
        if (!data) return tableOf({"setting"}, {});
        std::vector<std::string> columns = {data->x.id, data->y.id};
        for (const PaneName& pane : data->panes)
            for (const std::string& what : {data->measure, std::string("kept")})
                columns.push_back(letteredName(pane) + " " + what);
        columns.insert(columns.end(), {"winner", "notes"});
        std::vector<std::vector<std::string>> rows;
        for (std::size_t i = 0; i < data->cells.size(); ++i) {
            const PhaseCell& cell = data->cells[i];
            if (!cell.computed) continue;
            rows.push_back({data->x.texts[i % data->x.texts.size()], data->y.texts[i / data->x.texts.size()]});
            for (std::size_t pane = 0; pane < data->panes.size(); ++pane) {
                const bool none = std::isnan(cell.values[pane]);
                rows.back().push_back(none ? "" : fmt::format("{:.9g}", cell.values[pane]));
                rows.back().push_back(none ? "" : fmt::format("{:.6f}", cell.kept[pane]));
            }
            const int winner = data->winner(cell);
            rows.back().push_back(winner < 0 ? "" : std::string(1, data->panes[winner].letter));
            rows.back().push_back(cell.balancedNothing ? kNothingBalanced : "");
        }
        return tableOf(std::move(columns), std::move(rows));
    }

    std::unique_ptr<const ColourScale> colourScale(const ViewInput& input,
                                                   const ParameterValues& options) const override {
        const auto data = whyNoPicture(input, options).empty() ? dataAs<PhaseMapData>(input) : nullptr;
        auto scale = data ? std::make_unique<const ValueScale>(phaseScale(*data, options)) : nullptr;
        return scale && !scale->isEmpty() ? std::move(scale) : nullptr;
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<PhaseMapData>(input);
        const PickId pick = pickAt(scene, at, 0);
        if (pick.kind != PickId::Kind::Cell || std::cmp_greater_equal(pick.index, data->cells.size())) return {};
        const auto index = static_cast<std::size_t>(pick.index);
        const PhaseCell& cell = data->cells[index];
        PointFacts facts;
        facts.rows = {{"setting", settingOf(*data, index)}};
        for (std::size_t i = 0; i < data->panes.size() && cell.computed; ++i) {
            const std::string value =
                std::isnan(cell.values[i])
                    ? std::string("refused")
                    : fmt::format("{}, {} kept", valueText(*data, cell.values[i]), formatPercent(cell.kept[i]));
            facts.rows.emplace_back(letteredName(data->panes[i]), value);
        }
        if (!cell.computed) facts.rows.emplace_back("result", "waiting");
        if (!cell.error.empty()) facts.rows.emplace_back("why", cell.error);
        if (cell.balancedNothing) facts.rows.emplace_back("note", kNothingBalanced);
        facts.rows.emplace_back("click",
                                fmt::format("gives both to pane {}", static_cast<char>('A' + data->activePane)));
        facts.settingChange = settingChangeOf(*data, index);
        return facts;
    }
};

} // namespace

const View& phaseMapView() { return onlyOne<PhaseMapView>(); }

} // namespace kvscope
