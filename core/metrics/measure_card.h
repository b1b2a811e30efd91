#pragma once

#include <string>

namespace kvscope {

/// What one number of a measure belongs to: a (query head, evaluation query) pair, a query head, a KV head, or an
/// evaluation query of the whole layer.
enum class MeasureShape { PerQuery, PerQueryHead, PerKvHead, PerLayerQuery };
enum class MeasureDirection { SmallerIsBetter, LargerIsBetter, Neither };
/// Data that a measure needs beside evaluation queries, keys, values and the kept sets.
enum class MeasureNeed { Nothing, Scores, OutputProjection, PreRopeKeys, AllQueries };
/// Whether a measure describes the kept tokens or the layer itself, independent of what is kept.
enum class MeasureSubject { KeptTokens, Layer };

/// Headings under which menus list the measures, in this order; TwoPanes has only quantities of views, no measures.
enum class MeasureGroup { OutputError, Mass, TwoPanes, KeptKeys, ExactAttention, Geometry };

/// Description of a measure, from which tables, figures and the command line take their texts.
struct MeasureCard {
    std::string id, label;
    MeasureGroup group = MeasureGroup::OutputError;
    std::string unit; ///< "" for a plain number
    std::string help; ///< formula and source
    MeasureShape shape = MeasureShape::PerQuery;
    MeasureDirection better = MeasureDirection::SmallerIsBetter;
    MeasureNeed need = MeasureNeed::Nothing;
    MeasureSubject subject = MeasureSubject::KeptTokens;
    bool isSigned = false; ///< 0 is the middle (cosines, correlations)

    bool isPerHead() const { return shape != MeasureShape::PerLayerQuery; }
};

} // namespace kvscope
