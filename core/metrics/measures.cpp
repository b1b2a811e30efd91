// The table of all measures of a layer, and the intermediate results that they share. A new measure is a function and a
// row in attention_measures.cpp or key_measures.cpp.
#include "core/metrics/measures.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/metrics/measure_work.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

using enum MeasureNeed;

const std::vector<MeasureEntry>& entries() {
    static const std::vector<MeasureEntry> all = [] {
        std::vector<MeasureEntry> rows = attentionMeasures();
        const std::vector<MeasureEntry> ofKeys = keyMeasures();
        rows.insert(rows.end(), ofKeys.begin(), ofKeys.end());
        return rows;
    }();
    return all;
}

const MeasureEntry& entryOf(std::string_view id) {
    const auto idOf = [](const MeasureEntry& entry) -> const std::string& { return entry.card.id; };
    return requireNamed(entries(), idOf, id, "there is no measure");
}

void checkNeed(const MeasureCard& card, const MeasureInput& input) {
    if (card.need == Scores && input.scores.empty())
        throw Error({"'" + card.id + "' needs scores, and this selection has none", card.id,
                     "Leave it out, or take a policy that scores tokens"});
    if (card.need == OutputProjection && input.outputProjection.empty())
        throw Error({"'" + card.id + "' needs the output projection, which the capture does not hold", card.id,
                     "Capture with o_proj, or take output_error (before W_o)"});
    if (card.need == PreRopeKeys && input.preRopeKeys.empty())
        throw Error({"'" + card.id + "' needs the keys before RoPE, which are not known here", card.id,
                     "Capture them, or what the rotation needs (positions and inverse frequencies)"});
}

/// Entropy in nat; NaN (a key that the query does not see) counts as 0. `sink`: the weight of the attention sink. The
/// weights are divided by their sum first: a float log-sum-exp of large logits leaves them all too large or too small.
double entropyOf(std::span<const float> weights, double sink) {
    double sum = sink;
    for (const double weight : weights) sum += weight > 0 ? weight : 0;
    double entropy = 0;
    const auto add = [&](double weight) {
        const double p = weight > 0 ? weight / sum : 0;
        entropy -= p > 0 ? p * std::log(p) : 0;
    };
    add(sink);
    for (const double weight : weights) add(weight);
    return entropy > 0 ? entropy : 0; // not the -0 of a single token
}

} // namespace

std::string headingOf(MeasureGroup group) {
    switch (group) {
    case MeasureGroup::OutputError: return "Attention output error";
    case MeasureGroup::Mass: return "Attention mass and score";
    case MeasureGroup::TwoPanes: return "Two panes";
    case MeasureGroup::KeptKeys: return "Kept tokens";
    case MeasureGroup::ExactAttention: return "Exact attention";
    case MeasureGroup::Geometry: break;
    }
    return "Keys, values and queries";
}

const std::vector<MeasureCard>& allMeasures() {
    static const std::vector<MeasureCard> cards = [] {
        std::vector<MeasureCard> all;
        for (const MeasureEntry& entry : entries()) all.push_back(entry.card);
        return all;
    }();
    return cards;
}

const MeasureCard& measureById(std::string_view id) { return entryOf(id).card; }

std::vector<MeasureValues> measureLayer(const MeasureInput& input, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint) {
    for (const std::string& id : ids) checkNeed(measureById(id), input); // before any work
    const Checkpoint inner = checkpoint.silent();
    MeasureWork work(input, inner);
    std::vector<MeasureValues> values;
    for (const std::string& id : ids) {
        checkpoint.at(static_cast<double>(values.size()), static_cast<double>(ids.size()));
        const MeasureEntry& entry = entryOf(id);
        const auto compute = [&] { return entry.compute(work); };
        values.push_back(entry.card.subject == MeasureSubject::Layer ? work.ofLayer(id, compute) : compute());
        values.back().id = id;
    }
    return values;
}

const WeightedAttention& MeasureWork::left() {
    if (m_left) return *m_left;
    const FidelityInput& in = m_input.attention;
    if (in.moved)
        m_left = leftAttention(engine(), in, m_input.kept, m_checkpoint);
    else
        m_left = engine().weightedAttention({.queries = in.queries,
                                             .keys = in.keys,
                                             .values = in.values,
                                             .firstQuery = in.firstQuery,
                                             .cut = in.cut,
                                             .rule = in.rule,
                                             .kept = m_input.kept,
                                             .recent = m_input.recent},
                                            m_checkpoint);
    return *m_left;
}

const MeasureValues& MeasureWork::ofLayer(const std::string& name, const std::function<MeasureValues()>& make) {
    std::shared_ptr<const MeasureValues>& values = m_ofLayer[name];
    if (!values) values = m_input.ofLayer ? m_input.ofLayer(name, make) : std::make_shared<const MeasureValues>(make());
    return *values;
}

const HostTensor& MeasureWork::frobeniusNorms() {
    const auto make = [this] {
        const HostTensor norms = engine().rowNorms(m_input.attention.values, m_checkpoint);
        const std::int64_t n = norms.shape[1], first = m_input.attention.firstQuery;
        HostTensor sums = HostTensor::filled({kvHeads(), queryCount()});
        for (std::int64_t h = 0; h < kvHeads(); ++h) {
            double squares = 0;
            for (std::int64_t i = 0; i < first + queryCount(); ++i) {
                const double norm = norms.data[h * n + i];
                squares += norm * norm;
                if (i >= first) sums.data[h * queryCount() + i - first] = static_cast<float>(std::sqrt(squares));
            }
        }
        return perQueryValues(std::move(sums));
    };
    return ofLayer("Frobenius norms of values", make).perQuery;
}

const HostTensor& MeasureWork::operatorNorms() {
    const auto make = [this] {
        return perQueryValues(engine().prefixOperatorNorms(m_input.attention.values, m_input.attention.firstQuery,
                                                           queryCount(), m_checkpoint));
    };
    return ofLayer("operator norms of values", make).perQuery;
}

const HostTensor& MeasureWork::futureMass() {
    const auto make = [this] {
        const FidelityInput& in = m_input.attention;
        MeasureValues mass;
        mass.perVector = engine().attentionColumnSums({in.queries, in.keys, in.firstQuery, {}, in.rule}, m_checkpoint);
        for (float& one : mass.perVector.data) one /= static_cast<float>(queryCount());
        return mass;
    };
    return ofLayer("future mass", make).perVector;
}

// Takes the weights of a few rows at a time from the cells of an attention map, so that no n x n table is stored.
const HostTensor& MeasureWork::entropies() {
    constexpr std::int64_t kCells = std::int64_t{1} << 22;
    const auto make = [this] {
        const FidelityInput& in = m_input.attention;
        HostTensor entropies = HostTensor::filled({queryHeads(), queryCount()});
        for (std::int64_t h = 0; h < queryHeads(); ++h) {
            AttentionMapInput map;
            map.queries = in.queries;
            map.keys = in.keys;
            map.firstQuery = in.firstQuery;
            map.rule = in.rule;
            map.queryHeads = {static_cast<std::int32_t>(h)};
            const float* logSums = m_input.exact.logDenominator.data.data() + h * queryCount();
            map.rowLogSumExps = {{1, queryCount()}, {logSums, logSums + queryCount()}};
            map.keyEnd = map.width = in.firstQuery + queryCount();
            const std::int64_t rows = std::max<std::int64_t>(1, kCells / map.width);
            for (std::int64_t first = 0; first < queryCount(); first += rows) {
                map.height = std::min(rows, queryCount() - first);
                map.rowBegin = in.firstQuery + first;
                map.rowEnd = map.rowBegin + map.height;
                const HostTensor weights = engine().attentionMap(map, m_checkpoint).cells;
                for (std::int64_t r = 0; r < map.height; ++r)
                    entropies.data[h * queryCount() + first + r] = static_cast<float>(
                        entropyOf({weights.data.data() + r * map.width, static_cast<std::size_t>(map.width)},
                                  std::exp(in.rule.sinkOf(h) - double{logSums[first + r]})));
            }
        }
        return perQueryValues(std::move(entropies));
    };
    return ofLayer("entropies", make).perQuery;
}

const std::vector<std::vector<TokenIndex>>& MeasureWork::keptTokens() {
    if (m_kept) return *m_kept;
    const bool perQueryHead = std::cmp_greater(m_input.kept.size(), kvHeads());
    m_kept.emplace(static_cast<std::size_t>(kvHeads()));
    for (std::size_t i = 0; i < m_input.kept.size(); ++i) {
        const WeightedSet& set = m_input.kept[i];
        auto& tokens = (*m_kept)[perQueryHead ? static_cast<std::size_t>(kvHeadOf(static_cast<std::int64_t>(i))) : i];
        tokens.insert(tokens.end(), set.numerator.begin(), set.numerator.end());
        tokens.insert(tokens.end(), set.denominator.begin(), set.denominator.end());
    }
    for (auto& tokens : *m_kept) {
        std::ranges::sort(tokens);
        tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    }
    return *m_kept;
}

std::vector<TokenIndex> MeasureWork::attendedTokens(std::int64_t queryHead) {
    if (!std::cmp_greater(m_input.kept.size(), kvHeads())) return keptTokens()[kvHeadOf(queryHead)];
    return m_input.kept[queryHead].numerator; // no weights there, see HeadSelection
}

const HostTensor& MeasureWork::keptSingularValues() {
    if (!m_singular) m_singular = engine().singularValues(m_input.attention.keys, keptTokens(), m_checkpoint);
    return *m_singular;
}

Tensor MeasureWork::seenKeys() const { return engine().rows(m_input.attention.keys, 0, m_input.attention.cut); }

MeasureValues perQueryValues(HostTensor table) {
    MeasureValues values;
    values.perHead = rowMeans(table);
    values.perQuery = std::move(table);
    return values;
}

MeasureValues perHeadValues(std::vector<double> perHead) {
    MeasureValues values;
    values.perHead = std::move(perHead);
    return values;
}

} // namespace kvscope
