// Theorems as rows: how far each demand is from what is set, and each measured error from its bound, on one logarithmic
// axis whose middle is 1. Right of the middle a theorem holds what it says.
#include "views/theory/theory_view.h"

#include "views/chart.h"
#include "views/explanations.h"
#include "views/theory/theory_data.h"
#include "views/theory/theory_slider.h"
#include "views/view_facts.h"
#include "views/view_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

using Kind = TheoryRow::Kind;

constexpr double kDecades = 6, kHeader = 22, kLeastRow = 18, kMostRow = 44, kAxisHeight = 34;

std::shared_ptr<const ParameterTable> makeOptions() {
    return std::make_shared<const ParameterTable>(ParameterTable{
        realOption("epsilon", "ε", "The error that the theorems are asked for.", "BalanceKV (2), SubGen (3), Compactor Thms 1 and 2", 0.01,
                   0.99, 0.5, Stage::Features),
        realOption("delta", "δ", "The probability of failure that is allowed.", "BalanceKV Thm 3.3, Compactor Thms 1 and 2", 1e-6, 0.5, 0.01,
                   Stage::Features)});
}

class TheoryView final : public View {
public:
    TheoryView()
        : View({.id = "theory",
                .name = "Theory",
                .summary = "What the theorems demand at this head's norms, and measured errors over their bounds",
                .paper = "BalanceKV Thms 3.2-3.4, (2); SubGen Thm 1, (3); Compactor Thms 1, 2; KeyDiff Lemma 3.1, Thm 3.2",
                .help = std::string(viewExplanation("theory_view")),
                .options = makeOptions(),
                .data = "theory"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
};

std::string whyNoPicture(const ViewInput& input) {
    return whyNoData<TheoryData>(input, "Computing what the theorems demand…");
}

/// The rows of one KV head, as indices.
std::vector<std::size_t> rowsOf(const TheoryData& data, int kvHead) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < data.rows.size(); ++i)
        if (data.rows[i].kvHead == kvHead)
            rows.push_back(i);
    return rows;
}

std::string numbersOf(const TheoryRow& row) {
    if (row.kind == Kind::Bound)
        return std::isnan(row.measured) ? "not measured" : fmt::format("{} ≤ {}", formatShort(row.measured), formatShort(row.demanded));
    if (row.kind == Kind::Describes && (std::isnan(row.demanded) || row.formula.starts_with("no statement")))
        return "no statement";
    if (row.kind == Kind::Describes && row.demanded <= 0)
        return formatShort(row.demanded) + ": no compression"; // BalanceKV's T
    const std::string set = std::isnan(row.set) ? "" : ", set " + formatShort(row.set);
    return fmt::format("{}{}{}", row.kind == Kind::AtLeast ? "asks " : "", formatShort(row.demanded), set);
}

/// Whether a mark stands on the good side.
bool holds(const TheoryRow& row) { return row.margin() >= 1; }

struct Layout {
    double names = 0, numbers = 0, rowHeight = 0;
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
    const double axis = viewport.height >= 150 ? kAxisHeight : 4, foot = axis + (viewport.forExport ? 18 : 2);
    const double height = std::max(1.0, viewport.height - kHeader - foot);
    layout.rowHeight = std::clamp(height / std::max<double>(1, static_cast<double>(rows)), kLeastRow, kMostRow);
    layout.plot = {8 + layout.names, kHeader, std::max(20.0, viewport.width - layout.names - layout.numbers - 24),
                   std::min(height, layout.rowHeight * static_cast<double>(rows))};
    return layout;
}

void drawNames(SceneBuilder& builder, const TheoryRow& row, const Layout& layout, double y, const Theme& theme) {
    const TextStyle strong{FontFace::Interface, 11, FontWeight::SemiBold}, plain{FontFace::Interface, 11};
    const bool two = layout.rowHeight >= 30;
    const std::string first = two ? row.quantity : row.quantity + " · " + row.theorem;
    builder.text({8, two ? y - 7 : y}, builder.elide(first, strong, layout.names - 8), strong, theme.text1, HorizontalAlign::Left,
                 VerticalAlign::Middle);
    if (two)
        builder.text({8, y + 8}, builder.elide(row.theorem, plain, layout.names - 8), plain, theme.text3, HorizontalAlign::Left, VerticalAlign::Middle);
    const TextStyle mono{FontFace::Monospace, 10};
    builder.text({layout.plot.right() + 8, y}, builder.elide(numbersOf(row), mono, layout.numbers), mono, theme.text2, HorizontalAlign::Left,
                 VerticalAlign::Middle);
}

/// The head that is looked at as a filled mark, the other heads of the layer small behind it; hollow at an edge: beyond it.
void drawMarks(SceneBuilder& builder, const TheoryData& data, std::size_t index, const Layout& layout, double y, const Theme& theme) {
    const TheoryRow& row = data.rows[index];
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        const TheoryRow& other = data.rows[i];
        if (i == index || other.theorem != row.theorem || other.quantity != row.quantity || !other.hasMargin())
            continue;
        builder.circle({layout.xOf(other.margin()), y}, 2.4, withAlpha(theme.text3, 0.7), {}, {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
    }
    if (!row.hasMargin())
        return;
    const Colour colour = holds(row) ? theme.ok : theme.error;
    const bool beyond = std::abs(std::log10(std::max(row.margin(), 1e-300))) > kDecades;
    const Point at{layout.xOf(row.margin()), y};
    builder.line({layout.xOf(1), y}, at, {colour, 2, {}});
    const PickId pick{PickId::Kind::Cell, static_cast<std::int64_t>(index)};
    if (holds(row))
        builder.circle(at, 5, beyond ? theme.canvas : colour, {colour, 1.6, {}}, pick);
    else
        builder.rectangle({at.x - 4.5, at.y - 4.5, 9, 9}, beyond ? theme.canvas : colour, {colour, 1.6, {}}, 0, pick);
}

void drawAxis(SceneBuilder& builder, const Layout& layout, const Viewport& viewport, const Theme& theme) {
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    for (int decade = -6; decade <= 6; decade += 2) {
        const double x = layout.xOf(std::pow(10, decade));
        builder.line({x, layout.plot.y}, {x, layout.plot.bottom()}, {theme.grid, 1, {}});
    }
    const double one = layout.xOf(1);
    builder.line({one, layout.plot.y}, {one, layout.plot.bottom()}, {theme.ink, 1, {}});
    if (layout.plot.width >= 60) {
        builder.text({one - 6, 13}, builder.elide("falls short", title, layout.plot.width / 2 - 8), title, theme.text2, HorizontalAlign::Right, VerticalAlign::Middle);
        builder.text({one + 6, 13}, builder.elide("holds", title, layout.plot.width / 2 - 8), title, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle);
    }
    if (viewport.height < 150)
        return;
    for (const int decade : {-6, -3, 0, 3, 6})
        if (layout.plot.width >= 240 || decade % 6 == 0) {
            const std::string text = decade == 0 ? "1" : (decade < 0 ? "≤1e−" : "≥1e") + std::to_string(std::abs(decade));
            builder.text({layout.xOf(std::pow(10, decade)), layout.plot.bottom() + 5}, std::abs(decade) == 6 ? text : decade == 0 ? "1" : formatShort(std::pow(10, decade)),
                         label, theme.text3, HorizontalAlign::Centre, VerticalAlign::Top);
        }
    if (layout.plot.width >= 150)
        builder.text({layout.plot.x + layout.plot.width / 2, layout.plot.bottom() + 19},
                     builder.elide("set over demanded, bound over measured", title, layout.plot.width + 60), title, theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
}

Scene TheoryView::buildScene(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
    const auto data = dataAs<TheoryData>(input);
    const Theme& theme = themeOf(viewport.theme);
    const std::vector<std::size_t> rows = rowsOf(*data, input.kvHead.value);
    const Layout layout = layoutOf(rows.size(), viewport);
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);
    drawAxis(builder, layout, viewport, theme);
    const TextStyle title{FontFace::Interface, 11};
    builder.text({8, 13}, builder.elide(fmt::format("{}, ε = {}, δ = {}", data->policyName, formatShort(data->asked.epsilon), formatShort(data->asked.delta)), title, layout.names - 4),
                 title, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double y = layout.yOf(i);
        if (y + layout.rowHeight / 2 > layout.plot.bottom() + 1)
            break;
        if (i % 2 == 1)
            builder.rectangle({4, y - layout.rowHeight / 2, viewport.width - 8, layout.rowHeight}, withAlpha(theme.sunken, 0.45));
        drawNames(builder, data->rows[rows[i]], layout, y, theme);
        drawMarks(builder, *data, rows[i], layout, y, theme);
    }
    const double below = layout.plot.bottom() + kAxisHeight + 10;
    drawTheoryOverEpsilon(builder, *data, rows, {8, below, viewport.width - 16, viewport.height - below - (viewport.forExport ? 18 : 2)}, viewport);
    drawProvenance(builder, input, viewport);
    return scene;
}

std::string TheoryView::finding(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<TheoryData>(input);
    int demands = 0, met = 0, bounds = 0, within = 0;
    const TheoryRow* widest = nullptr;
    for (const std::size_t i : rowsOf(*data, input.kvHead.value)) {
        const TheoryRow& row = data->rows[i];
        if (!row.hasMargin())
            continue;
        (row.kind == Kind::Bound ? bounds : demands) += 1;
        (row.kind == Kind::Bound ? within : met) += holds(row) ? 1 : 0;
        if (row.kind == Kind::AtLeast && !holds(row) && (!widest || row.margin() < widest->margin()))
            widest = &row;
    }
    const std::string gap = widest ? fmt::format(" ({} asks {}, set {})", widest->quantity, formatShort(widest->demanded), formatShort(widest->set)) : "";
    return fmt::format("{} of {} demands of the theorems are met{}; {} of {} measured errors lie within their bounds", met, demands, gap, within, bounds);
}

PointFacts TheoryView::factsAt(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const {
    const auto data = dataAs<TheoryData>(input);
    const PickId pick = pickAt(scene, at, 4);
    if (!data || pick.kind != PickId::Kind::Cell || pick.index < 0 || pick.index >= std::ssize(data->rows))
        return {};
    const TheoryRow& row = data->rows[static_cast<std::size_t>(pick.index)];
    PointFacts facts;
    facts.rows = {{row.theorem, row.quantity}, {"KV head", std::to_string(row.kvHead)}, {"formula", row.formula}};
    if (row.kind == Kind::Bound) {
        facts.rows.push_back({"measured", formatShort(row.measured)});
        facts.rows.push_back({"worst", formatShort(row.worst)});
        facts.rows.push_back({"bound", formatShort(row.demanded)});
    } else {
        facts.rows.push_back({"demanded", formatShort(row.demanded)});
        facts.rows.push_back({"set", std::isnan(row.set) ? "not a parameter here" : formatShort(row.set)});
    }
    facts.layer = input.layer.value;
    facts.kvHead = row.kvHead;
    return facts;
}

ViewTable TheoryView::table(const ViewInput& input, const ParameterValues&) const {
    std::vector<std::vector<std::string>> rows;
    const auto number = [](double x) { return std::isnan(x) ? std::string() : fmt::format("{:.6g}", x); };
    if (const auto data = dataAs<TheoryData>(input))
        for (const TheoryRow& row : data->rows) {
            const bool bound = row.kind == Kind::Bound;
            rows.push_back({std::to_string(row.kvHead), row.theorem, row.quantity, bound ? "" : number(row.demanded), number(row.set),
                            bound ? number(row.demanded) : "", number(row.measured), number(row.worst), number(row.margin()), row.formula});
        }
    return tableOf({"kv_head", "theorem", "quantity", "demanded", "set", "bound", "measured", "worst", "margin", "formula"}, std::move(rows));
}

} // namespace

const View& theoryView() {
    static const TheoryView view;
    return view;
}

} // namespace kvscope
