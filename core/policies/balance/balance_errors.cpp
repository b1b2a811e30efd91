// The error that BalanceKV's halvings cause for one query: of each halving, and of the stored samples at a cursor.
// Plain loops over one head, for views and tests; logits are shifted by their maximum, which cancels in every quotient.
#include "core/policies/balance/balance_errors.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

/// A weighted sum of values, or of ones in the denominator.
class WeightedSum {
public:
    explicit WeightedSum(const HostTensor* values) : m_values(values), m_sum(values ? width() : 1, 0.0) {}

    void add(TokenIndex row, double weight) {
        if (!m_values) {
            m_sum[0] += weight;
            return;
        }
        const float* v = m_values->data.data() + static_cast<std::size_t>(row) * m_sum.size();
        for (double& x : m_sum) x += weight * double{*v++};
    }
    void subtract(const WeightedSum& other) {
        for (std::size_t i = 0; i < m_sum.size(); ++i) m_sum[i] -= other.m_sum[i];
    }
    void scale(double by) {
        for (double& x : m_sum) x *= by;
    }
    double norm() const {
        double square = 0;
        for (const double x : m_sum) square += x * x;
        return std::sqrt(square);
    }
    double first() const { return m_sum[0]; }

private:
    std::size_t width() const { return static_cast<std::size_t>(m_values->shape[1]); }

    const HostTensor* m_values;
    std::vector<double> m_sum;
};

double quotient(double part, double whole) { return whole > 0 ? part / whole : 0; }

double squareOf(const HostTensor& values, TokenIndex row) {
    const float* v = values.data.data() + row * values.shape[1];
    double square = 0;
    for (std::int64_t c = 0; c < values.shape[1]; ++c) square += double{v[c]} * double{v[c]};
    return square;
}

/// Exact sums over all rows read so far, rescaled when a larger logit arrives (online softmax).
class ExactSums {
public:
    explicit ExactSums(const QuerySight& sight) : m_sight(sight), m_numerator(&sight.values), m_denominator(nullptr) {}

    void read(TokenIndex row) {
        const double logit = m_sight.logits[row];
        if (logit > m_top) {
            const double factor = std::exp(m_top - logit);
            m_numerator.scale(factor);
            m_denominator.scale(factor);
            m_squares *= factor * factor;
            m_top = logit;
        }
        const double e = weight(row);
        m_numerator.add(row, e);
        m_denominator.add(row, e);
        m_squares += e * e;
        m_values += squareOf(m_sight.values, row);
    }

    double weight(TokenIndex row) const { return std::exp(m_sight.logits[row] - m_top); }

    StreamErrors errorsOf(const WeightedSet& stored) const {
        WeightedSum numerator(&m_sight.values), denominator(nullptr), exact = m_numerator;
        for (std::size_t i = 0; i < stored.numerator.size(); ++i)
            numerator.add(stored.numerator[i], double{stored.numeratorWeights[i]} * weight(stored.numerator[i]));
        for (std::size_t i = 0; i < stored.denominator.size(); ++i)
            denominator.add(stored.denominator[i],
                            double{stored.denominatorWeights[i]} * weight(stored.denominator[i]));
        const double den = m_denominator.first(), e = std::sqrt(m_squares), values = std::sqrt(m_values);
        StreamErrors errors;
        WeightedSum missing = numerator;
        missing.subtract(exact);
        errors.numerator = quotient(missing.norm(), e * values);
        errors.denominator = quotient(std::abs(denominator.first() - den), den);
        exact.scale(1 / den);
        numerator.scale(denominator.first() > 0 ? 1 / denominator.first() : 1);
        numerator.subtract(exact);
        errors.output = quotient(numerator.norm(), exact.norm());
        errors.epsilon = quotient(numerator.norm(), e / den * values);
        return errors;
    }

private:
    const QuerySight& m_sight;
    WeightedSum m_numerator, m_denominator;
    double m_top = -std::numeric_limits<double>::infinity(), m_squares = 0, m_values = 0;
};

} // namespace

std::vector<double> queryLogits(std::span<const float> query, const HostTensor& keys, const AttentionRule& rule) {
    assert(std::cmp_equal(query.size(), keys.shape[1]));
    std::vector<double> logits;
    const float* key = keys.data.data();
    for (std::int64_t row = 0; row < keys.shape[0]; ++row) {
        double product = 0;
        for (const float q : query) product += double{q} * double{*key++};
        product *= rule.scaling;
        logits.push_back(rule.softcap > 0 ? rule.softcap * std::tanh(product / rule.softcap) : product);
    }
    return logits;
}

double halvingDiscrepancy(const BalanceNode& node, bool numerator, const QuerySight& sight) {
    double top = -std::numeric_limits<double>::infinity();
    for (const TokenIndex row : node.input) top = std::max(top, sight.logits[row]);
    WeightedSum balanced(numerator ? &sight.values : nullptr), all = balanced;
    for (std::size_t i = 0; i < node.input.size(); ++i) {
        const double e = std::exp(sight.logits[node.input[i]] - top);
        balanced.add(node.input[i], node.signs[i] * e);
        all.add(node.input[i], e);
    }
    return quotient(balanced.norm(), all.norm());
}

std::vector<StreamErrors> streamErrors(const BalanceStream& stream, std::int64_t kvHead,
                                       std::span<const TokenIndex> cursors, const QuerySight& sight,
                                       const Checkpoint& checkpoint) {
    std::vector<StreamErrors> errors;
    ExactSums sums(sight);
    TokenIndex read = 0;
    for (const TokenIndex cursor : cursors) {
        assert(cursor >= 1 && cursor >= read);
        checkpoint.at(static_cast<double>(cursor), static_cast<double>(cursors.back()));
        while (read < cursor) sums.read(read++);
        errors.push_back(sums.errorsOf(stream.sampleAt(kvHead, cursor).set));
    }
    return errors;
}

} // namespace kvscope
