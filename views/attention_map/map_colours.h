#pragma once

#include "core/parameters/parameters.h"
#include "views/attention_map/attention_map_data.h"
#include "views/scene/colour_column.h"

namespace kvscope {

/// From a cell's value to a place on the colour map, 0..1, by the chosen scale.
class MapScale {
public:
    MapScale(const AttentionMapData& data, const ParameterValues& options);

    /// `row`: of the cells, for the row-normalised scale. Values beyond the ends get the end.
    double place(float value, std::int64_t row) const;
    const std::string& colourMapName() const { return m_map; }
    bool inverted() const { return m_inverted; }
    ColourColumnSpec column() const; ///< with the histogram of the data's cells
    std::string name() const;        ///< "log10, floor 1e−4"

private:
    enum class Kind { Logarithmic, Linear, Row, Rank, Signed };
    std::vector<Tick> ticks() const;

    const AttentionMapData& m_data;
    Kind m_kind;
    double m_low = 0, m_high = 1;   ///< of the value, or of its log10
    std::vector<float> m_rowTops;   ///< Kind::Row
    std::vector<float> m_sorted;    ///< Kind::Rank
    std::string m_map;
    bool m_inverted = false;
};

} // namespace kvscope
