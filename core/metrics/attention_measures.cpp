// Measures that compare attention over the kept tokens with exact attention, query by query. Sums of exponentials are
// kept as logarithms until their ratio is taken, so that nothing overflows (X4).
#include "core/metrics/measure_work.h"

#include <cassert>
#include <cmath>
#include <functional>

namespace kvscope {

namespace {

constexpr double kSmallestOutput = 1e-12; // relative errors of shorter outputs are skipped
constexpr TokenIndex kSinks = 4;          // StreamingLLM's

/// One (query head, query) with its outputs.
struct Pair {
    std::int64_t head, query;
    std::size_t index;      ///< of a table [Hq, w]
    const float *exact, *z; ///< [dv]
};

/// A table [Hq, w]: `value` of every pair, NaN where a query sees no token that is left.
MeasureValues overPairs(MeasureWork& work, const std::function<double(const Pair&)>& value) {
    const WeightedAttention& left = work.left();
    const std::int64_t w = work.queryCount(), dv = left.output.shape[2];
    HostTensor table = HostTensor::filled({work.queryHeads(), w});
    for (std::int64_t h = 0; h < work.queryHeads(); ++h)
        for (std::int64_t j = 0; j < w; ++j) {
            const auto index = static_cast<std::size_t>(h * w + j);
            const auto offset = static_cast<std::int64_t>(index) * dv;
            const Pair pair{h, j, index, work.input().exact.output.data.data() + offset,
                            left.output.data.data() + offset};
            table.data[index] = static_cast<float>(std::isinf(left.logDenominator.data[index]) ? NAN : value(pair));
        }
    return perQueryValues(std::move(table));
}

/// || factor z - exactFactor a ||.
double distance(const Pair& pair, std::int64_t dv, double factor = 1, double exactFactor = 1) {
    double squares = 0;
    for (std::int64_t c = 0; c < dv; ++c) {
        const double difference = factor * pair.z[c] - exactFactor * pair.exact[c];
        squares += difference * difference;
    }
    return std::sqrt(squares);
}

double attentionNormAt(const WeightedAttention& exact, std::size_t index) {
    return std::exp(static_cast<double>(exact.logNorm.data[index]) - exact.logDenominator.data[index]);
}

MeasureValues epsilon(MeasureWork& work, const HostTensor& valueNorms) {
    const std::int64_t dv = work.input().exact.output.shape[2], w = work.queryCount();
    return overPairs(work, [&](const Pair& pair) {
        const double norm = valueNorms.data[work.kvHeadOf(pair.head) * w + pair.query];
        return norm > 0 ? distance(pair, dv) / (attentionNormAt(work.input().exact, pair.index) * norm) : NAN;
    });
}

/// out[row] += sum over c of W_o[row, head, c] x[c].
void addProjected(const HostTensor& projection, std::int64_t head, const std::vector<double>& x,
                  std::vector<double>& out) {
    const auto dv = static_cast<std::int64_t>(x.size());
    for (std::size_t row = 0; row < out.size(); ++row) {
        const float* weights =
            projection.data.data() + (static_cast<std::int64_t>(row) * projection.shape[1] + head) * dv;
        double sum = 0;
        for (std::size_t c = 0; c < x.size(); ++c) sum += weights[c] * x[c];
        out[row] += sum;
    }
}

double length(const std::vector<double>& x) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    return std::sqrt(squares);
}

/// Error and exact output of one query after W_o, summed over the added heads.
struct Projected {
    std::vector<double> error, exact;

    void add(const HostTensor& projection, const Pair& pair, std::int64_t dv) {
        std::vector<double> a(pair.exact, pair.exact + dv), difference(pair.z, pair.z + dv);
        for (std::size_t c = 0; c < a.size(); ++c) difference[c] -= a[c];
        addProjected(projection, pair.head, difference, error);
        addProjected(projection, pair.head, a, exact);
    }
    double relative() const { return length(exact) < kSmallestOutput ? NAN : length(error) / length(exact); }
};

Projected nothingYet(const HostTensor& projection) {
    const auto hidden = static_cast<std::size_t>(projection.shape[0]);
    return {std::vector<double>(hidden), std::vector<double>(hidden)};
}

MeasureValues outputError(MeasureWork& work) { return perQueryValues(work.input().fidelity.outputError); }

MeasureValues retainedMass(MeasureWork& work) { return perQueryValues(work.input().fidelity.retainedMass); }

MeasureValues outputErrorFrobenius(MeasureWork& work) {
    const std::int64_t dv = work.input().exact.output.shape[2];
    std::vector<double> errors(static_cast<std::size_t>(work.queryHeads())), norms(errors);
    overPairs(work, [&](const Pair& pair) {
        const double error = distance(pair, dv), norm = distance(pair, dv, 0);
        errors[pair.head] += error * error;
        norms[pair.head] += norm * norm;
        return error;
    });
    for (std::size_t h = 0; h < errors.size(); ++h) errors[h] = norms[h] > 0 ? std::sqrt(errors[h] / norms[h]) : NAN;
    return perHeadValues(std::move(errors));
}

MeasureValues epsilonFrobenius(MeasureWork& work) { return epsilon(work, work.frobeniusNorms()); }

MeasureValues epsilonOperator(MeasureWork& work) { return epsilon(work, work.operatorNorms()); }

// num = a den, so ||num^ - num|| / ||e|| = || z den^/||e|| - a den/||e|| ||.
MeasureValues numeratorError(MeasureWork& work) {
    const WeightedAttention& exact = work.input().exact;
    const HostTensor& norms = work.frobeniusNorms();
    const std::int64_t dv = exact.output.shape[2], w = work.queryCount();
    return overPairs(work, [&](const Pair& pair) {
        const double logNorm = exact.logNorm.data[pair.index];
        const double kept = std::exp(work.left().logDenominator.data[pair.index] - logNorm);
        const double all = std::exp(exact.logDenominator.data[pair.index] - logNorm);
        const double norm = norms.data[work.kvHeadOf(pair.head) * w + pair.query];
        return norm > 0 ? distance(pair, dv, kept, all) / norm : NAN;
    });
}

MeasureValues denominatorError(MeasureWork& work) {
    return overPairs(work, [&](const Pair& pair) {
        return std::abs(std::expm1(static_cast<double>(work.left().logDenominator.data[pair.index]) -
                                   work.input().exact.logDenominator.data[pair.index]));
    });
}

MeasureValues attentionNorm(MeasureWork& work) {
    HostTensor norms = work.input().exact.logNorm;
    for (std::size_t i = 0; i < norms.data.size(); ++i)
        norms.data[i] = static_cast<float>(attentionNormAt(work.input().exact, i));
    return perQueryValues(std::move(norms));
}

MeasureValues entropy(MeasureWork& work) { return perQueryValues(work.entropies()); }

MeasureValues effectiveTokens(MeasureWork& work) {
    HostTensor tokens = work.entropies();
    for (float& number : tokens.data) number = static_cast<float>(std::exp(static_cast<double>(number)));
    return perQueryValues(std::move(tokens));
}

MeasureValues largestLoss(MeasureWork& work) {
    const HostTensor& mass = work.futureMass();
    const std::int64_t n = mass.shape[1];
    std::vector<double> largest;
    for (std::int64_t h = 0; h < work.queryHeads(); ++h) {
        const std::vector<TokenIndex> kept = work.attendedTokens(h);
        double lost = 0;
        auto next = kept.begin();
        for (TokenIndex i = 0; i < work.input().attention.cut; ++i) {
            const bool stays = next != kept.end() && *next == i;
            next += stays ? 1 : 0;
            lost = stays ? lost : std::max(lost, static_cast<double>(mass.data[h * n + i]));
        }
        largest.push_back(lost);
    }
    return perHeadValues(std::move(largest));
}

MeasureValues sinkMass(MeasureWork& work) {
    FidelityInput only = work.input().attention;
    only.cut = static_cast<TokenIndex>(only.keys.size(1)); // no token but these four is seen, and only causally
    WeightedSet first;
    for (TokenIndex i = 0; i < std::min(kSinks, only.cut); ++i) first.numerator.push_back(i);
    const std::vector<WeightedSet> sinks(static_cast<std::size_t>(work.kvHeads()), first);
    only.rule.sinks.clear(); // a learned sink is no token
    const WeightedAttention seen = keptAttention(work.engine(), only, sinks, work.checkpoint());
    HostTensor mass = seen.logDenominator;
    for (std::size_t i = 0; i < mass.data.size(); ++i)
        mass.data[i] = static_cast<float>(
            std::min(1.0, std::exp(static_cast<double>(mass.data[i]) - work.input().exact.logDenominator.data[i])));
    return perQueryValues(std::move(mass));
}

MeasureValues projectedError(MeasureWork& work) {
    const HostTensor& projection = work.input().outputProjection;
    const std::int64_t dv = work.input().exact.output.shape[2];
    assert(projection.shape[1] == work.queryHeads() && projection.shape[2] == dv);
    return overPairs(work, [&](const Pair& pair) {
        work.checkpoint().stopPoint();
        Projected after = nothingYet(projection);
        after.add(projection, pair, dv);
        return after.relative();
    });
}

MeasureValues layerError(MeasureWork& work) {
    const HostTensor& projection = work.input().outputProjection;
    const std::int64_t dv = work.input().exact.output.shape[2], w = work.queryCount();
    std::vector<Projected> queries(static_cast<std::size_t>(w), nothingYet(projection));
    std::vector<std::int64_t> seeing(static_cast<std::size_t>(w)); // heads in which it sees a token
    overPairs(work, [&](const Pair& pair) {
        work.checkpoint().stopPoint();
        queries[pair.query].add(projection, pair, dv);
        ++seeing[pair.query];
        return 0;
    });
    HostTensor table{{1, w}, {}};
    for (std::size_t j = 0; j < queries.size(); ++j)
        table.data.push_back(static_cast<float>(seeing[j] < work.queryHeads() ? NAN : queries[j].relative()));
    return perQueryValues(std::move(table));
}

} // namespace

std::vector<MeasureEntry> attentionMeasures() {
    using enum MeasureGroup;
    using enum MeasureShape;
    using enum MeasureDirection;
    using enum MeasureNeed;
    using enum MeasureSubject;
    return {
        {{"output_error", "Relative output error", OutputError, "", "‖z_j − a_j‖ / ‖a_j‖, before W_o (BalanceKV B.1).",
          PerQuery},
         outputError},
        {{"output_error_frobenius", "Output error, Frobenius norm", OutputError, "",
          "‖Z − A‖_F / ‖A‖_F over all evaluation queries of a head, before W_o: another number than the mean of the "
          "ratios.",
          PerQueryHead},
         outputErrorFrobenius},
        {{"output_error_wo", "Output error after W_o", OutputError, "",
          "‖W_o^h (z_j − a_j)‖ / ‖W_o^h a_j‖ with the head's columns of W_o.", PerQuery, SmallerIsBetter,
          OutputProjection},
         projectedError},
        {{"layer_error_wo", "Layer output error after W_o", OutputError, "",
          "‖Σ_h W_o^h (z_j − a_j)‖ / ‖Σ_h W_o^h a_j‖: what the residual stream sees. Queries to which some head leaves "
          "no token are skipped.",
          PerLayerQuery, SmallerIsBetter, OutputProjection},
         layerError},
        {{"eps_f", "ε of BalanceKV (Frobenius norm)", OutputError, "",
          "‖z_j − a_j‖ / (‖p_j‖₂ ‖V_j‖_F) with the first j values (BalanceKV (2)).", PerQuery},
         epsilonFrobenius},
        {{"eps_op", "ε of SubGen (operator norm)", OutputError, "",
          "‖z_j − a_j‖ / (‖p_j‖₂ ‖V_j‖_op) (SubGen (3)); eps_f ≤ eps_op ≤ √rank V · eps_f.", PerQuery},
         epsilonOperator},
        {{"numerator_error", "Numerator error", OutputError, "",
          "‖Σ̂ − Σ_i e_i v_i‖ / (‖e‖₂ ‖V_j‖_F), e_i = e^{logit}. Logits are float: below 1e-5 it is good to a few "
          "percent.",
          PerQuery},
         numeratorError},
        {{"denominator_error", "Denominator error", OutputError, "",
          "|τ̂ − τ| / τ with τ = Σ_i e^{logit}. Logits are float: below 1e-5 it is good to a few percent.", PerQuery},
         denominatorError},
        {{"retained_mass", "Retained attention mass", Mass, "",
          "Σ of p_ji over what j still attends to: kept tokens, all from the cut to j, which nothing evicts, and an "
          "attention sink. Behind a cut not 0 where nothing is kept. ‖z − a‖ = (1 − mass) · ‖evicted tokens' output − "
          "z‖ where "
          "nothing is weighted or moved. Of a weighted list (BalanceKV, SubGen) the tokens whose values are kept.",
          PerQuery, LargerIsBetter},
         retainedMass},
        {{"largest_loss", "Largest evicted attention", Mass, "",
          "The largest mean attention of the evaluation queries on any evicted token. Of a weighted list (BalanceKV, "
          "SubGen) on any token that is in neither sum.",
          PerQueryHead},
         largestLoss},
        {{"attention_norm", "Norm of attention ‖p_j‖₂", ExactAttention, "",
          "Of the exact attention: 1/√j where it is uniform, 1 on one token.", PerQuery, Neither, Nothing, Layer},
         attentionNorm},
        {{"entropy", "Attention entropy", ExactAttention, "nat",
          "−Σ_i p_ji ln p_ji of the exact attention (Shannon), an attention sink counting as a token: 0 on one token, "
          "ln j "
          "where it is uniform.",
          PerQuery, Neither, Nothing, Layer},
         entropy},
        {{"effective_tokens", "Effective tokens attended to", ExactAttention, "tokens",
          "e^entropy of the exact attention, its perplexity: this many tokens with equal weights have the same "
          "entropy.",
          PerQuery, Neither, Nothing, Layer},
         effectiveTokens},
        {{"sink_mass", "Sink mass", ExactAttention, "",
          "Exact attention on the first four tokens (StreamingLLM's sinks).", PerQuery, Neither, Nothing, Layer},
         sinkMass},
    };
}

} // namespace kvscope
