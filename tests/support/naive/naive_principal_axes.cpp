// Principal axes by cyclic Jacobi rotations: turn two coordinates at a time until nothing is left off the diagonal.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope::naive {

namespace {

using Matrix = std::vector<Numbers>;

void rotate(Matrix& a, Matrix& axes, std::size_t p, std::size_t q) {
    if (a[p][q] == 0) return;
    const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    const double c = 1 / std::sqrt(t * t + 1), s = t * c;
    for (std::size_t k = 0; k < a.size(); ++k) {
        const double akp = a[k][p], akq = a[k][q];
        a[k][p] = c * akp - s * akq;
        a[k][q] = s * akp + c * akq;
    }
    for (std::size_t k = 0; k < a.size(); ++k) {
        const double apk = a[p][k], aqk = a[q][k];
        a[p][k] = c * apk - s * aqk;
        a[q][k] = s * apk + c * aqk;
        const double xp = axes[p][k], xq = axes[q][k];
        axes[p][k] = c * xp - s * xq;
        axes[q][k] = s * xp + c * xq;
    }
}

Matrix covarianceOf(const Block& keys, std::int64_t head, const Numbers& mean) {
    const std::size_t d = mean.size();
    Matrix out(d, Numbers(d, 0.0));
    for (std::size_t a = 0; a < d; ++a)
        for (std::size_t b = 0; b < d; ++b) {
            for (std::int64_t r = 0; r < keys.rows; ++r)
                out[a][b] +=
                    (keys.at(head, r, std::int64_t(a)) - mean[a]) * (keys.at(head, r, std::int64_t(b)) - mean[b]);
            out[a][b] /= std::max(1.0, double(keys.rows - 1));
        }
    return out;
}

} // namespace

Numbers principalAxes(const Block& keys, std::int64_t head, int components) {
    const auto d = std::size_t(keys.width);
    Numbers mean(d, 0.0);
    for (std::size_t c = 0; c < d; ++c) {
        for (std::int64_t r = 0; r < keys.rows; ++r) mean[c] += keys.at(head, r, std::int64_t(c));
        mean[c] /= double(keys.rows);
    }
    Matrix a = covarianceOf(keys, head, mean), axes(d, Numbers(d, 0.0));
    double total = 0;
    for (std::size_t c = 0; c < d; ++c) {
        axes[c][c] = 1;
        total += a[c][c];
    }
    for (int sweep = 0; sweep < 30; ++sweep)
        for (std::size_t p = 0; p < d; ++p)
            for (std::size_t q = p + 1; q < d; ++q) rotate(a, axes, p, q);
    std::vector<std::size_t> order(d);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return a[x][x] > a[y][y]; });

    Numbers out = mean, shares;
    for (int k = 0; k < components; ++k) {
        Numbers axis = axes[order[std::size_t(k)]];
        const auto largest =
            std::max_element(axis.begin(), axis.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
        const double sign = *largest < 0 ? -1 : 1;
        for (double x : axis) out.push_back(sign * x);
        shares.push_back(a[order[std::size_t(k)]][order[std::size_t(k)]] / total);
    }
    out.insert(out.end(), shares.begin(), shares.end());
    out.push_back(total);
    return out;
}

} // namespace kvscope::naive
