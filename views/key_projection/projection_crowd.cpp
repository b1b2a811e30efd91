// A hundred thousand rings are a blot. Where more evicted tokens lie in the range than can be told apart, they are
// counted in cells and shown as a density; zooming in brings the rings back.
#include "views/key_projection/projection_crowd.h"

#include "views/scene/axes.h"
#include "views/scene/categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

bool isInside(const Viewport::Range& range, Point p) {
    return p.x >= range.xMin && p.x <= range.xMax && p.y >= range.yMin && p.y <= range.yMax;
}

template <class Use> void forEachEvicted(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport::Range& range, const Use& use) {
    for (std::size_t i = 0; i < marks.states.size(); ++i) {
        if (marks.states[i] != TokenState::Evicted)
            continue;
        if (const Point at = keyPoint(projection, marks, static_cast<TokenIndex>(i)); isInside(range, at))
            use(i, at);
    }
}

std::shared_ptr<const DensityGrid> densityIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport::Range& range) {
    auto grid = std::make_shared<DensityGrid>(range, marks.category.empty() ? 0 : kCategoryColours);
    forEachEvicted(marks, projection, range, [&](std::size_t token, Point at) {
        grid->add(at, marks.shade.empty() ? NAN : marks.shade[token],
                  marks.category.empty() ? 0 : static_cast<std::size_t>(marks.category[token]));
    });
    return grid;
}

} // namespace

Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport::Range& range, const std::string& choice) {
    Crowd crowd;
    if (marks.retainedOnly)
        return crowd;
    forEachEvicted(marks, projection, range, [&](std::size_t, Point) { ++crowd.inRange; });
    const bool many = crowd.inRange > kMostEvictedMarks;
    if (choice == "density" || (choice == "auto" && many))
        crowd.density = densityIn(marks, projection, range);
    else if (many)
        crowd.stride = (crowd.inRange + kMostEvictedMarks - 1) / kMostEvictedMarks;
    return crowd;
}

std::string crowdNote(const ProjectionMarks& marks) {
    const Crowd& crowd = marks.crowd;
    if (crowd.density)
        return fmt::format("{} evicted as a density, up to {} in a cell; all kept shown", formatCount(crowd.inRange), formatCount(crowd.density->most()));
    if (crowd.stride == 1)
        return "";
    return fmt::format("showing {} of {} evicted; all kept shown", formatCount((crowd.inRange + crowd.stride - 1) / crowd.stride),
                       formatCount(crowd.inRange));
}

} // namespace kvscope
