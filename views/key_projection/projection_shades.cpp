// Colours of the key projection by a value: position, score, norm, or number of panes that keep the token.
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "views/key_projection/projection_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

constexpr float kNone = NAN;

/// Maps values to 0..1 between the smallest and the largest value before the cut, or between the chosen ends.
void stretch(std::vector<float>& values, std::int64_t visible, const std::string& quantity, const ValueRange& chosen,
             ProjectionMarks& marks) {
    marks.scale = std::make_shared<const ValueScale>(std::vector<double>(values.begin(), values.begin() + visible),
                                                     false, quantity, "tokens", "viridis", chosen);
    for (float& value : values)
        value = std::isfinite(value) ? static_cast<float>(marks.scale->place(static_cast<double>(value))) : kNone;
}

/// A colour for each centre while there are enough; then the colour whose centres are farthest away.
std::vector<std::int32_t> categoriesOf(const ProjectionData& data, const ProjectionMarks& marks) {
    std::vector<std::int32_t> category;
    std::vector<Point> places;
    for (const TokenIndex centre : data.centres) {
        places.push_back(keyPoint(data, marks, centre));
        if (category.size() < kCategoryColours) {
            category.push_back(static_cast<std::int32_t>(category.size()));
            continue;
        }
        std::array<double, kCategoryColours> nearest;
        nearest.fill(std::numeric_limits<double>::infinity());
        for (std::size_t other = 0; other < category.size(); ++other) {
            double& best = nearest[category[other]];
            best = std::min(best, std::hypot(places[other].x - places.back().x, places[other].y - places.back().y));
        }
        category.push_back(static_cast<std::int32_t>(std::ranges::max_element(nearest) - nearest.begin()));
    }
    return category;
}

std::vector<float> scoresOf(const ViewInput& input, const PaneData& pane, std::size_t n) {
    std::vector<float> scores(n, kNone);
    const HostTensor& table = pane.result->scores;
    if (table.empty()) return scores;
    const std::int64_t width = table.shape[1];
    std::copy_n(table.data.begin() + input.kvHead.value * width,
                std::min<std::int64_t>(width, static_cast<std::int64_t>(n)), scores.begin());
    return scores;
}

bool isInside(const Viewport::Range& range, Point p) {
    return p.x >= range.xMin && p.x <= range.xMax && p.y >= range.yMin && p.y <= range.yMax;
}

using StateCounts = std::array<std::int32_t, 4>; ///< by placeOf(state)

std::size_t placeOf(TokenState state) { return static_cast<std::size_t>(state); }

void countCrowd(Crowd& crowd, const StateCounts& inside, const StateCounts& beyond) {
    crowd.kept = inside[placeOf(TokenState::Kept)];
    crowd.evicted = inside[placeOf(TokenState::Evicted)];
    crowd.beyond =
        std::accumulate(beyond.begin(), beyond.end(), std::int64_t{0}) - beyond[placeOf(TokenState::AfterCut)];
}

using Cells = std::vector<std::uint16_t>;
static_assert(std::size_t{DensityGrid::kCells + 1} * (DensityGrid::kCells + 1) < 65'536);

/// The cell of every token. Cells do not depend on what is kept.
std::shared_ptr<const Cells> cellsOf(const ProjectionMarks& marks, const ProjectionData& projection,
                                     const DensityGrid& grid) {
    const Viewport::Range& range = marks.range;
    const std::string key =
        fmt::format("{} {} {} {} {} {}", marks.xAxis, marks.yAxis, range.xMin, range.xMax, range.yMin, range.yMax);
    return projection.memo.get("cells", key, [&] {
        auto cells = std::make_shared<Cells>(marks.states.size());
        for (std::size_t i = 0; i < cells->size(); ++i)
            (*cells)[i] =
                static_cast<std::uint16_t>(grid.cellOf(keyPoint(projection, marks, static_cast<TokenIndex>(i))));
        return cells;
    });
}

void addShaded(DensityGrid& grid, const Cells& cells, const ProjectionMarks& marks, TokenState state) {
    for (std::size_t i = 0; i < cells.size(); ++i)
        if (marks.states[i] == state && cells[i] < grid.cells())
            grid.add(cells[i], marks.shade.empty() ? 0 : marks.shade[i],
                     marks.category.empty() ? 0 : static_cast<std::size_t>(marks.category[i]));
}

} // namespace

void checkShadeRange(std::string_view text) {
    std::vector<std::string_view> known{"position", "norm", "recorded"};
    for (const Policy* policy : allPolicies()) known.push_back(policy->card().id);
    checkValueRange(text, known, "the key projection");
}

void addShades(const ViewInput& input, const PaneData& pane, const ValueRange& chosen, ProjectionMarks& marks) {
    const std::size_t n = marks.states.size();
    const std::int64_t visible = pane.result->visible;
    if (marks.colourBy == "position") {
        for (std::size_t i = 0; i < n; ++i) marks.shade.push_back(static_cast<float>(i));
        stretch(marks.shade, visible, "position", chosen, marks);
    } else if (marks.colourBy == "score") {
        marks.shade = scoresOf(input, pane, n);
        // Scores of two policies are two quantities; scores of a recorded list need not be those of a known policy.
        stretch(marks.shade, visible, pane.result->request.recorded ? "recorded" : pane.policyId, chosen, marks);
    } else if (marks.colourBy == "norm") {
        marks.shade = projectionOf(input).norms;
        marks.shade.resize(n, kNone);
        stretch(marks.shade, visible, "norm", chosen, marks);
    } else if (marks.colourBy == "cluster") {
        const ProjectionData& data = projectionOf(input);
        marks.categoryOfCentre = categoriesOf(data, marks);
        for (const std::int32_t cluster : data.cluster) // empty until they are computed: marks then show the state
            marks.category.push_back(marks.categoryOfCentre[cluster]);
    } else if (marks.colourBy == "panes") {
        const auto panes = readyPanes(input);
        marks.shade.assign(n, 0);
        for (const PaneData* one : panes)
            for (const TokenIndex token : keptTokens(input, *one))
                marks.shade[token] += 1.0F / static_cast<float>(panes.size());
        for (std::size_t i = static_cast<std::size_t>(visible); i < n; ++i) marks.shade[i] = kNone;
        for (std::size_t count = 0; count <= panes.size(); ++count)
            marks.shadeTicks.push_back(
                {static_cast<double>(count) / static_cast<double>(panes.size()), std::to_string(count)});
    }
}

std::string shadeTitle(const PaneData& pane, const ProjectionMarks& marks) {
    if (marks.colourBy == "score") return scoreTitle(pane);
    return marks.colourBy == "panes" ? "panes that keep it" : marks.colourBy;
}

/// Counts tokens by cell and state. The counts tell whether there is a crowd and, when coloured by state, its density.
Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport& viewport,
              const std::string& choice) {
    constexpr double kPixelsOfMark = 12;
    const auto most = std::min(kMostMarks, static_cast<std::int64_t>(viewport.width * viewport.height / kPixelsOfMark));
    const bool mayBeDense =
        !marks.retainedOnly && (choice == "density" || (choice == "auto" && std::ssize(marks.states) > most));
    Crowd crowd;
    if (!mayBeDense) {
        StateCounts inside{}, beyond{};
        for (std::size_t i = 0; i < marks.states.size(); ++i) {
            const Point at = keyPoint(projection, marks, static_cast<TokenIndex>(i));
            ++(isInside(marks.range, at) ? inside : beyond)[placeOf(marks.states[i])];
        }
        countCrowd(crowd, inside, beyond);
        if (marks.retainedOnly) crowd.evicted = 0;
        if (crowd.evicted > most) crowd.stride = (crowd.evicted + most - 1) / most;
        return crowd;
    }
    auto grid = std::make_shared<DensityGrid>(marks.range, marks.category.empty() ? 0 : kCategoryColours);
    const auto cells = cellsOf(marks, projection, *grid);
    struct Counts {
        std::int32_t evicted = 0, kept = 0;
    };
    std::vector<Counts> counts(grid->cells() + 1); // the last: beyond the range
    StateCounts inside{}, beyond{};
    for (std::size_t i = 0; i < cells->size(); ++i) {
        const TokenState state = marks.states[i];
        const std::size_t cell = (*cells)[i];
        ++(cell < grid->cells() ? inside : beyond)[placeOf(state)];
        counts[cell].evicted += state == TokenState::Evicted ? 1 : 0;
        counts[cell].kept += state == TokenState::Kept ? 1 : 0;
    }
    countCrowd(crowd, inside, beyond);
    crowd.keptToo = crowd.kept > most;
    if (choice != "density" && crowd.evicted <= most && !crowd.keptToo) return crowd;
    if (marks.shade.empty() && marks.category.empty()) {
        for (std::size_t cell = 0; cell < grid->cells(); ++cell) {
            const std::int32_t kept = crowd.keptToo ? counts[cell].kept : 0;
            grid->set(cell, counts[cell].evicted + kept, kept);
        }
    } else {
        addShaded(*grid, *cells, marks, TokenState::Evicted);
        if (crowd.keptToo) addShaded(*grid, *cells, marks, TokenState::Kept);
    }
    crowd.density = std::move(grid);
    return crowd;
}

std::string crowdNote(const ProjectionMarks& marks) {
    const Crowd& crowd = marks.crowd;
    if (crowd.density)
        return fmt::format("{} evicted{} as a density, up to {} in a cell{}", formatCount(crowd.evicted),
                           crowd.keptToo ? " and " + formatCount(crowd.kept) + " kept" : "",
                           formatCount(crowd.density->most()), crowd.keptToo ? "" : "; all kept shown");
    if (crowd.stride == 1) return "";
    return fmt::format("showing {} of {} evicted; all kept shown",
                       formatCount((crowd.evicted + crowd.stride - 1) / crowd.stride), formatCount(crowd.evicted));
}

} // namespace kvscope
