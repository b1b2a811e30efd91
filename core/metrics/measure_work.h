#pragma once

#include "core/engine/engine.h"
#include "core/metrics/measure_card.h"
#include "core/metrics/measure_values.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Intermediate results shared by measures of one layer, each computed on first use. For the sources of this folder.
class MeasureWork {
public:
    MeasureWork(const MeasureInput& input, const Checkpoint& checkpoint) : m_input(input), m_checkpoint(checkpoint) {}

    const MeasureInput& input() const { return m_input; }
    const Engine& engine() const { return m_input.engine; }
    const Checkpoint& checkpoint() const { return m_checkpoint; }
    std::int64_t queryHeads() const { return m_input.attention.queries.size(0); }
    std::int64_t kvHeads() const { return m_input.attention.keys.size(0); }
    std::int64_t queryCount() const { return m_input.attention.queries.size(1); }
    std::int64_t kvHeadOf(std::int64_t queryHead) const { return m_input.attention.rule.gqaGroupOf[queryHead]; }

    const WeightedAttention& left(); ///< attention over the kept tokens
    /// The values that `make` returns; it is called once for all selections of the layer.
    const MeasureValues& ofLayer(const std::string& name, const std::function<MeasureValues()>& make);
    const HostTensor& frobeniusNorms(); ///< [Hkv, w] ||V_j||_F of the first j rows
    const HostTensor& operatorNorms();  ///< [Hkv, w] ||V_j||_op
    const HostTensor& futureMass();     ///< [Hq, n] mean attention of the evaluation queries
    const HostTensor& entropies();      ///< [Hq, w] of the exact attention with its sink, in nat
    /// [Hkv] union of both samples, ascending; with sets per query head, the union over the GQA group.
    const std::vector<std::vector<TokenIndex>>& keptTokens();
    std::vector<TokenIndex> attendedTokens(std::int64_t queryHead); ///< kept list of one query head, ascending
    const HostTensor& keptSingularValues();                         ///< [Hkv, d] of the kept keys
    Tensor seenKeys() const;                                        ///< [Hkv, cut, d]

private:
    const MeasureInput& m_input;
    const Checkpoint& m_checkpoint;
    std::optional<WeightedAttention> m_left;
    std::map<std::string, std::shared_ptr<const MeasureValues>> m_ofLayer;
    std::optional<HostTensor> m_singular;
    std::optional<std::vector<std::vector<TokenIndex>>> m_kept;
};

/// Table [heads, w] as a measure, with each head's mean over the numbers that are not NaN.
MeasureValues perQueryValues(HostTensor table);
MeasureValues perHeadValues(std::vector<double> values);

/// A measure and the function that computes it.
struct MeasureEntry {
    MeasureCard card;
    MeasureValues (*compute)(MeasureWork& work);
};

std::vector<MeasureEntry> attentionMeasures(); ///< attention_measures.cpp
std::vector<MeasureEntry> keyMeasures();       ///< key_measures.cpp

} // namespace kvscope
