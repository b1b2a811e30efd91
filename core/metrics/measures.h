#pragma once

#include "core/metrics/fidelity.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// What one number of a measure belongs to: a judged query of a query head, a query head, a KV head, or a judged query
/// of the whole layer.
enum class MeasureShape { PerQuery, PerQueryHead, PerKvHead, PerLayerQuery };
enum class MeasureDirection { SmallerIsBetter, LargerIsBetter, Neither };
/// What must be there beside queries, keys, values and the kept sets.
enum class MeasureNeed { Nothing, Scores, OutputProjection, PreRopeKeys };
/// What a measure speaks of: what a policy kept, or the layer itself, whatever is kept.
enum class MeasureSubject { KeptTokens, Layer };

/// One measure, declared once: tables, figures and the command line read it from here.
struct MeasureCard {
    std::string id, label;
    std::string unit; ///< "" for a plain number
    std::string help; ///< the formula, and where it comes from
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

struct MeasureValues {
    std::string id;
    HostTensor perQuery;         ///< [Hq, w] or [1, w]; empty for the shapes without queries. NaN where skipped
    std::vector<double> perHead; ///< [Hq], [Hkv] or [1]: the mean over the queries that count, or the number itself

    double mean() const { return meanOfNumbers(perHead); }
};

/// Everything that measures look at. `fidelity` belongs to `kept`.
struct MeasureInput {
    const Engine& engine;
    FidelityInput attention;
    const ExactAttention& exact;
    const Fidelity& fidelity;
    std::span<const WeightedSet> kept;  ///< [Hkv], or [Hq] where query heads have sets of their own
    const HostTensor& scores; ///< [Hkv, cut] or, chosen by, [Hq, cut]; NaN where unknown; empty: the policy does not score
    const HostTensor& outputProjection; ///< [hidden, Hq, dv] or empty
    Tensor preRopeKeys = {};            ///< [Hkv, n, d] or empty
};

/// Measures by id, in that order. Throws Error for an unknown id or one whose need is not met.
std::vector<MeasureValues> measureLayer(const MeasureInput& input, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint);

} // namespace kvscope
