// Singular values by Hestenes' one-sided Jacobi method: columns are rotated in pairs until all are orthogonal; their
// lengths are the singular values. No Gram matrix is formed.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>

namespace kvscope::naive {

namespace {

using Columns = std::vector<Numbers>;

double dot(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

/// One rotation that makes two columns orthogonal; false when they are already.
bool rotate(Numbers& a, Numbers& b) {
    const double product = dot(a, b), lengths = std::sqrt(dot(a, a) * dot(b, b));
    if (std::abs(product) <= 1e-15 * lengths) return false;
    const double angle = 0.5 * std::atan2(2 * product, dot(a, a) - dot(b, b));
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = a[i], y = b[i];
        a[i] = std::cos(angle) * x + std::sin(angle) * y;
        b[i] = std::cos(angle) * y - std::sin(angle) * x;
    }
    return true;
}

Numbers valuesOf(Columns columns) {
    bool rotated = true;
    for (int sweep = 0; sweep < 60 && rotated; ++sweep) {
        rotated = false;
        for (std::size_t p = 0; p < columns.size(); ++p)
            for (std::size_t q = p + 1; q < columns.size(); ++q) rotated = rotate(columns[p], columns[q]) || rotated;
    }
    Numbers values;
    for (const Numbers& column : columns) values.push_back(std::sqrt(dot(column, column)));
    std::sort(values.rbegin(), values.rend());
    return values;
}

Numbers ofRows(const Block& rows, std::int64_t head, const std::vector<TokenIndex>& chosen) {
    Columns columns(std::size_t(rows.width));
    for (std::int64_t c = 0; c < rows.width; ++c)
        for (const TokenIndex row : chosen) columns[std::size_t(c)].push_back(rows.at(head, row, c));
    Numbers values = valuesOf(columns);
    for (std::size_t j = chosen.size(); j < values.size(); ++j) values[j] = 0; // fewer rows than columns
    return values;
}

std::vector<TokenIndex> firstRows(std::int64_t count) {
    std::vector<TokenIndex> rows;
    for (std::int64_t r = 0; r < count; ++r) rows.push_back(TokenIndex(r));
    return rows;
}

} // namespace

Numbers singularValues(const Block& rows, const RowPositions& chosen) {
    Numbers all;
    for (std::int64_t h = 0; h < rows.heads; ++h) {
        const Numbers values = ofRows(rows, h, chosen.empty() ? firstRows(rows.rows) : chosen[std::size_t(h)]);
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

Numbers prefixOperatorNorms(const Block& rows, std::int64_t first, std::int64_t count) {
    Numbers norms;
    for (std::int64_t h = 0; h < rows.heads; ++h)
        for (std::int64_t r = 0; r < count; ++r) norms.push_back(ofRows(rows, h, firstRows(first + r + 1)).front());
    return norms;
}

} // namespace kvscope::naive
