// Where too many tokens lie in the range for single marks, they are counted in cells and drawn as a density; zooming in
// shows the marks again. A few kept tokens among many evicted ones keep their marks.
#include "views/key_projection/projection_marks.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

bool isInside(const Viewport::Range& range, Point p) {
    return p.x >= range.xMin && p.x <= range.xMax && p.y >= range.yMin && p.y <= range.yMax;
}

template <class Use>
void forEach(TokenState state, const ProjectionMarks& marks, const ProjectionData& projection,
             const Viewport::Range& range, const Use& use) {
    for (std::size_t i = 0; i < marks.states.size(); ++i) {
        if (marks.states[i] != state) continue;
        if (const Point at = keyPoint(projection, marks, static_cast<TokenIndex>(i)); isInside(range, at)) use(i, at);
    }
}

std::int64_t count(TokenState state, const ProjectionMarks& marks, const ProjectionData& projection,
                   const Viewport::Range& range) {
    std::int64_t tokens = 0;
    forEach(state, marks, projection, range, [&](std::size_t, Point) { ++tokens; });
    return tokens;
}

std::shared_ptr<const DensityGrid> densityIn(const ProjectionMarks& marks, const ProjectionData& projection,
                                             const Viewport::Range& range, bool keptToo) {
    auto grid = std::make_shared<DensityGrid>(range, marks.category.empty() ? 0 : kCategoryColours);
    const auto addAll = [&](TokenState state, float shade) {
        forEach(state, marks, projection, range, [&](std::size_t token, Point at) {
            grid->add(at, marks.shade.empty() ? shade : marks.shade[token],
                      marks.category.empty() ? 0 : static_cast<std::size_t>(marks.category[token]));
        });
    };
    addAll(TokenState::Evicted, 0);
    if (keptToo) addAll(TokenState::Kept, 1);
    return grid;
}

} // namespace

Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport& viewport,
              const Viewport::Range& range, const std::string& choice) {
    constexpr double kPixelsOfMark = 12;
    const auto most = std::min(kMostMarks, static_cast<std::int64_t>(viewport.width * viewport.height / kPixelsOfMark));
    Crowd crowd;
    crowd.evicted = marks.retainedOnly ? 0 : count(TokenState::Evicted, marks, projection, range);
    crowd.kept = count(TokenState::Kept, marks, projection, range);
    const bool manyKept = crowd.kept > most, many = crowd.evicted > most || manyKept;
    if (!marks.retainedOnly && (choice == "density" || (choice == "auto" && many))) {
        crowd.keptToo = manyKept;
        crowd.density = densityIn(marks, projection, range, crowd.keptToo);
    } else if (crowd.evicted > most) {
        crowd.stride = (crowd.evicted + most - 1) / most;
    }
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
