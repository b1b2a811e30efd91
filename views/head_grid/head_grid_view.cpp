// The whole model as a table of colours: layers down, heads across. A cell is a head; a click opens that head.
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/colour_scale.h"
#include "views/common/measure_options.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/head_grid/head_grid_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

/// The measures and the grid's own quantities.
const std::vector<ParameterChoice>& quantities() {
    static const std::string panes = headingOf(MeasureGroup::TwoPanes), tokens = headingOf(MeasureGroup::KeptKeys),
                             geometry = headingOf(MeasureGroup::Geometry);
    static const std::vector<ParameterChoice> all = measureChoices(
        {{"error_difference", "Error difference", "of the first pane less the second; blue: the first is better",
          panes},
         {"overlap", "Overlap of kept lists", "of two panes: Jaccard", panes},
         {"kept_tokens", "Kept tokens", "what a head attends to before the cut, whatever its weight", tokens},
         {"selection_kept", "Selection kept", "share of the selected tokens", tokens},
         {"survival_budget", "Survival budget", "smallest retention at which the whole selection is kept", tokens},
         {"answer_rise", "Predicted rise of the answer's loss",
          "of a live context: scores of what the head evicts, first order", tokens},
         {"mean_cosine", "cos(mean key, mean query)", "of the queries before the cut (KeyDiff Fig. 14)", geometry}});
    return all;
}

void checkRange(std::string_view text) { checkValueRange(text, idsOf(quantities()), "the grid"); }

ParameterTable makeOptions() {
    return {
        choiceRow("quantity", "Quantity", quantities(), Stage::Features, "What a cell holds.", "KeyDiff Figs. 13-16"),
        paneOption("first", "First pane", 'A', Stage::Features, "The pane that is compared.", "this program's"),
        paneOption("second", "Second pane", 'B', Stage::Features, "The pane that it is compared with.",
                   "this program's"),
        choiceRow("difference", "Difference",
                  {{"signed", "Signed", "first less second: below 0 the first is better"},
                   {"absolute", "Absolute", "how far apart, whoever is better"}},
                  Stage::Combine, "How two panes' errors are set against each other.", "this program's"),
        colourMapOption(),
        valueRangeOption(checkRange)};
}

/// The scale of the cells that are computed so far.
ValueScale scaleFor(const HeadGridData& data, const ParameterValues& options) {
    std::vector<double> values;
    for (const HeadGridData::Row& row : data.rows) values.insert(values.end(), row.values.begin(), row.values.end());
    return {std::move(values),
            data.isSigned,
            data.quantity,
            "heads",
            options.choice("colours"),
            ValueRange::parse(options.text(kValueRangeOption))};
}

constexpr double kLeastWithColumn = 320;                     // narrower pictures have no colour column
constexpr double kBudgetWidth = 84, kLeastWithBudgets = 420; // likewise the bars of the layers' budgets

/// The layers that keep least and most; false unless the active pane's policy gives layers different budgets.
struct LayerBudgets {
    const HeadGridData::Row *least = nullptr, *most = nullptr;
    explicit operator bool() const { return least && most->kept - least->kept >= 1; }
};

LayerBudgets budgetsOf(const HeadGridData& data) {
    LayerBudgets budgets;
    for (const HeadGridData::Row& row : data.rows) {
        if (std::isnan(row.kept)) continue;
        budgets.least = !budgets.least || row.kept < budgets.least->kept ? &row : budgets.least;
        budgets.most = !budgets.most || row.kept > budgets.most->kept ? &row : budgets.most;
    }
    return budgets;
}

struct Layout {
    Box grid;
    double cellWidth = 0, cellHeight = 0, groupGap = 0;
    int perGroup = 1;

    Box cell(std::size_t row, int column) const {
        const double gaps = groupGap * static_cast<double>(column / perGroup);
        return {grid.x + cellWidth * column + gaps, grid.y + cellHeight * static_cast<double>(row), cellWidth - 1,
                cellHeight - 1};
    }
};

/// How many columns one KV head has, where in every layer the same KV head has the same run of them; else 1.
int groupWidth(const CaptureInfo& info) {
    const std::vector<std::int32_t>& groups = info.layers.front().gqaGroupOf;
    const std::size_t width = std::max<std::size_t>(1, groups.size() / std::max(1, info.numKvHeads));
    for (const LayerInfo& layer : info.layers)
        for (std::size_t head = 0; head < groups.size(); ++head)
            if (layer.gqaGroupOf != groups || groups[head] != groups[head / width * width]) return 1;
    return static_cast<int>(width);
}

Layout layoutOf(const ViewInput& input, const HeadGridData& data, const Viewport& viewport) {
    const double column = viewport.width >= kLeastWithColumn ? kLabelledColumnWidth : 0;
    const double budgets = viewport.width >= kLeastWithBudgets && budgetsOf(data) ? kBudgetWidth : 0;
    Layout layout;
    layout.perGroup = data.perQueryHead ? groupWidth(input.capture->info()) : 1;
    const double kvLine = layout.perGroup > 1 ? 12 : 0; // a line for the numbers of the KV heads
    layout.grid = {40, 44 + kvLine, viewport.width - 48 - column - budgets,
                   viewport.height - 62 - kvLine - (viewport.forExport ? 16 : 0)};
    layout.groupGap = data.perQueryHead && layout.perGroup > 1 ? 2 : 0;
    const int groups = (data.columns + layout.perGroup - 1) / layout.perGroup;
    layout.cellWidth = std::max(2.0, (layout.grid.width - layout.groupGap * (groups - 1)) / data.columns);
    // At most twice as high as wide, so that few layers fill their dock and do not become tall bars.
    layout.cellHeight = std::clamp(layout.grid.height / static_cast<double>(data.rows.size()), 2.0,
                                   std::max(34.0, 2 * layout.cellWidth));
    return layout;
}

/// Whether a head without a number has a dash, which the help explains; else the number could not be computed.
bool hasDash(const HeadGridData& data) { return data.neverIsNan || data.quantity == "answer_rise"; }

void drawCell(SceneBuilder& builder, const HeadGridData& data, const HeadGridData::Row& row, int column, const Box& box,
              const ValueScale& scale, PickId pick, const Theme& theme) {
    const double value = row.values[column];
    if (!row.computed) {
        builder.rectangle(box, kTransparent, {theme.border, 1, {}}, 0, pick);
    } else if (std::isnan(value)) {
        builder.rectangle(box, hasDash(data) ? theme.sunken : theme.notANumber, {}, 0, pick);
        if (hasDash(data))
            builder.line({box.x + 1, box.bottom() - 1}, {box.right() - 1, box.y + 1}, {theme.text3, 1, {}});
    } else {
        builder.rectangle(box, scale.colourOf(value), {}, 0, pick);
    }
}

/// `cut`: label of the cut; empty in a figure, which states the cut below.
void drawLabels(SceneBuilder& builder, const std::string& cut, const HeadGridData& data, const Layout& layout,
                const LayerInfo& groups, const Theme& theme) {
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    const auto step = [](double pitch, double least) {
        return std::max(1, static_cast<int>(std::ceil(least / pitch)));
    };
    const int rowStep = step(layout.cellHeight, 13), columnStep = step(layout.cellWidth, 20);
    for (std::size_t row = 0; row < data.rows.size(); row += static_cast<std::size_t>(rowStep)) {
        const Box cell = layout.cell(row, 0);
        builder.label({cell.x - 5, cell.y + cell.height / 2}, std::to_string(data.rows[row].layer), label, theme.text2,
                      HorizontalAlign::Right);
    }
    for (int column = 0; column < data.columns; column += columnStep) {
        const Box cell = layout.cell(0, column);
        builder.text({cell.x + cell.width / 2, cell.y - 5}, std::to_string(column), label, theme.text2,
                     HorizontalAlign::Centre);
    }
    const int groupStep = step(layout.cellWidth * layout.perGroup + layout.groupGap, 34) * layout.perGroup;
    for (int column = 0; layout.perGroup > 1 && column < data.columns; column += groupStep) {
        const Box left = layout.cell(0, column),
                  right = layout.cell(0, std::min(column + layout.perGroup, data.columns) - 1);
        builder.text({(left.x + right.right()) / 2, left.y - 17}, fmt::format("KV {}", groups.gqaGroupOf.at(column)),
                     label, theme.text2, HorizontalAlign::Centre);
    }
    builder.label({layout.grid.x, 14}, builder.elide(withUnit(data.what, data.unit), title, layout.grid.width), title,
                  theme.text2);
    const Box last = layout.cell(data.rows.size() - 1, 0);
    const TextStyle note{FontFace::Interface, 10};
    builder.text({layout.grid.x, last.bottom() + 12},
                 builder.elide(fmt::format("rows: layer, columns: {} head (0-based){}",
                                           data.perQueryHead ? "query" : "KV", cut.empty() ? "" : " · cut: " + cut),
                               note, layout.grid.width),
                 note, theme.text2);
}

/// Tokens kept per head in each layer, as bars to the right of its row.
void drawBudgets(SceneBuilder& builder, const HeadGridData& data, const Layout& layout, const Viewport& viewport) {
    const LayerBudgets budgets = budgetsOf(data);
    if (!budgets || viewport.width < kLeastWithBudgets) return;
    constexpr double kLongest = 40;
    const Theme& theme = themeOf(viewport.theme);
    const TextStyle number{FontFace::Monospace, 10};
    const double left = layout.grid.right() + 6;
    builder.text({left, layout.grid.y - 5}, "kept per head", {FontFace::Interface, 10}, theme.text2);
    const auto step = static_cast<std::size_t>(std::ceil(13 / layout.cellHeight));
    for (std::size_t row = 0; row < data.rows.size(); ++row) {
        const double kept = data.rows[row].kept;
        if (std::isnan(kept)) continue;
        const Box cell = layout.cell(row, 0);
        const double height = std::min(12.0, cell.height), length = std::max(1.0, kLongest * kept / budgets.most->kept);
        builder.rectangle({left, cell.y + (cell.height - height) / 2, length, height}, theme.kept);
        if (row % step == 0)
            builder.label({left + length + 4, cell.y + cell.height / 2}, formatCount(std::llround(kept)), number,
                          theme.text2);
    }
}

/// A frame in ink with a casing around the current head, visible on every colour.
void drawPresent(SceneBuilder& builder, const ViewInput& input, const HeadGridData& data, const Layout& layout,
                 const Theme& theme) {
    for (std::size_t row = 0; row < data.rows.size(); ++row) {
        if (data.rows[row].layer != input.layer.value) continue;
        const Box cell = layout.cell(row, data.perQueryHead ? input.queryHead.value : input.kvHead.value);
        builder.rectangle(cell.grown(2), kTransparent, {theme.casing, 3, {}});
        builder.rectangle(cell.grown(1), kTransparent, {theme.ink, 2, {}});
    }
}

/// A dot in the corner of each head that was opened from the list of the worst.
void drawOpened(SceneBuilder& builder, const ViewInput& input, const HeadGridData& data, const Layout& layout,
                const Theme& theme) {
    const double radius = std::min({3.0, layout.cellWidth / 4, layout.cellHeight / 4});
    for (std::size_t row = 0; row < data.rows.size(); ++row)
        for (const auto& [of, head] : input.opened.of(data.perQueryHead)) {
            if (of != data.rows[row].layer || head >= data.columns) continue;
            const Box cell = layout.cell(row, head);
            builder.circle({cell.x + 1.8 * radius, cell.y + 1.8 * radius}, radius, theme.ink, {theme.casing, 1.2, {}});
        }
}

double magnitudeOf(const HeadGridData& data, double value) { return data.first.empty() ? value : std::abs(value); }

/// "3 of 48": its place among the computed heads, the worst (where neither side is better: the largest) first.
std::string rankText(const HeadGridData& data, double value) {
    std::int64_t before = 0, all = 0;
    for (const HeadGridData::Row& row : data.rows)
        for (const double other : row.values) {
            if (!row.computed || std::isnan(other)) continue;
            const double distance = magnitudeOf(data, other) - magnitudeOf(data, value);
            before += (data.higherIsBetter ? distance < 0 : distance > 0) ? 1 : 0;
            ++all;
        }
    return fmt::format("{} of {}", formatCount(before + 1), formatCount(all));
}

/// "+0.882", "−0.700" of a difference; else without the plus.
std::string valueText(const HeadGridData& data, double value) {
    return fmt::format("{}{}{}", data.isSigned && !data.first.empty() && value > 0 ? "+" : "", formatShort(value),
                       unitBehind(data.unit));
}

std::string headName(const HeadGridData& data, const HeadGridData::Row& row, std::size_t column) {
    return fmt::format("layer {}, {} head {}", row.layer, data.perQueryHead ? "query" : "KV", column);
}

std::vector<OptionNeed> optionNeeds() {
    std::vector<std::string> withMiddle{"error_difference", "mean_cosine"}; // blue and red, whatever the map
    for (const std::string& measure : signedMeasures()) withMiddle.push_back(measure);
    return {
        {"first", {{"quantity", {"error_difference", "overlap"}}}},
        {"second", {{"quantity", {"error_difference", "overlap"}}}},
        {"difference", {{"quantity", {"error_difference"}}}},
        {"colours", {{"quantity", choicesBut(makeOptions(), "quantity", withMiddle)}, {"difference", {"absolute"}}}}};
}

class HeadGridView final : public View {
public:
    HeadGridView()
        : View({.id = "head_grid",
                .name = "Layer × head grid",
                .summary = "One number for every head of the model",
                .paper = "KeyDiff Fig. 14; the span tracker follows BalanceKV's needle task",
                .group = ViewGroup::Model,
                .needs = optionNeeds(),
                .data = "head_grid",
                .waiting = "Computing the first layer…",
                .place = ViewPlace::Model},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<HeadGridData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const Layout layout = layoutOf(input, *data, viewport);
        const ValueScale scale = scaleFor(*data, options);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        for (std::size_t row = 0; row < data->rows.size(); ++row)
            for (int column = 0; column < data->columns; ++column)
                drawCell(builder, *data, data->rows[row], column, layout.cell(row, column), scale,
                         {PickId::Kind::Cell, static_cast<std::int64_t>(row) * data->columns + column}, theme);
        drawLabels(builder, viewport.forExport ? std::string() : input.cut.label, *data, layout,
                   input.capture->info().layers.front(), theme);
        drawBudgets(builder, *data, layout, viewport);
        if (!viewport.forExport) drawOpened(builder, input, *data, layout, theme);
        drawPresent(builder, input, *data, layout, theme);
        if (viewport.width >= kLeastWithColumn && !scale.isEmpty()) {
            const double height = std::min(layout.grid.height,
                                           std::max(60.0, layout.cellHeight * static_cast<double>(data->rows.size())));
            drawColourColumn(builder,
                             {viewport.width - kLabelledColumnWidth, layout.grid.y, kLabelledColumnWidth, height},
                             scale.column(), theme);
        }
        drawProvenance(builder, input, viewport, true);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<HeadGridData>(input);
        const HeadGridData::Row* worstRow = nullptr;
        std::size_t worst = 0, done = 0;
        std::int64_t never = 0, known = 0;
        bool isAlike = true;
        const auto at = [&](double value) { return magnitudeOf(*data, value); };
        for (const HeadGridData::Row& row : data->rows) {
            done += row.computed ? 1 : 0;
            for (std::size_t column = 0; column < row.values.size(); ++column) {
                const double value = row.values[column];
                never += row.computed && std::isnan(value) ? 1 : 0;
                if (std::isnan(value)) continue;
                isAlike = isAlike && (!worstRow || value == worstRow->values[worst]);
                known += 1;
                const bool worse = !worstRow || (data->higherIsBetter ? at(value) < at(worstRow->values[worst])
                                                                      : at(value) > at(worstRow->values[worst]));
                if (worse) worstRow = &row, worst = column;
            }
        }
        if (!worstRow)
            return data->neverIsNan && never > 0 ? "No budget is known at which the selection survives in any head"
                                                 : "No head has a value";
        std::string shares;
        if (const LayerBudgets budgets = budgetsOf(*data); budgets && data->quantity == "kept_tokens")
            shares = fmt::format("; a head keeps {} in layer {} and {} in layer {}",
                                 formatCount(std::llround(budgets.most->kept)), budgets.most->layer,
                                 formatCount(std::llround(budgets.least->kept)), budgets.least->layer);
        const std::string rest =
            done < data->rows.size() ? fmt::format(" ({} of {} layers so far)", done, data->rows.size()) : "";
        const std::string value = valueText(*data, worstRow->values[worst]);
        const std::string which = isAlike && known > 1 && never == 0
                                      ? value + " in every head"
                                      : fmt::format("{} {}, in {}", data->higherIsBetter ? "smallest" : "largest",
                                                    value, headName(*data, *worstRow, worst));
        return fmt::format("{}: {}{}{}{}", asSentence(data->what), which, shares,
                           data->neverIsNan && never > 0 ? "; unknown in " + formatCounted(never, "head") : "", rest);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        std::vector<std::vector<std::string>> rows;
        const auto data = dataAs<HeadGridData>(input);
        if (data)
            for (const HeadGridData::Row& row : data->rows)
                for (std::size_t column = 0; column < row.values.size(); ++column)
                    rows.push_back(tableRow(row.layer, column, row.values[column]));
        return tableOf({"layer", "head", data ? withUnit(data->what, data->unit) : "value"}, std::move(rows));
    }

    std::unique_ptr<const ColourScale> colourScale(const ViewInput& input,
                                                   const ParameterValues& options) const override {
        const auto data = whyNoPicture(input, options).empty() ? dataAs<HeadGridData>(input) : nullptr;
        auto scale = data ? std::make_unique<const ValueScale>(scaleFor(*data, options)) : nullptr;
        return scale && !scale->isEmpty() ? std::move(scale) : nullptr;
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<HeadGridData>(input);
        const PickId pick = pickAt(scene, at, 0);
        if (pick.kind != PickId::Kind::Cell || data->columns == 0) return {};
        const auto row = static_cast<std::size_t>(pick.index / data->columns),
                   column = static_cast<std::size_t>(pick.index % data->columns);
        if (row >= data->rows.size()) return {};
        const double value = data->rows[row].values[column];
        PointFacts facts;
        facts.rows = {{"head", headName(*data, data->rows[row], column)}};
        if (data->perQueryHead) {
            const LayerInfo& layer = input.capture->info().layerInfo(LayerIndex(data->rows[row].layer));
            facts.rows.emplace_back("KV head", std::to_string(layer.gqaGroupOf[column]));
        }
        if (!data->rows[row].ofFirst.empty()) {
            facts.rows.emplace_back(data->first, formatShort(data->rows[row].ofFirst[column]));
            facts.rows.emplace_back(data->second, formatShort(data->rows[row].ofSecond[column]));
        }
        facts.rows.emplace_back(data->first.empty() ? data->what : "difference",
                                !data->rows[row].computed ? "waiting"
                                : std::isnan(value)       ? (data->neverIsNan ? "unknown" : "none")
                                                          : valueText(*data, value));
        if (!std::isnan(value))
            facts.rows.emplace_back(data->takesNoSide ? "rank, largest first" : "rank, worst first",
                                    rankText(*data, value));
        if (budgetsOf(*data) && data->quantity != "kept_tokens" && !std::isnan(data->rows[row].kept))
            facts.rows.emplace_back("kept in this layer",
                                    formatBudget(std::llround(data->rows[row].kept), input.cut.token) + " per head");
        facts.layer = data->rows[row].layer;
        (data->perQueryHead ? facts.queryHead : facts.kvHead) = static_cast<int>(column);
        return facts;
    }
};

} // namespace

const View& headGridView() { return onlyOne<HeadGridView>(); }

} // namespace kvscope
