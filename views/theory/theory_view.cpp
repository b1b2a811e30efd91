// Theorems as rows: margin of each requirement and of each measured error against its bound, on one logarithmic axis
// around 1. To the right of 1 a requirement is met, or the measurements of this capture lie within the bound.
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/view_facts.h"
#include "views/theory/theory_data.h"
#include "views/theory/theory_slider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

using Kind = TheoryRow::Kind;

constexpr double kDecades = 6, kHeader = 22, kLeastRow = 14, kMostRow = 52;
constexpr double kTickRow = 20, kTitleRow = 16, kTitleHeight = 150; ///< lower pictures have no title
constexpr double kOtherRadius = 2.6;
const TextStyle kPlain{FontFace::Interface, 11}, kNumber{FontFace::Monospace, 10};

ParameterTable makeOptions() {
    return {realRow("epsilon", "ε", "", {0.01, 0.99, 0.5}, Stage::Features,
                    "The error that the theorems are asked for.", "BalanceKV (2), SubGen (3), Compactor Thms 1 and 2"),
            realRow("delta", "δ", "", {1e-6, 0.5, 0.01}, Stage::Features, "The probability of failure that is allowed.",
                    "BalanceKV Thm 3.3, Compactor Thms 1 and 2")};
}

Colour stripeColour(const Theme& theme) { return withAlpha(theme.sunken, 0.45); }

/// The rows of one KV head, as indices.
std::vector<std::size_t> rowsOf(const TheoryData& data, int kvHead) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < data.rows.size(); ++i)
        if (data.rows[i].kvHead == kvHead) rows.push_back(i);
    return rows;
}

bool isSilent(const TheoryRow& row) {
    return row.kind == Kind::Describes && (std::isnan(row.demanded) || row.formula.starts_with("no statement"));
}

/// Why a theorem makes no statement, if its row says so.
std::string whySilent(const TheoryRow& row) {
    constexpr std::string_view kWhy = "no statement: ";
    return row.formula.starts_with(kWhy) ? row.formula.substr(kWhy.size()) : "";
}

std::string shareText(double share) { return fmt::format("{:.2g} %", 100 * share); }

std::string numbersOf(const TheoryRow& row) {
    const auto number = [&](double value) { return formatShort(value) + row.unit; };
    if (row.kind == Kind::Bound) {
        if (std::isnan(row.worst)) return "not measured";
        const std::string beyond = row.beyond > 0 ? fmt::format(", {} beyond", shareText(row.beyond)) : "";
        return fmt::format("{} {} {}{}", number(row.worst), row.worst > row.demanded ? ">" : "≤", number(row.demanded),
                           beyond);
    }
    if (isSilent(row)) return "no statement";
    if (row.quantity == "levels T" && row.demanded <= 0) return number(row.demanded) + ": no compression";
    const std::string set = std::isnan(row.set) ? "" : ", set " + number(row.set);
    return fmt::format("{}{}{}", row.kind == Kind::AtLeast ? "asks " : "", number(row.demanded), set);
}

/// Whether the requirement is met, or the measurements lie within the bound.
bool holds(const TheoryRow& row) { return row.margin() >= 1; }

struct Layout {
    double names = 0, numbers = 0, rowHeight = 0, axis = 0; ///< axis: height below the rows
    bool tickLabels = true, title = true;
    bool otherHeads = false; ///< there is room to explain their marks
    Box plot;

    double xOf(double margin) const {
        const double decades = std::clamp(std::log10(std::max(margin, 1e-300)), -kDecades, kDecades);
        return plot.x + plot.width * (decades + kDecades) / (2 * kDecades);
    }
    double yOf(std::size_t row) const { return plot.y + rowHeight * (static_cast<double>(row) + 0.5); }
};

Layout layoutOf(std::size_t rows, const Viewport& viewport) {
    Layout layout;
    layout.names = std::clamp(0.32 * viewport.width, 80.0, 210.0);
    layout.numbers = std::clamp(0.28 * viewport.width, 64.0, 220.0);
    const auto count = std::max<double>(1, static_cast<double>(rows));
    const double below = viewport.height - kHeader - (viewport.forExport ? 18 : 2);
    layout.title = viewport.height >= kTitleHeight && below - kTickRow - kTitleRow >= count * kLeastRow;
    layout.tickLabels = below - kTickRow >= count * kLeastRow;
    layout.axis = layout.title ? kTickRow + kTitleRow : layout.tickLabels ? kTickRow : 4;
    const double height = std::max(1.0, below - layout.axis);
    layout.rowHeight = std::clamp(height / count, kLeastRow, kMostRow);
    layout.plot = {8 + layout.names, kHeader, std::max(20.0, viewport.width - layout.names - layout.numbers - 24),
                   std::min(height, layout.rowHeight * count)};
    return layout;
}

void drawNames(SceneBuilder& builder, const TheoryRow& row, const Layout& layout, double y, const Theme& theme) {
    const TextStyle strong{FontFace::Interface, 11, FontWeight::SemiBold};
    const bool two = layout.rowHeight >= 30;
    const std::string first = two ? row.quantity : row.quantity + " · " + row.theorem;
    builder.label({8, two ? y - 7 : y}, builder.elide(first, strong, layout.names - 8), strong, theme.text1);
    if (two) builder.label({8, y + 8}, builder.elide(row.theorem, kPlain, layout.names - 8), kPlain, theme.text3);
    constexpr std::string_view kAsks = "asks "; // left out before the setting is cut off
    std::string numbers = numbersOf(row);
    if (numbers.starts_with(kAsks) && builder.width(numbers, kNumber) > layout.numbers) numbers.erase(0, kAsks.size());
    builder.label({layout.plot.right() + 8, y}, builder.elide(numbers, kNumber, layout.numbers), kNumber, theme.text2);
}

/// The other heads of the layer, small, below the mark where the row is high enough and else over it.
void drawOtherHeads(SceneBuilder& builder, const TheoryData& data, std::size_t index, const Layout& layout, double y,
                    const Theme& theme) {
    const TheoryRow& row = data.rows[index];
    const double at = layout.rowHeight >= 25 ? y + 10 : y;
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        const TheoryRow& other = data.rows[i];
        if (i != index && other.theorem == row.theorem && other.quantity == row.quantity && other.hasMargin())
            builder.circle({layout.xOf(other.margin()), at}, kOtherRadius, theme.text3, {theme.canvas, 1, {}},
                           {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
    }
}

/// Writes words in the plot, on a ground in the row's colour that hides the plot's lines.
void drawWords(SceneBuilder& builder, const std::string& words, Point at, bool striped, const Theme& theme) {
    constexpr double kHalf = 8, kMargin = 4;
    const Box box{at.x - kMargin, at.y - kHalf, builder.width(words, kPlain) + 2 * kMargin, 2 * kHalf};
    builder.rectangle(box, theme.canvas);
    if (striped) builder.rectangle(box, stripeColour(theme));
    builder.label(at, words, kPlain, theme.text2);
}

/// Writes what limits the statement below its mark, where the row is high enough; or, in place of a missing mark, why
/// there is none, where there is room.
void drawNote(SceneBuilder& builder, const TheoryRow& row, const Layout& layout, double y, double rowRight,
              bool striped, const Theme& theme) {
    const std::string why = isSilent(row) ? whySilent(row) : row.caveat;
    // Below the numbers a note may go on to the right edge.
    const double room = row.hasMargin() ? rowRight - layout.plot.x - 8 : layout.plot.width - 8,
                 width = builder.width(why, kPlain);
    if (why.empty() || (row.hasMargin() ? layout.rowHeight < 46 : width > room)) return;
    const Point at =
        row.hasMargin() ? Point{layout.plot.x + 4, y + 18} : Point{layout.plot.x + (layout.plot.width - width) / 2, y};
    drawWords(builder, builder.elide(why, kPlain, room), at, striped, theme);
}

/// A filled mark for the current head; a hollow one at an edge lies beyond it. A row without a statement has no marks.
void drawMarks(SceneBuilder& builder, const TheoryData& data, std::size_t index, const Layout& layout, double y,
               const Theme& theme) {
    const TheoryRow& row = data.rows[index];
    if (!row.hasMargin()) return;
    const Colour colour = holds(row) ? theme.ok : theme.error;
    const bool beyond = std::abs(std::log10(std::max(row.margin(), 1e-300))) > kDecades;
    const Point at{layout.xOf(row.margin()), y};
    builder.line({layout.xOf(1), y}, at, {colour, 2, {}});
    const PickId pick{PickId::Kind::Cell, static_cast<std::int64_t>(index)};
    if (holds(row))
        builder.circle(at, 5, beyond ? theme.canvas : colour, {colour, 1.6, {}}, pick);
    else
        builder.rectangle({at.x - 4.5, at.y - 4.5, 9, 9}, beyond ? theme.canvas : colour, {colour, 1.6, {}}, 0, pick);
    if (layout.otherHeads) drawOtherHeads(builder, data, index, layout, y, theme);
}

/// Above the rows: the targets, the sides of 1, and the mark of other heads where there is room to explain it.
void drawHeader(SceneBuilder& builder, const TheoryData& data, Layout& layout, const Viewport& viewport,
                const Theme& theme) {
    const std::string asked = fmt::format("{}, ε = {}, δ = {}", data.policyName, formatShort(data.asked.epsilon),
                                          formatShort(data.asked.delta));
    builder.label({8, 13}, builder.elide(asked, kPlain, layout.names - 4), kPlain, theme.text2);
    const double one = layout.xOf(1), side = layout.plot.width / 2 - 8;
    double right = one;
    if (layout.plot.width >= 60) {
        const auto fitting = [&](const char* full, const char* brief) {
            return builder.width(full, kPlain) <= side ? full : builder.elide(brief, kPlain, side);
        };
        builder.label({one - 6, 13}, fitting("short, or beyond the bound", "falls short"), kPlain, theme.text2,
                      HorizontalAlign::Right);
        right += 6 + builder.label({one + 6, 13}, fitting("met, or within the bound", "met"), kPlain, theme.text2);
    }
    constexpr const char* others = "other KV heads of the layer";
    const double x = viewport.width - 10 - builder.width(others, kPlain);
    layout.otherHeads = x - 20 > right;
    if (!layout.otherHeads) return;
    builder.circle({x - 8, 13}, kOtherRadius, theme.text3);
    builder.label({x, 13}, others, kPlain, theme.text2);
}

/// Every second decade, or every third, or the ends: grid and labels alike.
int decadeStep(const Layout& layout) { return layout.plot.width >= 312 ? 2 : layout.plot.width >= 192 ? 3 : 6; }

void drawGridLines(SceneBuilder& builder, const Layout& layout, const Theme& theme) {
    for (int decade = -6; decade <= 6; decade += decadeStep(layout)) {
        const double x = layout.xOf(std::pow(10, decade));
        builder.line({x, layout.plot.y}, {x, layout.plot.bottom()}, {decade == 0 ? theme.ink : theme.grid, 1, {}});
    }
}

void drawScale(SceneBuilder& builder, const Layout& layout, const Theme& theme) {
    constexpr double kThreeLabels = 50; // in narrower plots the labels of the ends would overlap the middle one
    for (int decade = -6; layout.tickLabels && decade <= 6; decade += decadeStep(layout)) {
        if (decade != 0 && layout.plot.width < kThreeLabels) continue;
        const std::string text = (decade == -6 ? "≤" : decade == 6 ? "≥" : "") + formatShort(std::pow(10, decade));
        builder.text({layout.xOf(std::pow(10, decade)), layout.plot.bottom() + 5}, text, kNumber, theme.text2,
                     HorizontalAlign::Centre, VerticalAlign::Top);
    }
    if (!layout.title) return;
    const std::string full = "margin on this capture = bound ÷ worst measurement, or setting ÷ demand",
                      brief = "margin on this capture";
    builder.text({layout.plot.x + layout.plot.width / 2, layout.plot.bottom() + 19},
                 builder.width(full, kPlain) <= layout.plot.width + 60
                     ? full
                     : builder.elide(brief, kPlain, layout.plot.width + 60),
                 kPlain, theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
}

/// How many statements of each kind one head has, and how many hold.
struct Tally {
    int demands = 0, comparable = 0, met = 0, bounds = 0, within = 0, silent = 0;
    const TheoryRow* widest = nullptr; ///< the demand that is missed by most
    const TheoryRow* quiet = nullptr;  ///< the last one that makes no statement
    const TheoryRow* broken = nullptr; ///< the bound with the largest share of measurements beyond it
};

Tally tallyOf(const TheoryData& data, int kvHead) {
    Tally tally;
    for (const std::size_t i : rowsOf(data, kvHead)) {
        const TheoryRow& row = data.rows[i];
        if (isSilent(row)) ++tally.silent, tally.quiet = &row;
        tally.demands += row.kind == Kind::AtLeast;
        if (row.beyond > 0 && (!tally.broken || row.beyond > tally.broken->beyond)) tally.broken = &row;
        if (!row.hasMargin()) continue;
        (row.kind == Kind::Bound ? tally.bounds : tally.comparable) += 1;
        (row.kind == Kind::Bound ? tally.within : tally.met) += holds(row) ? 1 : 0;
        if (row.kind == Kind::AtLeast && !holds(row) && (!tally.widest || row.margin() < tally.widest->margin()))
            tally.widest = &row;
    }
    return tally;
}

/// Why the only theorem without a statement has none, or all of them if nothing was balanced.
std::string reasonOf(const Tally& tally) {
    const std::string why = whySilent(*tally.quiet);
    return !why.empty() && (tally.silent == 1 || why.starts_with("nothing was balanced")) ? fmt::format(" ({})", why)
                                                                                          : "";
}

/// The sketch that Compactor's Theorem 2 asks for, or as many columns as a key has, where that is fewer; nothing where
/// the pane has it already.
std::optional<std::int64_t> columnsOffered(const TheoryRow& row, const ViewInput& input) {
    if (row.quantity != "sketch k" || std::isnan(row.set) || holds(row)) return {};
    const double columns = std::min(std::ceil(row.demanded), static_cast<double>(input.capture->info().headDim));
    return columns > row.set ? std::optional(static_cast<std::int64_t>(columns)) : std::nullopt;
}

class TheoryView final : public View {
public:
    TheoryView()
        : View({.id = "theory",
                .name = "Theory",
                .summary = "What the theorems demand at this head's norms, and measured errors over their bounds",
                .paper = "BalanceKV Thms 3.1-3.4; SubGen Thm 1; Compactor Thms 1, 2; KeyDiff Thms 3.2, C.1",
                .group = ViewGroup::Cost,
                .data = "theory",
                .waiting = "Computing what the theorems demand…"},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<TheoryData>(input);
        const Theme& theme = themeOf(viewport.theme);
        std::vector<std::size_t> rows = rowsOf(*data, input.kvHead.value);
        Layout layout = layoutOf(rows.size(), viewport);
        rows.resize(std::min(rows.size(), static_cast<std::size_t>((layout.plot.height + 1) / layout.rowHeight)));
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        for (std::size_t i = 1; i < rows.size(); i += 2) // stripes lie behind all lines
            builder.rectangle({4, layout.yOf(i) - layout.rowHeight / 2, viewport.width - 8, layout.rowHeight},
                              stripeColour(theme));
        drawGridLines(builder, layout, theme);
        drawHeader(builder, *data, layout, viewport, theme);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const double y = layout.yOf(i);
            drawNames(builder, data->rows[rows[i]], layout, y, theme);
            drawNote(builder, data->rows[rows[i]], layout, y, viewport.width - 8, i % 2 == 1, theme);
            drawMarks(builder, *data, rows[i], layout, y, theme);
        }
        drawScale(builder, layout, theme);
        const double below = layout.plot.bottom() + layout.axis + 8;
        drawTheoryOverEpsilon(builder, *data, rows,
                              {8, below, viewport.width - 16, viewport.height - below - (viewport.forExport ? 18 : 2)},
                              viewport);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<TheoryData>(input);
        const Tally tally = tallyOf(*data, input.kvHead.value);
        std::string text;
        if (tally.comparable > 0) {
            const TheoryRow* gap = tally.widest;
            text =
                fmt::format("{} of {} of the theorems {} met{}", tally.met, formatCounted(tally.comparable, "demand"),
                            tally.met == 1 || tally.comparable == 1 ? "is" : "are",
                            gap ? fmt::format(" ({} asks {}, set {})", gap->quantity, formatShort(gap->demanded),
                                              formatShort(gap->set))
                                : "");
        } else {
            text = tally.demands > 0
                       ? fmt::format("What the theorems about {} demand is no setting here", data->policyName)
                       : fmt::format("No theorem about {} asks for a setting", data->policyName);
        }
        if (tally.bounds == 1)
            text += fmt::format("; on this capture the one measured value lies {} its bound",
                                tally.within == 1 ? "within" : "beyond");
        else if (tally.bounds > 1)
            text += fmt::format("; on this capture {} of {} bounds {}", tally.within, tally.bounds,
                                tally.within == 1 ? "has no measurement beyond it" : "have no measurement beyond them");
        if (const TheoryRow* row = tally.broken)
            text += fmt::format("; {} of {} measurements lie beyond {}, which allows {}", shareText(row->beyond),
                                formatCount(row->count), row->theorem, shareText(row->mayFail));
        if (tally.silent > 0)
            text += fmt::format("; {} at this head{}",
                                tally.silent == 1 ? "one theorem says nothing"
                                                  : fmt::format("{} say nothing", tally.silent),
                                reasonOf(tally));
        return text;
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        std::vector<std::vector<std::string>> rows;
        const auto number = [](double x) { return std::isnan(x) ? std::string() : fmt::format("{:.6g}", x); };
        if (const auto data = dataAs<TheoryData>(input))
            for (const TheoryRow& row : data->rows) {
                const bool bound = row.kind == Kind::Bound;
                rows.push_back({std::to_string(row.kvHead), row.theorem, row.quantity,
                                bound ? "" : number(row.demanded), number(row.set), bound ? number(row.demanded) : "",
                                number(row.measured), number(row.worst), number(row.margin()), row.formula,
                                number(row.beyond), number(row.mayFail), row.caveat, row.ifBroken, row.paper()});
            }
        return tableOf({"kv_head", "theorem", "quantity", "demanded", "set", "bound", "measured", "worst", "margin",
                        "formula", "share_beyond", "may_fail", "caveat", "violation_means", "paper"},
                       std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<TheoryData>(input);
        const PickId pick = pickAt(scene, at, 4);
        if (!data || pick.kind != PickId::Kind::Cell || pick.index < 0 || pick.index >= std::ssize(data->rows))
            return {};
        const TheoryRow& row = data->rows[pick.index];
        PointFacts facts;
        facts.rows = {{row.theorem, row.quantity}, {"KV head", std::to_string(row.kvHead)}, {"formula", row.formula}};
        const auto number = [&](double value) { return formatShort(value) + row.unit; };
        if (row.kind == Kind::Bound) {
            facts.rows.push_back({"measured", number(row.measured)});
            facts.rows.push_back({"worst", number(row.worst)});
            facts.rows.push_back({"bound", number(row.demanded)});
            if (row.count > 1)
                facts.rows.push_back({"beyond", fmt::format("{} of {}; {} may be", shareText(row.beyond),
                                                            formatCount(row.count), shareText(row.mayFail))});
            facts.rows.push_back({"a violation means", row.ifBroken});
        } else {
            facts.rows.push_back({"demanded", number(row.demanded)});
            facts.rows.push_back({"set", std::isnan(row.set) ? "not a parameter here" : number(row.set)});
        }
        if (const auto columns = columnsOffered(row, input)) {
            facts.settingChange = SettingChange{.values = {{"sketch_size", std::to_string(*columns)}}};
            facts.rows.push_back(
                {"a click sets",
                 fmt::format("k = {}{}", *columns, *columns < row.demanded ? ", d: the sketch is exact" : "")});
        }
        if (!row.caveat.empty()) facts.rows.push_back({"note", row.caveat});
        facts.rows.push_back({"paper", row.paper()});
        facts.layer = input.layer.value;
        facts.kvHead = row.kvHead;
        return facts;
    }
};

} // namespace

const View& theoryView() { return onlyOne<TheoryView>(); }

} // namespace kvscope
