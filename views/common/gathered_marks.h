#pragma once

#include "views/scene/scene.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Marks of one kind that are gathered first and become a point cloud then.
class GatheredMarks {
public:
    void add(Point at, std::int64_t id) {
        m_points->push_back(at);
        m_ids->push_back(id);
    }
    const std::vector<Point>& points() const { return *m_points; }

    PointCloudItem as(std::string name, PickId::Kind pickKind, Marker marker, double radius, Colour fill,
                      Stroke stroke) const {
        PointCloudItem cloud;
        cloud.points = m_points;
        cloud.ids = m_ids;
        cloud.pickKind = pickKind;
        cloud.marker = marker;
        cloud.radius = radius;
        cloud.fill = fill;
        cloud.stroke = std::move(stroke);
        cloud.name = std::move(name);
        return cloud;
    }

private:
    std::shared_ptr<std::vector<Point>> m_points = std::make_shared<std::vector<Point>>();
    std::shared_ptr<std::vector<std::int64_t>> m_ids = std::make_shared<std::vector<std::int64_t>>();
};

} // namespace kvscope
