// What Compactor is made of, one sum sign after the other: leverage by one-sided Jacobi rotations of the rows,
// attention inside chunks, z-scores.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>

namespace kvscope::naive {

namespace {

using Rows = std::vector<Numbers>;

/// Rows of one chunk, multiplied by the sketch and with their mean taken away where asked for.
Rows chunkRows(const LeverageCase& in, std::int64_t head, std::int64_t begin, std::int64_t end) {
    Rows rows;
    for (std::int64_t i = begin; i < end; ++i) {
        Numbers row;
        if (in.sketch.numbers.empty())
            for (std::int64_t c = 0; c < in.rows.width; ++c) row.push_back(in.rows.at(head, i, c));
        for (std::int64_t j = 0; j < in.sketch.width; ++j) {
            double sum = 0;
            for (std::int64_t c = 0; c < in.rows.width; ++c)
                sum += in.rows.at(head, i, c) * in.sketch.at(in.sketch.heads == 1 ? 0 : head, c, j);
            row.push_back(sum);
        }
        rows.push_back(row);
    }
    for (std::size_t c = 0; in.centred && c < rows[0].size(); ++c) {
        double sum = 0;
        for (const Numbers& row : rows) sum += row[c];
        for (Numbers& row : rows) row[c] -= sum / double(rows.size());
    }
    return rows;
}

double columnProduct(const Rows& rows, std::size_t a, std::size_t b) {
    double sum = 0;
    for (const Numbers& row : rows) sum += row[a] * row[b];
    return sum;
}

/// Turns the columns in pairs until all are orthogonal: U S in place of U S V^T.
void orthogonalise(Rows& rows) {
    const std::size_t d = rows[0].size();
    bool turned = true;
    for (int sweep = 0; sweep < 60 && turned; ++sweep) {
        turned = false;
        for (std::size_t a = 0; a < d; ++a)
            for (std::size_t b = a + 1; b < d; ++b) {
                const double both = columnProduct(rows, a, b), first = columnProduct(rows, a, a),
                             second = columnProduct(rows, b, b);
                if (std::abs(both) <= 1e-15 * std::sqrt(first * second)) continue;
                turned = true;
                const double angle = 0.5 * std::atan2(2 * both, first - second);
                for (Numbers& row : rows) {
                    const double x = row[a], y = row[b];
                    row[a] = std::cos(angle) * x + std::sin(angle) * y;
                    row[b] = std::cos(angle) * y - std::sin(angle) * x;
                }
            }
    }
}

Numbers leverageOfChunk(const LeverageCase& in, std::int64_t head, std::int64_t begin, std::int64_t end) {
    Rows rows = chunkRows(in, head, begin, end);
    double raw = 0, largest = 0;
    for (const Numbers& row : chunkRows({in.rows, in.sketch}, head, begin, end))
        for (const double x : row) raw = std::max(raw, std::abs(x));
    orthogonalise(rows);
    for (std::size_t j = 0; j < rows[0].size(); ++j) largest = std::max(largest, columnProduct(rows, j, j));
    Numbers scores(rows.size(), 0.0);
    for (std::size_t j = 0; j < rows[0].size(); ++j) {
        const double square = columnProduct(rows, j, j);
        const bool clamps = in.regulariser == Regulariser::Clamp;
        if (!clamps && square <= std::max(1e-26 * largest, 1e-26 * raw * raw * double(rows.size())))
            continue; // rounding
        const double divisor =
            clamps ? std::max(square, in.strength) : square + (in.regulariser == Regulariser::Ridge ? in.strength : 0);
        for (std::size_t i = 0; i < rows.size(); ++i) scores[i] += rows[i][j] * rows[i][j] / divisor;
    }
    return scores;
}

} // namespace

Numbers leverage(const LeverageCase& in) {
    Numbers all;
    const std::int64_t step = in.chunk > 0 ? in.chunk : in.rows.rows;
    for (std::int64_t h = 0; h < in.rows.heads; ++h)
        for (std::int64_t begin = 0; begin < in.rows.rows; begin += step) {
            const Numbers chunk = leverageOfChunk(in, h, begin, std::min(in.rows.rows, begin + step));
            all.insert(all.end(), chunk.begin(), chunk.end());
        }
    return all;
}

Numbers attentionChunkSums(const ChunksCase& in) {
    const std::int64_t n = in.keys.rows;
    Numbers sums(std::size_t(in.queries.heads * n), 0.0);
    for (std::int64_t h = 0; h < in.queries.heads; ++h)
        for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t begin = j - j % in.chunk, end = std::min(n, begin + in.chunk);
            const bool partial = end - begin < in.chunk;
            Numbers logits;
            for (std::int64_t i = begin; i < end; ++i) {
                double logit = 0;
                for (std::int64_t c = 0; c < in.keys.width; ++c)
                    logit += in.queries.at(h, j, c) * in.keys.at(in.rule.gqaGroupOf[std::size_t(h)], i, c);
                logit *= in.rule.scaling;
                logit = in.rule.softcap > 0 ? in.rule.softcap * std::tanh(logit / in.rule.softcap) : logit;
                const bool far =
                    in.rule.slidingWindow > 0 && (i - j >= in.rule.slidingWindow || j - i >= in.rule.slidingWindow);
                logits.push_back(far ? -1e300 : logit);
            }
            const std::int64_t zeros = partial ? in.zeroKeys : 0;
            double top = zeros > 0 ? 0 : logits[0], total = 0;
            for (const double logit : logits) top = std::max(top, logit);
            for (const double logit : logits) total += std::exp(logit - top);
            total += double(zeros) * std::exp(-top);
            if (!in.rule.sinks.empty()) total += std::exp(double{in.rule.sinks[std::size_t(h)]} - top);
            for (std::int64_t i = begin; i < end; ++i)
                sums[std::size_t(h * n + i)] += std::exp(logits[std::size_t(i - begin)] - top) / total;
            if (partial && j == begin)
                for (std::int64_t i = begin; i < end; ++i) { // a softmax over C zeros and the sink
                    const double sink = in.rule.sinks.empty() ? 0 : std::exp(double{in.rule.sinks[std::size_t(h)]});
                    sums[std::size_t(h * n + i)] += double(in.uniformRows) / (double(in.chunk) + sink);
                }
        }
    return sums;
}

Numbers standardise(const Block& scores, const Standardisation& how) {
    const std::int64_t n = scores.width;
    Numbers out(scores.numbers.size(), 0.0);
    for (std::int64_t h = 0; h < scores.heads; ++h)
        for (std::int64_t i = 0; i < n; ++i) {
            const auto belongs = [&](std::int64_t g, std::int64_t j) {
                return (how.jointly || g == h) && (how.chunk == 0 || j / how.chunk == i / how.chunk);
            };
            double sum = 0, squares = 0, count = 0, largest = 0;
            const auto each = [&](auto visit) {
                for (std::int64_t g = 0; g < scores.heads; ++g)
                    for (std::int64_t j = 0; j < n; ++j)
                        if (belongs(g, j)) visit(scores.at(g, 0, j));
            };
            each([&](double x) { sum += x, count += 1, largest = std::max(largest, std::abs(x)); });
            each([&](double x) { squares += (x - sum / count) * (x - sum / count); });
            const double divisor = how.sample ? count - 1 : count;
            const double deviation = divisor > 0 ? std::sqrt(squares / divisor) : 0;
            if (deviation > 1e-7 * largest) // else constant
                out[std::size_t(h * n + i)] = (scores.at(h, 0, i) - sum / count) / std::max(deviation, how.floor);
        }
    return out;
}

} // namespace kvscope::naive
