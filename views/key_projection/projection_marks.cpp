// The marks of the key projection and its legend.
#include "views/key_projection/projection_marks.h"

#include "core/run/run.h"
#include "views/common/token_marks.h"

#include <fmt/format.h>

#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

namespace kvscope {

ProjectionMarks makeMarks(const ViewInput& input, const PaneData& pane, const ParameterValues& options) {
    ProjectionMarks marks;
    marks.xAxis = static_cast<int>(options.integer("x_component")) - 1;
    marks.yAxis = static_cast<int>(options.integer("y_component")) - 1;
    const int last = static_cast<int>(projectionOf(input).keys.shape[1]) - 1; // narrow heads have fewer components
    marks.xAxis = std::min(marks.xAxis, last);
    marks.yAxis = std::min(marks.yAxis, last);
    if (projectionOf(input).tsne) marks.xAxis = 0, marks.yAxis = 1; // an embedding has no components to choose among
    marks.retainedOnly = options.flag("retained_only");
    marks.showQueries = options.flag("show_queries");
    marks.showAfterCut = options.flag("show_after_cut");
    marks.states = tokenStates(input, pane);
    marks.colourBy = options.choice("colour_by");
    addShades(input, pane, ValueRange::parse(options.text(kValueRangeOption)), marks);
    marks.tinted = options.flag("tint") && !marks.category.empty();
    marks.evictedTotal = std::ranges::count(marks.states, TokenState::Evicted);
    marks.protectedTotal = std::ranges::count(marks.states, TokenState::Protected);
    marks.keptTotal = std::ranges::count(marks.states, TokenState::Kept);
    return marks;
}

const ProjectionData& projectionOf(const ViewInput& input) {
    assert(dataAs<ProjectionData>(input));
    return static_cast<const ProjectionData&>(*input.data.value);
}

std::vector<TintSite> centreSites(const ProjectionData& projection, const ProjectionMarks& marks, ThemeId theme) {
    std::vector<TintSite> sites;
    for (const TokenIndex centre : projection.centres)
        sites.push_back({keyPoint(projection, marks, centre),
                         categoryColour(static_cast<std::size_t>(marks.category[centre]), theme)});
    return sites;
}

std::string tintNote(const ProjectionData& projection, const ProjectionMarks& marks) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < projection.cluster.size(); ++i)
        points.push_back(keyPoint(projection, marks, static_cast<TokenIndex>(i)));
    const std::vector<std::size_t> nearest = nearestSites(centreSites(projection, marks, ThemeId::Light), points);
    const auto same =
        std::inner_product(nearest.begin(), nearest.end(), projection.cluster.begin(), std::int64_t{0}, std::plus<>(),
                           [](std::size_t here, std::int32_t inHead) { return std::cmp_equal(here, inHead) ? 1 : 0; });
    return "tint: the nearest centre in this plane, of " +
           formatFixed(100.0 * static_cast<double>(same) / static_cast<double>(points.size()), 0) +
           " % of the tokens also in the head";
}

Viewport::Range fullRange(const ViewInput& input, const ProjectionMarks& marks) {
    const ProjectionData& projection = projectionOf(input);
    const bool withQueries = marks.showQueries && !projection.queries.empty();
    return *projection.memo.get("range", fmt::format("{} {} {}", marks.xAxis, marks.yAxis, withQueries), [&] {
        Viewport::Range range{INFINITY, -INFINITY, INFINITY, -INFINITY};
        const auto include = [&](const HostTensor& points) {
            const std::int64_t components = points.shape[1];
            for (std::int64_t i = 0; i < points.shape[0]; ++i) {
                const double x = points.data[i * components + marks.xAxis];
                const double y = points.data[i * components + marks.yAxis];
                range = {std::min(range.xMin, x), std::max(range.xMax, x), std::min(range.yMin, y),
                         std::max(range.yMax, y)};
            }
        };
        include(projection.keys);
        if (withQueries) include(projection.queries);
        const double margin = 0.04 * std::max({range.xMax - range.xMin, range.yMax - range.yMin, 1e-6});
        return std::make_shared<Viewport::Range>(
            Viewport::Range{range.xMin - margin, range.xMax + margin, range.yMin - margin, range.yMax + margin});
    });
}

std::optional<AnchorMark> anchorMark(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks) {
    const HostTensor& anchors = pane.result->anchor;
    const ProjectionData& projection = projectionOf(input);
    // An anchor of rotated keys has no place among unrotated keys, and no vector has a place in an embedding.
    if (anchors.empty() || projection.source != "keys" || projection.tsne) return {};
    const auto d = static_cast<std::size_t>(anchors.shape[1]);
    const float* anchor = anchors.data.data() + static_cast<std::size_t>(input.kvHead.value) * d;
    const ParameterValues& values = pane.result->request.policy.values;
    AnchorMark mark;
    mark.scaled = values.has("anchor") && values.choice("anchor") != "mean" && values.choice("anchor") != "median";
    double anchorSquared = 0, meanSquared = 0;
    for (std::size_t c = 0; c < d; ++c) {
        anchorSquared += static_cast<double>(anchor[c]) * anchor[c];
        meanSquared += static_cast<double>(projection.axes.mean.data[c]) * projection.axes.mean.data[c];
    }
    const double factor = mark.scaled && anchorSquared > 0 ? std::sqrt(meanSquared / anchorSquared) : 1;
    const auto along = [&](int axis) {
        double sum = 0;
        for (std::size_t c = 0; c < d; ++c)
            sum += (factor * anchor[c] - projection.axes.mean.data[c]) *
                   projection.axes.axes.data[static_cast<std::size_t>(axis) * d + c];
        return sum;
    };
    mark.at = {along(marks.xAxis), along(marks.yAxis)};
    return mark;
}

namespace {

LegendEntry evictedEntry(const ProjectionMarks& marks, Colour colour) {
    const std::string label = "evicted " + formatCount(marks.evictedTotal);
    if (marks.crowd.density) return areaEntry(label + ", density", withAlpha(colour, 0.6));
    return ringEntry(label, {colour, 1.2, {}});
}

LegendEntry keptEntry(const ProjectionMarks& marks, Colour colour) {
    const std::string label = "kept " + formatCount(marks.keptTotal);
    if (marks.crowd.keptToo) return areaEntry(label + ", density", withAlpha(colour, 0.6));
    return {label, Marker::Circle, colour, {}, 3, false};
}

/// Legend entries that every colouring has.
void addOverlays(std::vector<LegendEntry>& entries, const ViewInput& input, const ProjectionMarks& marks,
                 const Theme& theme) {
    if (!input.focus.selected.empty())
        entries.push_back({selectionWord(input.focus), Marker::Circle, theme.casing, {theme.ink, 1.3, {}}, 4});
    if (marks.showQueries && !projectionOf(input).queries.empty())
        entries.insert(entries.end(), {{"queries", Marker::TriangleUp, kTransparent, {theme.query, 1, {}}, 3},
                                       {"query mean", Marker::TriangleUp, theme.query, {theme.text1, 1, {}}, 4.5}});
}

/// The legend of marks coloured by their state, for these panes together; without counts, which differ between panes.
std::vector<LegendEntry> stateLegend(const ViewInput& input, const std::vector<const PaneData*>& panes,
                                     const ProjectionMarks& marks, bool isCounted, const Theme& theme) {
    std::vector<LegendEntry> entries{keptEntry(marks, theme.kept)};
    if (!marks.retainedOnly) entries.push_back(evictedEntry(marks, theme.evicted));
    const auto protects = [&](const PaneData* pane) {
        return !pane->result->selection.heads[input.kvHead.value].protectedTokens.empty();
    };
    if (std::ranges::any_of(panes, protects))
        entries.push_back({"protected " + formatCount(marks.protectedTotal), Marker::Square, theme.protectedToken, {}});
    for (LegendEntry& entry : entries)
        if (!isCounted) entry.label.resize(entry.label.find(' '));
    for (const PaneData* pane : panes)
        if (const auto anchor = anchorMark(input, *pane, marks)) {
            const char* words = anchor->scaled ? "anchor direction" : "anchor";
            entries.push_back({words, Marker::Star, theme.anchor, {theme.text1, 1, {}}, 5});
            break;
        }
    addOverlays(entries, input, marks, theme);
    if (marks.showAfterCut) entries.push_back({"after the cut", Marker::Circle, withAlpha(theme.text3, 0.5), {}, 2});
    return entries;
}

} // namespace

std::vector<LegendEntry> legendOf(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                                  const Theme& theme) {
    std::vector<LegendEntry> entries;
    const bool clusters = !marks.category.empty();
    if (!marks.shade.empty() || clusters) {
        const Colour sample = clusters ? theme.text2 : colourMap("viridis", 0.5);
        entries = {keptEntry(marks, sample), evictedEntry(marks, sample)};
        if (!clusters) entries.push_back(areaEntry("colour: " + shadeTitle(pane, marks), colourMap("viridis", 0.9)));
        if (const ProjectionData& data = projectionOf(input); clusters)
            entries.push_back(markEntry(formatCount(std::ssize(data.centres)) + " greedy centres, radius " +
                                            formatShort(data.radius) +
                                            (data.centres.size() > kCategoryColours ? "; colours repeat" : ""),
                                        Marker::Diamond, theme.text2, 4, {theme.ink, 1.2, {}}));
        addOverlays(entries, input, marks, theme);
        return entries;
    }
    return stateLegend(input, {&pane}, marks, true, theme);
}

std::vector<LegendEntry> sharedLegend(const ViewInput& input, const ProjectionMarks& marks, const Theme& theme) {
    return stateLegend(input, readyPanes(input), marks, false, theme);
}

DensityGrid::DensityGrid(const Viewport::Range& range, std::size_t categories)
    : m_range(range), m_side(std::max(range.xMax - range.xMin, range.yMax - range.yMin) / kCells),
      m_columns(static_cast<std::size_t>(std::max(1.0, std::ceil((range.xMax - range.xMin) / m_side)))),
      m_rows(static_cast<std::size_t>(std::max(1.0, std::ceil((range.yMax - range.yMin) / m_side)))),
      m_categories(categories), m_tallies(m_columns * m_rows), m_byCategory(m_tallies.size() * categories, 0) {}

Viewport::Range DensityGrid::covered() const {
    return {m_range.xMin, m_range.xMin + m_side * static_cast<double>(m_columns),
            m_range.yMax - m_side * static_cast<double>(m_rows), m_range.yMax};
}

DensityGrid::Cell DensityGrid::cell(std::size_t index) const {
    Cell cell;
    const Tally& tally = m_tallies[index];
    cell.count = tally.count;
    cell.shade = tally.valued > 0 ? static_cast<float>(tally.shades / static_cast<double>(tally.valued)) : NAN;
    const auto first = m_byCategory.begin() + static_cast<std::ptrdiff_t>(index * m_categories);
    cell.category =
        static_cast<std::size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(m_categories)) - first);
    return cell;
}

ImageItem DensityGrid::painted(const Box& box, const std::vector<Colour>& colours) const {
    const double fullest = std::log1p(static_cast<double>(m_most));
    std::vector<double> strengths{0}; // by count
    for (std::int64_t count = 1; count <= m_most; ++count)
        strengths.push_back(0.2 + 0.75 * std::log1p(static_cast<double>(count)) / fullest);
    auto rgba = std::make_shared<std::vector<std::uint8_t>>(colours.size() * 4, std::uint8_t{0}); // kTransparent
    for (std::size_t i = 0; i < colours.size(); ++i) {
        if (m_tallies[i].count == 0) continue;
        const Colour colour = colours[i];
        std::uint8_t* pixel = rgba->data() + 4 * i;
        pixel[0] = colour.r, pixel[1] = colour.g, pixel[2] = colour.b;
        pixel[3] = static_cast<std::uint8_t>(colour.a * strengths[m_tallies[i].count] + 0.5); // as withAlpha rounds
    }
    ImageItem image;
    image.box = box;
    image.width = static_cast<int>(m_columns);
    image.height = static_cast<int>(m_rows);
    image.rgba = std::move(rgba);
    return image;
}

} // namespace kvscope
