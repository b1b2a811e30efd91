// What BalanceKV's halvings cost one query: each by itself, and all of them together at a moment of the stream. Plain
// loops over one head, for pictures and checks; logits are shifted by their largest, which cancels in every quotient.
#include "core/policies/balance_errors.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

/// A weighted sum of values, or of ones.
class WeightedSum {
public:
    explicit WeightedSum(const HostTensor* values) : m_values(values), m_sum(values ? width() : 1, 0.0) {}

    void add(TokenIndex row, double weight) {
        if (!m_values) {
            m_sum[0] += weight;
            return;
        }
        const float* v = m_values->data.data() + static_cast<std::size_t>(row) * m_sum.size();
        for (double& x : m_sum)
            x += weight * double{*v++};
    }
    void subtract(const WeightedSum& other) {
        for (std::size_t i = 0; i < m_sum.size(); ++i)
            m_sum[i] -= other.m_sum[i];
    }
    void divide(double by) {
        for (double& x : m_sum)
            x /= by;
    }
    double norm() const {
        double square = 0;
        for (const double x : m_sum)
            square += x * x;
        return std::sqrt(square);
    }
    double first() const { return m_sum[0]; }

private:
    std::size_t width() const { return static_cast<std::size_t>(m_values->shape[1]); }

    const HostTensor* m_values;
    std::vector<double> m_sum;
};

double quotient(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

/// ||V||_F of the first rows.
double frobenius(const HostTensor& values, TokenIndex rows) {
    double square = 0;
    const auto count = static_cast<std::size_t>(rows * values.shape[1]);
    for (std::size_t i = 0; i < count; ++i)
        square += double{values.data[i]} * double{values.data[i]};
    return std::sqrt(square);
}

} // namespace

std::vector<double> queryLogits(std::span<const float> query, const HostTensor& keys, const AttentionRule& rule) {
    assert(std::cmp_equal(query.size(), keys.shape[1]));
    std::vector<double> logits;
    const float* key = keys.data.data();
    for (std::int64_t row = 0; row < keys.shape[0]; ++row) {
        double product = 0;
        for (const float q : query)
            product += double{q} * double{*key++};
        product *= rule.scaling;
        logits.push_back(rule.softcap > 0 ? rule.softcap * std::tanh(product / rule.softcap) : product);
    }
    return logits;
}

double halvingDiscrepancy(const BalanceNode& node, bool numerator, const QuerySight& sight) {
    double top = -std::numeric_limits<double>::infinity();
    for (const TokenIndex row : node.input)
        top = std::max(top, sight.logits[static_cast<std::size_t>(row)]);
    WeightedSum balanced(numerator ? &sight.values : nullptr), all = balanced;
    for (std::size_t i = 0; i < node.input.size(); ++i) {
        const double e = std::exp(sight.logits[static_cast<std::size_t>(node.input[i])] - top);
        balanced.add(node.input[i], node.signs[i] * e);
        all.add(node.input[i], e);
    }
    return quotient(balanced.norm(), all.norm());
}

StreamErrors streamErrors(const BalanceStream& stream, std::int64_t kvHead, TokenIndex cursor,
                          const QuerySight& sight) {
    assert(cursor >= 1);
    const double top = *std::max_element(sight.logits.begin(), sight.logits.begin() + cursor);
    const auto weight = [&](TokenIndex row) { return std::exp(sight.logits[static_cast<std::size_t>(row)] - top); };
    WeightedSum exact(&sight.values), exactOnes(nullptr);
    double squares = 0;
    for (TokenIndex row = 0; row < cursor; ++row) {
        exact.add(row, weight(row));
        exactOnes.add(row, weight(row));
        squares += weight(row) * weight(row);
    }
    const StreamSample sample = stream.sampleAt(kvHead, cursor);
    WeightedSum stored(&sight.values), storedOnes(nullptr);
    for (std::size_t i = 0; i < sample.set.numerator.size(); ++i)
        stored.add(sample.set.numerator[i], double{sample.set.numeratorWeights[i]} * weight(sample.set.numerator[i]));
    for (std::size_t i = 0; i < sample.set.denominator.size(); ++i)
        storedOnes.add(sample.set.denominator[i],
                       double{sample.set.denominatorWeights[i]} * weight(sample.set.denominator[i]));

    const double values = frobenius(sight.values, cursor), e = std::sqrt(squares);
    StreamErrors errors;
    WeightedSum numerator = stored;
    numerator.subtract(exact);
    errors.numerator = quotient(numerator.norm(), e * values);
    errors.denominator = quotient(std::abs(storedOnes.first() - exactOnes.first()), exactOnes.first());
    exact.divide(exactOnes.first());
    stored.divide(storedOnes.first() > 0 ? storedOnes.first() : 1);
    stored.subtract(exact);
    errors.output = quotient(stored.norm(), exact.norm());
    errors.epsilon = quotient(stored.norm(), e / exactOnes.first() * values);
    return errors;
}

} // namespace kvscope
