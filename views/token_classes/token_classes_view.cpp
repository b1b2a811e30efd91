// Which kinds of tokens a policy prefers: for every class the share of its tokens that each pane keeps, beside the
// share of all tokens that the pane keeps.
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"
#include "views/token_classes/token_classes_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

/// Classes with fewer tokens are drawn but not named in the finding: a share of a handful of tokens is chance.
constexpr std::int64_t kEnoughTokens = 10;

ParameterTable makeOptions() {
    constexpr const char* source = "Compactor App. B, KeyDiff Fig. 3";
    return {choiceRow("classes", "Classes",
                      {{"text", "Text", "words, digits, punctuation, line breaks"},
                       {"segment", "Segment", "system, context, needle, question, answer"},
                       {"repeat", "Repeat", "first occurrence or seen before"},
                       {"position", "Position", "tenths of the tokens before the cut"}},
                      Stage::Select, "What tokens are sorted by.", source),
            choiceRow("share", "Share",
                      {{"of_class", "Of the class", "kept tokens of the class over all of its tokens"},
                       {"of_kept", "Of the kept list", "kept tokens of the class over all kept tokens"}},
                      Stage::Select, "What a bar measures.", source)};
}

/// Kept tokens of every class that has tokens before the cut.
struct Tally {
    struct Row {
        std::string name;
        std::int64_t tokens = 0;
        std::vector<std::int64_t> kept; ///< per pane
    };
    std::vector<Row> rows;
    std::vector<const PaneData*> panes;
    std::vector<std::int64_t> keptOf; ///< per pane, all classes
    std::int64_t visible = 0;
    bool ofKept = false;

    double share(std::size_t row, std::size_t pane) const {
        const auto whole = ofKept ? keptOf[pane] : rows[row].tokens;
        return whole > 0 ? static_cast<double>(rows[row].kept[pane]) / static_cast<double>(whole) : 0;
    }
    /// The share that a policy blind to classes would have.
    double blind(std::size_t row, std::size_t pane) const {
        return static_cast<double>(ofKept ? rows[row].tokens : keptOf[pane]) / static_cast<double>(visible);
    }
};

TokenClasses chosenClasses(const ViewInput& input, const std::string& scheme) {
    const auto data = dataAs<TokenClassesData>(input);
    if (scheme == "segment") return data->segments;
    if (scheme == "repeat") return data->repeats;
    return scheme == "text" ? data->text : classesByDecile(input.cut.token, input.cut.token);
}

Tally tallyOf(const ViewInput& input, const ParameterValues& options) {
    const TokenClasses classes = chosenClasses(input, options.choice("classes"));
    Tally tally;
    tally.panes = readyPanes(input);
    tally.visible = input.cut.token;
    tally.ofKept = options.choice("share") == "of_kept";
    for (const std::string& name : classes.names)
        tally.rows.push_back({name, 0, std::vector<std::int64_t>(tally.panes.size(), 0)});
    for (std::int64_t token = 0; token < tally.visible; ++token) ++tally.rows[classes.classOf[token]].tokens;
    for (std::size_t p = 0; p < tally.panes.size(); ++p) {
        tally.keptOf.push_back(0);
        for (const TokenIndex token : keptTokens(input, *tally.panes[p]))
            if (token < tally.visible) { // a recorded list may have another cut
                ++tally.rows[classes.classOf[token]].kept[p];
                ++tally.keptOf[p];
            }
    }
    std::erase_if(tally.rows, [](const Tally::Row& row) { return row.tokens == 0; });
    return tally;
}

constexpr double kLegendHeight = 24, kTickRow = 20, kTitleRow = 16, kProvenance = 16,
                 kTitleHeight = 150;            ///< lower pictures have no title
constexpr double kLeastBar = 3, kLeastRow = 12; ///< heights; a row holds a name
const TextStyle kLabel{FontFace::Interface, 11}, kNumber{FontFace::Monospace, 10};

struct Layout {
    PlotFrame frame;
    AxesStyle style;
    double pixel = 1; ///< of the screen, in logical pixels: bars begin and end on them
    double rowPitch = 0, barPitch = 0, barHeight = 0;
    bool counts = true, title = true;
    std::vector<std::size_t> rows; ///< of the tally, those that are drawn
    std::size_t leftOut = 0;

    double down(double length) const { return std::floor(length / pixel + 1e-9) * pixel; }
    double top(std::size_t place) const { return frame.plot.y + rowPitch * static_cast<double>(place); }
    Box bar(std::size_t place, std::size_t pane, std::size_t panes, double share) const {
        const double bars = barPitch * static_cast<double>(panes - 1) + barHeight;
        const double y = top(place) + down((rowPitch - bars) / 2) + barPitch * static_cast<double>(pane);
        return {frame.plot.x, y, frame.toPixels(share, 0).x - frame.plot.x, barHeight};
    }
};

/// The largest difference between the share of a pane in this class and the share of a blind policy.
double farthestFromBlind(const Tally& tally, std::size_t row) {
    double most = 0;
    for (std::size_t pane = 0; pane < tally.panes.size(); ++pane)
        most = std::max(most, std::abs(tally.share(row, pane) - tally.blind(row, pane)));
    return most;
}

/// Places the rows in order: all, or those that differ most, with a line about the others.
void placeRows(Layout& layout, const Tally& tally) {
    const auto panes = static_cast<double>(tally.panes.size());
    const double least = std::max(kLeastRow, panes * kLeastBar + 2), height = layout.frame.plot.height;
    for (std::size_t row = 0; row < tally.rows.size(); ++row) layout.rows.push_back(row);
    const auto fitting = static_cast<std::size_t>(std::max(1.0, std::floor(height / least)));
    if (fitting < layout.rows.size()) {
        const auto kept = static_cast<std::size_t>(std::max(1.0, std::floor((height - kLeastRow) / least)));
        std::ranges::stable_sort(layout.rows, [&](std::size_t a, std::size_t b) {
            return farthestFromBlind(tally, a) > farthestFromBlind(tally, b);
        });
        layout.leftOut = layout.rows.size() - kept;
        layout.rows.resize(kept);
        std::ranges::sort(layout.rows);
    }
    const double line = layout.leftOut > 0 ? kLeastRow : 0;
    layout.rowPitch = layout.down((height - line) / static_cast<double>(std::max<std::size_t>(1, layout.rows.size())));
    const double between = std::max(2.0, 0.24 * (layout.rowPitch - least + 2)); // high rows have wider gaps
    layout.barPitch = std::max(layout.pixel, layout.down((layout.rowPitch - between) / std::max(1.0, panes)));
    layout.barHeight = layout.barPitch >= kLeastBar + 1 ? layout.barPitch - 1 : layout.barPitch;
    layout.frame.plot.height = layout.rowPitch * static_cast<double>(layout.rows.size()) + line;
}

Layout layoutOf(const Tally& tally, const std::vector<LegendEntry>& legend, const Viewport& viewport) {
    const TextService& text = *viewport.text;
    double names = 0, highest = 0;
    for (std::size_t row = 0; row < tally.rows.size(); ++row) {
        names = std::max(names, text.measure(tally.rows[row].name, kLabel).width);
        for (std::size_t pane = 0; pane < tally.panes.size(); ++pane)
            highest = std::max({highest, tally.share(row, pane), tally.blind(row, pane)});
    }
    Layout layout;
    layout.pixel = 1 / std::max(1.0, viewport.pixelScale);
    layout.counts = viewport.width >= 300;
    layout.title = viewport.height >= kTitleHeight;
    const double counts = layout.counts ? text.measure("00,000", kNumber).width + 10 : 6;
    const double left = std::ceil(12 + std::min(names, 0.4 * viewport.width) + counts);
    const double bottom = kTickRow + (layout.title ? kTitleRow : 0) + (viewport.forExport ? kProvenance : 0);
    layout.frame.x = {0, std::min(1.0, highest * 1.04 + 1e-9), AxisScale::Linear,
                      tally.ofKept ? "Share of the kept list, %" : "Kept share of the class, %"};
    layout.frame.y = {0, 1, AxisScale::Linear, {}};
    const double top = kLegendHeight + furtherLegendRows(viewport, legend);
    layout.frame.plot = {left, top, viewport.width - left - 16, std::max(kLeastRow, viewport.height - top - bottom)};
    layout.style.forPaper = viewport.theme == ThemeId::Paper;
    placeRows(layout, tally);
    return layout;
}

/// The shares of blind policies, one straight line for all panes whose shares differ by rounding only.
void drawBlind(SceneBuilder& builder, const Tally& tally, std::size_t place, const Layout& layout, const Theme& theme) {
    constexpr double kRounding = 0.005;
    const std::size_t row = layout.rows[place], panes = tally.panes.size();
    for (std::size_t first = 0, end = 0; first < panes; first = end) {
        double sum = 0;
        for (end = first; end < panes && std::abs(tally.blind(row, end) - tally.blind(row, first)) < kRounding; ++end)
            sum += tally.blind(row, end);
        const double x = std::floor(layout.frame.toPixels(sum / static_cast<double>(end - first), 0).x) + 0.5;
        const double top = layout.bar(place, first, panes, 0).y - 1,
                     bottom = layout.bar(place, end - 1, panes, 0).bottom() + 1;
        builder.line({x, top}, {x, bottom}, {theme.casing, 3, {}});
        builder.line({x, top}, {x, bottom}, {theme.ink, 1, {}});
    }
}

void drawRow(SceneBuilder& builder, const ViewInput& input, const Tally& tally, std::size_t place, const Layout& layout,
             const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const std::size_t row = layout.rows[place], panes = tally.panes.size();
    const double middle = layout.top(place) + layout.rowPitch / 2;
    const double numberRight = layout.frame.plot.x - 8;
    const std::string count = layout.counts ? formatCount(tally.rows[row].tokens) : "";
    builder.label({numberRight, middle}, count, kNumber, theme.text2, HorizontalAlign::Right);
    const double room = numberRight - builder.width(count, kNumber) - 14;
    builder.label({8, middle}, builder.elide(tally.rows[row].name, kLabel, room), kLabel, theme.text1);
    for (std::size_t pane = 0; pane < panes; ++pane) {
        const Box bar = layout.bar(place, pane, panes, tally.share(row, pane));
        const PickId pick{PickId::Kind::Cell, static_cast<std::int64_t>(row * panes + pane)};
        builder.rectangle({bar.x, bar.y, layout.frame.plot.width, bar.height}, kTransparent, {}, 0,
                          pick); // a short bar is hit too
        const PaneIdentity identity = identityOf(input, *tally.panes[pane], viewport.theme);
        if (bar.width > 0 && bar.height > kLeastBar + 2)
            identity.drawArea(builder, bar, pick);
        else if (bar.width > 0)
            identity.drawThinBar(builder, bar);
    }
    drawBlind(builder, tally, place, layout, theme);
}

void drawScale(SceneBuilder& builder, const Layout& layout, const std::string& title, const Theme& theme) {
    const Box& plot = layout.frame.plot;
    const TextStyle tick{layout.style.forPaper ? FontFace::Interface : FontFace::Monospace, 10};
    builder.line({plot.x, plot.y}, {plot.x, plot.bottom()}, {theme.axis, 1, {}});
    builder.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, {theme.axis, 1, {}});
    for (const Tick& at : linearTicks(0, 100 * layout.frame.x.high, plot.width < 260 ? 4 : 7)) {
        const double x = layout.frame.toPixels(at.value / 100, 0).x;
        builder.line({x, plot.bottom()}, {x, plot.bottom() + 4}, {theme.axis, 1, {}});
        builder.text({x, plot.bottom() + 15}, at.label, tick, theme.text2, HorizontalAlign::Centre);
    }
    if (layout.title)
        builder.text({plot.x + plot.width / 2, plot.bottom() + 30}, builder.elide(title, kLabel, plot.width), kLabel,
                     theme.text2, HorizontalAlign::Centre);
    if (layout.leftOut > 0)
        builder.label(
            {plot.x + 5, plot.bottom() - kLeastRow / 2},
            builder.elide(fmt::format("{} more lie nearer to the tick", layout.leftOut), kLabel, plot.width - 5),
            kLabel, theme.text2);
}

std::string percent(double share) { return share == 1 ? "100 %" : formatPercent(share); }

class TokenClassesView final : public View {
public:
    TokenClassesView()
        : View({.id = "token_classes",
                .name = "Token classes",
                .summary = "What each pane keeps of words, digits, punctuation, segments, repeats and positions",
                .paper = "Compactor App. B (separators), KeyDiff Fig. 3 (what stands apart)",
                .group = ViewGroup::Kept,
                .data = "token_classes"},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        if (const std::string why = whyNoData(input, "Sorting the tokens into classes…"); !why.empty()) return why;
        if (!readyPanes(input).empty()) return "";
        return input.panes.empty() ? kNoPane : whyEmpty(input, &input.panes.front());
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const Theme& theme = themeOf(viewport.theme);
        const Tally tally = tallyOf(input, options);
        std::vector<LegendEntry> legend;
        for (const PaneData* pane : tally.panes)
            legend.push_back(identityOf(input, *pane, viewport.theme).legend(letteredName(*pane)));
        Layout layout = layoutOf(tally, legend, viewport);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const std::string axis = layout.frame.x.title,
                          words = tally.ofKept ? "share of all tokens" : "kept share of all tokens",
                          full = axis + "; tick = " + words;
        const bool inTitle = layout.title && builder.width(full, kLabel) <= layout.frame.plot.width;
        if (!inTitle) { // no room there: the legend names the line
            legend.push_back(lineEntry(words, {theme.ink, 1, {}}));
            layout = layoutOf(tally, legend, viewport);
        }
        drawTopLegend(builder, viewport, legend, 12);
        for (std::size_t place = 0; place < layout.rows.size(); ++place)
            drawRow(builder, input, tally, place, layout, viewport);
        drawScale(builder, layout, inTitle ? full : axis, theme);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const Tally tally = tallyOf(input, options);
        std::size_t row = tally.rows.size(), pane = 0;
        double most = 0;
        for (std::size_t r = 0; r < tally.rows.size(); ++r)
            for (std::size_t p = 0; p < tally.panes.size() && tally.rows[r].tokens >= kEnoughTokens; ++p)
                if (const double off = std::abs(tally.share(r, p) - tally.blind(r, p)); off > most)
                    row = r, pane = p, most = off;
        if (std::ranges::none_of(tally.rows, [](const Tally::Row& r) { return r.tokens >= kEnoughTokens; }))
            return fmt::format("No class has {} tokens before the cut", kEnoughTokens);
        if (row == tally.rows.size()) return "Every pane keeps of every class the share that it keeps of all tokens";
        const Tally::Row& worst = tally.rows[row];
        const std::string share = percent(tally.share(row, pane)), blind = percent(tally.blind(row, pane));
        const std::string count = formatCount(worst.tokens), name = nameAmong(tally.panes, *tally.panes[pane]);
        return tally.ofKept
                   ? fmt::format("{} of what {} keeps is {}, which is {} of all tokens", share, name, worst.name, blind)
                   : fmt::format("{} keeps {} of the {} tokens of class “{}” and {} of all tokens", name, share, count,
                                 worst.name, blind);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        std::vector<std::string> columns = {"class", "tokens"};
        if (!whyNoPicture(input, options).empty()) return tableOf(std::move(columns), {});
        const Tally tally = tallyOf(input, options);
        for (const PaneData* pane : tally.panes)
            for (const char* what : {"kept", tally.ofKept ? "share of kept" : "share of class"})
                columns.push_back(fmt::format("{} {} {}", pane->letter, paneTitle(*pane), what));
        std::vector<std::vector<std::string>> rows;
        for (std::size_t r = 0; r < tally.rows.size(); ++r) {
            rows.push_back({tally.rows[r].name, std::to_string(tally.rows[r].tokens)});
            for (std::size_t p = 0; p < tally.panes.size(); ++p) {
                rows.back().push_back(std::to_string(tally.rows[r].kept[p]));
                rows.back().push_back(fmt::format("{:.6f}", tally.share(r, p)));
            }
        }
        return tableOf(std::move(columns), std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        const PickId pick = pickAt(scene, at, 0);
        if (pick.kind != PickId::Kind::Cell) return {};
        const Tally tally = tallyOf(input, options);
        const auto row = static_cast<std::size_t>(pick.index) / tally.panes.size(),
                   pane = static_cast<std::size_t>(pick.index) % tally.panes.size();
        if (row >= tally.rows.size()) return {};
        PointFacts facts;
        facts.rows = {
            {"class", tally.rows[row].name},
            {letteredName(*tally.panes[pane]), fmt::format("{} of {} kept", formatCount(tally.rows[row].kept[pane]),
                                                           formatCount(tally.rows[row].tokens))},
            {tally.ofKept ? "share of the kept list" : "kept share", percent(tally.share(row, pane))},
            {tally.ofKept ? "share of all tokens" : "kept share of all tokens", percent(tally.blind(row, pane))}};
        return facts;
    }

    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                     Point at) const override {
        const PointFacts facts = factsAt(input, options, scene, at);
        if (facts.rows.empty()) return {};
        const TokenClasses classes = chosenClasses(input, options.choice("classes"));
        std::vector<TokenIndex> tokens;
        for (TokenIndex token = 0; token < input.cut.token; ++token)
            if (classes.names[classes.classOf[token]] == facts.rows.front().second) tokens.push_back(token);
        return tokens;
    }
};

} // namespace

const View& tokenClassesView() { return onlyOne<TokenClassesView>(); }

} // namespace kvscope
