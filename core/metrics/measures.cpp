// The table of all measures of a layer, and the intermediate results that they share. A new measure is a function and a
// row here.
#include "core/metrics/measures.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/metrics/measure_work.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

struct Entry {
    MeasureCard card;
    MeasureFunction compute;
};

using enum MeasureShape;
using enum MeasureDirection;
using enum MeasureNeed;
using enum MeasureSubject;

std::vector<Entry> makeEntries() {
    return {
        {{"output_error", "Relative output error", "", "‖z_j − a_j‖ / ‖a_j‖, before W_o (BalanceKV B.1).", PerQuery},
         measure::outputError},
        {{"output_error_frobenius", "Output error, aggregate", "",
          "‖Z − A‖_F / ‖A‖_F over all evaluation queries of a head, before W_o: another number than the mean of the "
          "ratios.",
          PerQueryHead},
         measure::outputErrorFrobenius},
        {{"output_error_wo", "Output error after W_o", "",
          "‖W_o^h (z_j − a_j)‖ / ‖W_o^h a_j‖ with the head's columns of W_o.", PerQuery, SmallerIsBetter,
          OutputProjection},
         measure::projectedError},
        {{"layer_error_wo", "Layer output error after W_o", "",
          "‖Σ_h W_o^h (z_j − a_j)‖ / ‖Σ_h W_o^h a_j‖: what the residual stream sees.", PerLayerQuery, SmallerIsBetter,
          OutputProjection},
         measure::layerError},
        {{"eps_f", "ε, Frobenius", "", "‖z_j − a_j‖ / (‖p_j‖₂ ‖V_j‖_F) with the first j values (BalanceKV (2)).",
          PerQuery},
         measure::epsilonFrobenius},
        {{"eps_op", "ε, operator norm", "",
          "‖z_j − a_j‖ / (‖p_j‖₂ ‖V_j‖_op) (SubGen (3)); eps_f ≤ eps_op ≤ √rank V · eps_f.", PerQuery},
         measure::epsilonOperator},
        {{"numerator_error", "Numerator error", "", "‖Σ̂ − Σ_i e_i v_i‖ / (‖e‖₂ ‖V_j‖_F), e_i = e^{logit}.", PerQuery},
         measure::numeratorError},
        {{"denominator_error", "Denominator error", "", "|τ̂ − τ| / τ with τ = Σ_i e^{logit}.", PerQuery},
         measure::denominatorError},
        {{"retained_mass", "Retained attention mass", "", "Σ of p_ji over the tokens that are left.", PerQuery,
          LargerIsBetter},
         measure::retainedMass},
        {{"largest_loss", "Largest lost token", "",
          "The largest mean attention of the evaluation queries on any evicted token.", PerQueryHead},
         measure::largestLoss},
        {{"attention_norm", "‖p_j‖₂", "", "Of the exact attention: 1/√j where it is uniform, 1 on one token.", PerQuery,
          Neither, Nothing, Layer},
         measure::attentionNorm},
        {{"entropy", "Attention entropy", "nat",
          "−Σ_i p_ji ln p_ji of the exact attention (Shannon): 0 on one token, ln j where it is uniform.", PerQuery,
          Neither, Nothing, Layer},
         measure::entropy},
        {{"effective_tokens", "Tokens attended to, effective", "tokens",
          "e^entropy of the exact attention, its perplexity: so many tokens with equal shares have the same entropy.",
          PerQuery, Neither, Nothing, Layer},
         measure::effectiveTokens},
        {{"sink_mass", "Sink mass", "", "Exact attention on the first four tokens (StreamingLLM's sinks).", PerQuery,
          Neither, Nothing, Layer},
         measure::sinkMass},
        {{"effective_budget", "Effective budget", "tokens",
          "(Σ_i u_i)² / Σ_i u_i² over the weights u of the kept tokens in the denominator (Kish's effective sample "
          "size): as many tokens of equal weight. Without weights the tokens that the head really keeps, which differ "
          "where a policy shares a budget among heads or layers; mean over the group where query heads choose.",
          PerKvHead, Neither},
         measure::effectiveBudget},
        {{"log_det", "log det, pseudo", "nat",
          "Σ ln s_j² over singular values s_j of the kept keys above s_1 max(N, d) 2⁻²³ (KeyDiff Fig. 12).", PerKvHead,
          LargerIsBetter},
         measure::logDeterminant},
        {{"log_det_count", "Singular values in log det", "",
          "How many singular values the pseudo-determinant takes in.", PerKvHead, Neither},
         measure::logDeterminantCount},
        {{"log_det_ridge", "log det, ridge", "nat", "ln det(K_Sᵀ K_S + δ I) with δ = 1.", PerKvHead, LargerIsBetter},
         measure::logDeterminantRidge},
        {{"cosine_sum", "Sum of cosines", "", "Σ_{i,j ∈ S} cos(k_i, k_j) over the kept set (KeyDiff C.2).", PerKvHead},
         measure::cosineSum},
        {{"cosine_sum_min", "Sum of cosines, exchanged", "",
          "The same after greedy exchanges: the kept key most along the sum for the evicted key most against the rest, "
          "until "
          "that lowers it no more. A set of the same size; another exchange may lower it further.",
          PerKvHead, Neither},
         measure::cosineSumMinimum},
        {{"key_norm", "‖k‖", "", "Mean over the tokens before the cut.", PerKvHead, Neither, Nothing, Layer},
         measure::keyNorm},
        {{"shifted_key_norm", "‖k − k̄‖", "", "Mean distance of the keys to their mean (BalanceKV Table 3).", PerKvHead,
          Neither, Nothing, Layer},
         measure::shiftedKeyNorm},
        {{"value_norm", "‖v‖", "", "Mean over the tokens before the cut (BalanceKV Table 3).", PerKvHead, Neither,
          Nothing, Layer},
         measure::valueNorm},
        {{"query_norm", "‖q‖", "", "Mean over the evaluation queries (BalanceKV Table 3).", PerQueryHead, Neither,
          Nothing, Layer},
         measure::queryNorm},
        {{"cos_means", "cos(k̄, q̄)", "", "Mean key before the cut against mean evaluation query (KeyDiff Fig. 14).",
          PerQueryHead, Neither, Nothing, Layer, true},
         measure::cosineOfMeans},
        {{"cos_distinct", "cos(k*, q̄)", "", "k* = the key with the smallest cosine to the mean key (KeyDiff Fig. 16).",
          PerQueryHead, Neither, Nothing, Layer, true},
         measure::cosineOfDistinctKey},
        {{"leverage_concentration", "Leverage concentration", "",
          "Share of the leverage of the keys before RoPE and before the cut (Compactor 3.1: kᵀ(KᵀK)⁺k, no sketch, not "
          "centred) that the tenth of the tokens with the highest leverage holds: 0.1 where it is even, 1 where they "
          "hold all.",
          PerKvHead, Neither, PreRopeKeys, Layer},
         measure::leverageConcentration},
        {{"score_correlation", "Rank correlation of score and attention", "",
          "Spearman's ρ of the policy's score with the mean attention of the evaluation queries, ties averaged.",
          PerQueryHead, LargerIsBetter, Scores, KeptTokens, true},
         measure::scoreCorrelation},
    };
}

const std::vector<Entry>& entries() {
    static const std::vector<Entry> all = makeEntries();
    return all;
}

const Entry& entryOf(std::string_view id) {
    for (const Entry& entry : entries())
        if (entry.card.id == id)
            return entry;
    std::vector<std::string> names;
    for (const Entry& entry : entries())
        names.push_back(entry.card.id);
    throw Error(
        {.sentence = "there is no measure '" + std::string(id) + "'", .place = {}, .remedy = suggestName(id, names)});
}

void checkNeed(const MeasureCard& card, const MeasureInput& input) {
    if (card.need == Scores && input.scores.empty())
        throw Error({.sentence = "'" + card.id + "' needs scores, and this selection has none",
                     .place = card.id,
                     .remedy = "Leave it out, or take a policy that scores tokens"});
    if (card.need == OutputProjection && input.outputProjection.empty())
        throw Error({.sentence = "'" + card.id + "' needs the output projection, which the capture does not hold",
                     .place = card.id,
                     .remedy = "Capture with o_proj, or take output_error (before W_o)"});
    if (card.need == PreRopeKeys && input.preRopeKeys.empty())
        throw Error({.sentence = "'" + card.id + "' needs the keys before RoPE, which are not known here",
                     .place = card.id,
                     .remedy = "Capture them, or what the rotation needs (positions and inverse frequencies)"});
}

/// Entropy in nat; NaN (a key that the query does not see) counts as 0.
double entropyOf(std::span<const float> weights) {
    double entropy = 0;
    for (const double p : weights)
        entropy -= p > 0 ? p * std::log(p) : 0;
    return entropy;
}

HostTensor table(std::int64_t rows, std::int64_t columns) {
    return {{rows, columns}, std::vector<float>(static_cast<std::size_t>(rows * columns))};
}

} // namespace

const std::vector<MeasureCard>& allMeasures() {
    static const std::vector<MeasureCard> cards = [] {
        std::vector<MeasureCard> all;
        for (const Entry& entry : entries())
            all.push_back(entry.card);
        return all;
    }();
    return cards;
}

const MeasureCard& measureById(std::string_view id) { return entryOf(id).card; }

std::vector<MeasureValues> measureLayer(const MeasureInput& input, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint) {
    for (const std::string& id : ids)
        checkNeed(measureById(id), input); // before any work
    const Checkpoint inner = checkpoint.silent();
    MeasureWork work(input, inner);
    std::vector<MeasureValues> values;
    for (const std::string& id : ids) {
        checkpoint.at(static_cast<double>(values.size()), static_cast<double>(ids.size()));
        values.push_back(entryOf(id).compute(work));
        values.back().id = id;
    }
    return values;
}

const ExactAttention& MeasureWork::left() {
    if (!m_left)
        m_left = leftAttention(engine(), m_input.attention, m_input.kept, m_checkpoint);
    return *m_left;
}

const HostTensor& MeasureWork::frobeniusNorms() {
    if (m_frobenius)
        return *m_frobenius;
    const HostTensor norms = engine().download(engine().rowNorms(m_input.attention.values, m_checkpoint));
    const std::int64_t n = norms.shape[1], first = m_input.attention.firstQuery;
    m_frobenius = table(kvHeads(), queryCount());
    for (std::int64_t h = 0; h < kvHeads(); ++h) {
        double squares = 0;
        for (std::int64_t i = 0; i < first + queryCount(); ++i) {
            const double norm = norms.data[static_cast<std::size_t>(h * n + i)];
            squares += norm * norm;
            if (i >= first)
                m_frobenius->data[static_cast<std::size_t>(h * queryCount() + i - first)] =
                    static_cast<float>(std::sqrt(squares));
        }
    }
    return *m_frobenius;
}

const HostTensor& MeasureWork::operatorNorms() {
    if (!m_operator)
        m_operator = engine().prefixOperatorNorms(m_input.attention.values, m_input.attention.firstQuery, queryCount(),
                                                  m_checkpoint);
    return *m_operator;
}

const HostTensor& MeasureWork::futureMass() {
    if (!m_future) {
        const FidelityInput& in = m_input.attention;
        m_future = engine().download(
            engine().attentionColumnSums({in.queries, in.keys, in.firstQuery, {}, in.rule}, m_checkpoint));
        for (float& mass : m_future->data)
            mass /= static_cast<float>(queryCount());
    }
    return *m_future;
}

// The weights of a few rows at a time, one per cell of an attention map, so that no n x n table is stored.
const HostTensor& MeasureWork::entropies() {
    if (m_entropies)
        return *m_entropies;
    constexpr std::int64_t kCells = std::int64_t{1} << 22;
    const FidelityInput& in = m_input.attention;
    m_entropies = table(queryHeads(), queryCount());
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
                m_entropies->data[static_cast<std::size_t>(h * queryCount() + first + r)] = static_cast<float>(
                    entropyOf({weights.data.data() + r * map.width, static_cast<std::size_t>(map.width)}));
        }
    }
    return *m_entropies;
}

const std::vector<std::vector<TokenIndex>>& MeasureWork::keptTokens() {
    if (m_kept)
        return *m_kept;
    const bool perQueryHead = std::cmp_greater(m_input.kept.size(), kvHeads());
    m_kept.emplace(static_cast<std::size_t>(kvHeads()));
    for (std::size_t i = 0; i < m_input.kept.size(); ++i) {
        const WeightedSet& set = m_input.kept[i];
        auto& tokens = (*m_kept)[perQueryHead ? static_cast<std::size_t>(kvHeadOf(static_cast<std::int64_t>(i))) : i];
        tokens.insert(tokens.end(), set.numerator.begin(), set.numerator.end());
        tokens.insert(tokens.end(), set.denominator.begin(), set.denominator.end());
    }
    for (auto& tokens : *m_kept) {
        std::sort(tokens.begin(), tokens.end());
        tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    }
    return *m_kept;
}

std::vector<TokenIndex> MeasureWork::attendedTokens(std::int64_t queryHead) {
    if (!std::cmp_greater(m_input.kept.size(), kvHeads()))
        return keptTokens()[static_cast<std::size_t>(kvHeadOf(queryHead))];
    return m_input.kept[static_cast<std::size_t>(queryHead)].numerator; // no weights there, see HeadSelection
}

const HostTensor& MeasureWork::keptSingularValues() {
    if (!m_singular)
        m_singular = engine().singularValues(m_input.attention.keys, keptTokens(), m_checkpoint);
    return *m_singular;
}

Tensor MeasureWork::seenKeys() const { return engine().rows(m_input.attention.keys, 0, m_input.attention.cut); }

MeasureValues perQueryValues(HostTensor table) {
    MeasureValues values;
    const std::int64_t w = table.shape[1];
    for (std::int64_t h = 0; h < table.shape[0]; ++h) {
        const auto begin = table.data.begin() + h * w;
        const std::vector<double> row(begin, begin + w);
        values.perHead.push_back(meanOfNumbers(row));
    }
    values.perQuery = std::move(table);
    return values;
}

MeasureValues perHeadValues(std::vector<double> perHead) {
    MeasureValues values;
    values.perHead = std::move(perHead);
    return values;
}

} // namespace kvscope
