#pragma once

#include "core/parameters/parameters.h"
#include "views/attention_map/attention_map_data.h"
#include "views/common/colour_scale.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The colours of an attention map's cells. The level of a cell is log10 of its weight, its share of its row's largest,
/// its rank among the cells shown, its signed root (differences, few of which are large), or the value itself.
class MapScale final : public ColourScale {
public:
    MapScale(const AttentionMapData& data, const ParameterValues& options);

    /// On the colour map, 0..1; a value beyond an end gets the end. `row`: the cell's, for the row-normalised scale.
    double place(float value, std::int64_t row) const { return placeOfLevel(level(value, row)); }
    /// The same for a cell of the data that is not masked.
    double placeOfCell(std::int64_t row, std::int64_t column) const {
        return placeOfLevel(levelOfCell(row, row * m_data.cells.shape[1] + column));
    }
    std::string name() const;                        ///< "log10, 3e−6 to 0.1"
    const std::string& key() const { return m_key; } ///< text of the options that the scale depends on

private:
    enum class Look { Logarithmic, Linear, Row, Rank, Signed, SignedRoot, Span };
    static Look lookOf(const AttentionMapData& data, const ParameterValues& options);
    MapScale(const AttentionMapData& data, const ParameterValues& options, Look look);
    double level(float value, std::int64_t row) const;
    double levelOfCell(std::int64_t row, std::int64_t index) const {
        return m_look == Look::Logarithmic && !m_data.logs.data.empty() ? static_cast<double>(m_data.logs.data[index])
                                                                        : level(m_data.cells.data[index], row);
    }
    void visitLevels(const VisitLevels& visit) const override;

    const AttentionMapData& m_data;
    std::string m_key;
    Look m_look;                  ///< Signed: cosines; SignedRoot: differences; Span: logits; the others: weights
    std::vector<float> m_rowTops; ///< Look::Row
    std::vector<float> m_sorted;  ///< Look::Rank
};

/// The levels (log10) between which the weights shown are coloured: of 1 or 3 times a power of ten, at most 1. At most
/// 1 % of the cells that are not masked are smaller, at most 0.5 % larger, unless that takes more than ten powers of
/// ten. The ends move in these steps, so that they stay while the user pans. Without a cell: 1e-4 to 1.
std::pair<double, double> endsOfWeights(const HostTensor& logs);

/// The scale of the data's picture, cached while the options stay the same.
std::shared_ptr<const MapScale> scaleOfMap(const AttentionMapData& data, const ParameterValues& options);

/// The check of the map's range option: also refuses a quantity that no map has.
void checkMapRange(std::string_view text);

} // namespace kvscope
