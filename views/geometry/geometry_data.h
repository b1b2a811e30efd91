#pragma once

#include "core/metrics/geometry.h"
#include "views/view_data.h"

#include <string>
#include <vector>

namespace kvscope {

/// One distribution of a figure.
struct GeometrySeries {
    enum class Role { Keys, Queries, Values, Policy };
    Role role = Role::Keys;
    std::string name;     ///< "cos(k, mean k)"
    std::string policyId; ///< of Role::Policy
    char letter = 'A';
    Histogram histogram;
    std::vector<double> numbers; ///< where there is one per head: in the order of layers and heads
};

/// One figure: distributions, or the points of a theorem.
struct GeometryData : ViewData {
    std::string figure;      ///< id of the option
    std::string axis;        ///< title of the horizontal axis
    std::string of;          ///< "vectors", "query heads": what the shares are of
    std::string where;       ///< "layer 3, KV head 1", "6 of 6 layers"
    bool isSigned = false;   ///< cosines: a line at 0
    bool wholeModel = false; ///< vectors of all layers
    std::vector<GeometrySeries> series;
    std::vector<TheoremPoint> points;
    std::int64_t tokens = 0;    ///< before the cut; n of Theorem C.1 is at least this
    std::int64_t evaluated = 0; ///< evaluation queries of the head; of many, the theorems take the last
    std::int64_t leftOut = 0;   ///< queries whose weight is 1 up to rounding

    /// "the last 256 of 528": which of the evaluation queries were taken; empty: all of them.
    std::string takenWords() const;
    bool isScatter() const { return figure == "lemma" || figure == "theorem"; }
};

} // namespace kvscope
