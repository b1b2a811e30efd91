#pragma once

#include "core/parameters/parameters.h"
#include "views/attention_map/attention_map_data.h"
#include "views/scene/colour_column.h"
#include "views/value_range.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope {

/// From a cell's value to a place on the colour map, 0..1, by the chosen scale and range. Between value and colour lies the
/// level: log10 of a weight, its share of the row's largest, its rank among the cells shown, or the value itself.
class MapScale {
public:
    MapScale(const AttentionMapData& data, const ParameterValues& options);

    /// `row`: of the cells, for the row-normalised scale. Values beyond the ends get the end.
    double place(float value, std::int64_t row) const { return placeOfLevel(level(value, row)); }
    /// Of one of the data's cells, which is not masked.
    double placeOfCell(std::int64_t row, std::int64_t column) const { return placeOfLevel(levelOfCell(row, row * m_data.cells.shape[1] + column)); }
    const std::string& colourMapName() const { return m_map; }
    bool inverted() const { return m_inverted; }
    ColourColumnSpec column() const; ///< with the histogram of the data's cells, without handles
    std::string name() const;        ///< "log10, floor 1e−4", with the range where one was chosen

    /// What the ends of the range measure: "weight", "row", "rank", "logit", "cosine", "difference".
    std::string_view quantity() const { return m_quantity; }
    ValueRange range() const; ///< as the colours run
    /// The value at a place of the column, 0 bottom .. 1 top, clamped to the column.
    double valueAt(double place) const;
    /// Where on the column a value lies.
    double placeOf(double value) const;
    /// The range that colours all cells but this share of them at each end; ends as `range`.
    std::pair<double, double> middle(double leftOut) const;
    /// Share of the cells shown below and above the colours.
    std::pair<double, double> sharesBeyond() const;
    /// Signed values keep 0 in the middle, so that one end moves the other.
    bool isSigned() const { return m_kind == Kind::Signed; }
    bool isLogarithmic() const { return m_kind == Kind::Logarithmic; }

private:
    enum class Kind { Logarithmic, Linear, Row, Rank, Signed };
    double level(float value, std::int64_t row) const;
    double levelOfCell(std::int64_t row, std::int64_t index) const {
        const auto i = static_cast<std::size_t>(index);
        return m_kind == Kind::Logarithmic && !m_data.logs.data.empty() ? static_cast<double>(m_data.logs.data[i]) : level(m_data.cells.data[i], row);
    }
    double placeOfLevel(double level) const { return std::clamp((level - m_low) / (m_high - m_low), 0.0, 1.0); }
    template <class Visit> void eachLevel(const Visit& visit) const;
    double valueOfLevel(double level) const;
    double levelOfValue(double value) const;
    void choose(const ValueRange& chosen);
    std::vector<double> sortedLevels() const;
    std::vector<Tick> ticks() const;

    const AttentionMapData& m_data;
    Kind m_kind;
    std::string m_quantity;
    double m_low = 0, m_high = 1;             ///< levels at the ends of the colours
    double m_columnLow = 0, m_columnHigh = 1; ///< levels at the ends of the column, which reaches further
    bool m_chosen = false;
    std::vector<float> m_rowTops;             ///< Kind::Row
    std::vector<float> m_sorted;              ///< Kind::Rank
    std::string m_map;
    bool m_inverted = false;
};

/// The check of the map's range option: also refuses a quantity that no map has.
void checkMapRange(std::string_view text);

} // namespace kvscope
