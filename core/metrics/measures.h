#pragma once

#include "core/base/checkpoint.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

struct MeasureInput;
struct MeasureValues;

/// What one number of a measure belongs to: a (query head, evaluation query) pair, a query head, a KV head, or an
/// evaluation query of the whole layer.
enum class MeasureShape { PerQuery, PerQueryHead, PerKvHead, PerLayerQuery };
enum class MeasureDirection { SmallerIsBetter, LargerIsBetter, Neither };
/// Data that a measure needs beside queries, keys, values and the kept sets.
enum class MeasureNeed { Nothing, Scores, OutputProjection, PreRopeKeys };
/// Whether a measure describes the kept tokens or the layer itself, independent of what is kept.
enum class MeasureSubject { KeptTokens, Layer };

/// Description of a measure, from which tables, figures and the command line take their texts.
struct MeasureCard {
    std::string id, label;
    std::string unit; ///< "" for a plain number
    std::string help; ///< formula and source
    MeasureShape shape = MeasureShape::PerQuery;
    MeasureDirection better = MeasureDirection::SmallerIsBetter;
    MeasureNeed need = MeasureNeed::Nothing;
    MeasureSubject subject = MeasureSubject::KeptTokens;
    bool isSigned = false; ///< 0 is the middle (cosines, correlations)

    bool isPerHead() const { return shape != MeasureShape::PerLayerQuery; }
};

const std::vector<MeasureCard>& allMeasures();
/// Throws Error with the nearest name.
const MeasureCard& measureById(std::string_view id);

/// Measures by id, in that order. Throws Error for an unknown id or one whose need is not met.
std::vector<MeasureValues> measureLayer(const MeasureInput& input, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint);

} // namespace kvscope
