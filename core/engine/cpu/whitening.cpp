// A small matrix W that whitens rows: the leverage of a row is the squared norm of its product with W. Each route
// computes W by another decomposition of the same d x d problem.
#include "core/engine/cpu/whitening.h"

#include "core/base/parallel.h"
#include "core/engine/cpu/symmetric_eigen.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <Eigen/SVD>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope::cpu {

namespace {

constexpr double kEpsilon = 0x1.0p-52;

/// Relative size below which a direction counts as rounding.
double tolerance(const WhiteningRule& rule, Eigen::Index d) {
    return static_cast<double>(std::max<std::int64_t>(rule.rows, d)) * kEpsilon;
}

double ridgeOf(const WhiteningRule& rule) { return rule.regulariser == Regulariser::Ridge ? rule.strength : 0; }

/// Divides directions by their lengths; `squares`: squared lengths, descending, ridge included.
Whitening fromSpectrum(const Eigen::MatrixXd& vectors, const Eigen::VectorXd& squares, double cut,
                       const WhiteningRule& rule) {
    const bool clamp = rule.regulariser == Regulariser::Clamp;
    Whitening out{vectors, (squares.array() - ridgeOf(rule)).max(0.0).sqrt()};
    Eigen::Index rank = 0;
    for (Eigen::Index j = 0; j < squares.size() && (clamp || squares[j] > cut); ++j, ++rank)
        out.directions.col(j) /= std::sqrt(clamp ? std::max(squares[j], rule.strength) : squares[j]);
    out.directions.conservativeResize(Eigen::NoChange, rank);
    return out;
}

Whitening byEigenvectors(const Eigen::MatrixXd& gram, const WhiteningRule& rule) {
    const cpu::SymmetricEigen all = cpu::symmetricEigen(gram);
    const Eigen::VectorXd squares = all.values.reverse();
    const double cut = std::max(rule.noise, squares[0] * tolerance(rule, gram.rows()));
    return fromSpectrum(all.vectors.rowwise().reverse(), squares, cut, rule);
}

/// G = L L^T with symmetric pivoting: the largest remaining diagonal entry first, ending at pivots that are rounding.
/// `order`: order of the pivots, in which L [d, rank] has its rows.
struct PivotedFactor {
    Eigen::MatrixXd lower;
    std::vector<Eigen::Index> order;
    Eigen::Index rank = 0;
};

PivotedFactor pivotedCholesky(const Eigen::MatrixXd& gram, double cut, bool pivot) {
    const Eigen::Index d = gram.rows();
    PivotedFactor out{Eigen::MatrixXd::Zero(d, d), std::vector<Eigen::Index>(static_cast<std::size_t>(d)), 0};
    std::iota(out.order.begin(), out.order.end(), Eigen::Index{0});
    Eigen::MatrixXd rest = gram;
    for (Eigen::Index j = 0; j < d; ++j) {
        Eigen::Index best = j;
        if (pivot) rest.diagonal().tail(d - j).maxCoeff(&best), best += j;
        if (!(rest(best, best) > cut)) break;
        if (best != j) {
            rest.row(j).swap(rest.row(best));
            rest.col(j).swap(rest.col(best));
            out.lower.row(j).swap(out.lower.row(best));
            std::swap(out.order[j], out.order[best]);
        }
        const double root = std::sqrt(rest(j, j));
        const Eigen::Index below = d - j - 1;
        out.lower(j, j) = root;
        out.lower.col(j).tail(below) = rest.col(j).tail(below) / root;
        rest.bottomRightCorner(below, below).noalias() -=
            out.lower.col(j).tail(below) * out.lower.col(j).tail(below).transpose();
        ++out.rank;
    }
    return out;
}

/// W with W^T x = T^-1 (x in pivot order): T [rank, rank] is lower triangular.
Eigen::MatrixXd inverseInOrder(const Eigen::MatrixXd& lower, const std::vector<Eigen::Index>& order, Eigen::Index d) {
    const Eigen::Index rank = lower.rows();
    const Eigen::MatrixXd inverse = lower.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(rank, rank));
    Eigen::MatrixXd directions = Eigen::MatrixXd::Zero(d, rank);
    for (Eigen::Index j = 0; j < rank; ++j) directions.row(order[j]) = inverse.col(j).transpose();
    return directions;
}

/// Without pivoting while no pivot is rounding: W is then triangular and half the work. Otherwise with pivoting, which
/// finds a largest set of independent columns; leverage depends on their span alone.
Whitening byCholesky(const Eigen::MatrixXd& gram, const WhiteningRule& rule) {
    const Eigen::Index d = gram.rows();
    const double cut = std::max(rule.noise, gram.diagonal().maxCoeff() * tolerance(rule, d));
    PivotedFactor factor = pivotedCholesky(gram, cut, false);
    if (factor.rank < d) factor = pivotedCholesky(gram, cut, true);
    return {inverseInOrder(factor.lower.topLeftCorner(factor.rank, factor.rank), factor.order, d), {}};
}

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Matrix `index` of [B, height, width].
Eigen::Map<const RowMajor> matrixOf(std::span<const double> all, std::int64_t index, std::int64_t height,
                                    std::int64_t width) {
    return {all.data() + index * height * width, height, width};
}

/// Whether no direction can count as rounding: || factor^-1 || bounds the smallest singular value from below.
bool isOfFullRank(const Whitening& whitening, const Eigen::MatrixXd& factor, const WhiteningRule& rule) {
    const double share = tolerance(rule, factor.cols());
    return whitening.directions.cols() == factor.cols() &&
           1 > whitening.directions.squaredNorm() * std::max(rule.noise, factor.squaredNorm() * share * share);
}

/// K = U S V^T and the factor have the same S and V.
Whitening bySingularVectors(const Eigen::MatrixXd& factor, const WhiteningRule& rule) {
    const Eigen::JacobiSVD<Eigen::MatrixXd, Eigen::ColPivHouseholderQRPreconditioner> svd(factor, Eigen::ComputeThinV);
    const double share = tolerance(rule, factor.cols());
    const Eigen::VectorXd squares = svd.singularValues().array().square();
    return fromSpectrum(svd.matrixV(), squares, std::max(rule.noise, squares[0] * share * share), rule);
}

/// R P = Q' R': the leading part of R' spans the columns; K P R'^-1 is orthonormal.
Whitening byTriangle(const Eigen::MatrixXd& factor, const WhiteningRule& rule) {
    const Eigen::Index d = factor.cols(), most = std::min(factor.rows(), d);
    const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(factor);
    const double largest = std::abs(qr.matrixQR()(0, 0));
    const double cut = std::max(std::sqrt(rule.noise), largest * tolerance(rule, d));
    Eigen::Index rank = 0;
    while (rank < most && std::abs(qr.matrixQR()(rank, rank)) > cut) ++rank;
    std::vector<Eigen::Index> order;
    for (Eigen::Index j = 0; j < rank; ++j) order.push_back(qr.colsPermutation().indices()[j]);
    const Eigen::MatrixXd upper = qr.matrixQR().topLeftCorner(rank, rank).triangularView<Eigen::Upper>();
    return {inverseInOrder(upper.transpose(), order, d), {}};
}

Whitening whiteningOfGram(const Eigen::MatrixXd& gram, const WhiteningRule& rule) {
    Eigen::MatrixXd regular = gram;
    regular.diagonal().array() += ridgeOf(rule);
    assert(rule.route == LeverageRoute::Gram || rule.regulariser != Regulariser::Clamp);
    return rule.route == LeverageRoute::Cholesky ? byCholesky(regular, rule) : byEigenvectors(regular, rule);
}

Whitening whiteningOfFactor(const Eigen::MatrixXd& factor, const WhiteningRule& rule) {
    const Eigen::Index d = factor.cols(), extra = ridgeOf(rule) > 0 ? d : 0;
    // A ridge is d more rows sqrt(strength) I.
    Eigen::MatrixXd regular(factor.rows() + extra, d);
    regular << factor, Eigen::MatrixXd::Identity(extra, d) * std::sqrt(ridgeOf(rule));
    assert(rule.route == LeverageRoute::Svd || rule.regulariser != Regulariser::Clamp);
    if (rule.regulariser != Regulariser::Clamp) { // at full rank singular vectors span the same space
        Whitening triangular = byTriangle(regular, rule);
        if (rule.route == LeverageRoute::Qr || isOfFullRank(triangular, regular, rule)) return triangular;
    }
    return bySingularVectors(regular, rule);
}

} // namespace

Whitening whiteningOf(const Eigen::MatrixXd& small, const WhiteningRule& rule) {
    return usesFactor(rule.route) ? whiteningOfFactor(small, rule) : whiteningOfGram(small, rule);
}

Eigen::VectorXd singularValuesOf(const Whitening& whitening, const Eigen::MatrixXd& small, LeverageRoute route) {
    if (whitening.singularValues.size() > 0) return whitening.singularValues;
    if (usesFactor(route)) return bySingularVectors(small, {LeverageRoute::Svd}).singularValues;
    return cpu::symmetricEigenvalues(small).reverse().cwiseMax(0).cwiseSqrt();
}

} // namespace kvscope::cpu

namespace kvscope {

Whitenings whiteningsOf(std::span<const double> matrices, std::int64_t height, std::int64_t k,
                        const WhiteningRule& rule, std::span<const double> noise, bool wantsSpectrum) {
    const std::int64_t count = std::ssize(matrices) / (height * k);
    Whitenings out{std::vector<double>(static_cast<std::size_t>(count * k * k)),
                   std::vector<double>(static_cast<std::size_t>(wantsSpectrum ? count * k : 0)),
                   std::vector<std::int64_t>(static_cast<std::size_t>(count))};
    forEachPiece(count, [&](std::int64_t i) {
        const Eigen::MatrixXd small = cpu::matrixOf(matrices, i, height, k);
        WhiteningRule own = rule;
        own.noise = noise.empty() ? 0 : noise[i];
        const cpu::Whitening one = cpu::whiteningOf(small, own);
        out.rank[i] = one.directions.cols();
        Eigen::Map<cpu::RowMajor>(out.directions.data() + i * k * k, k, k).leftCols(out.rank[i]) = one.directions;
        if (wantsSpectrum)
            std::ranges::copy(cpu::singularValuesOf(one, small, rule.route), out.singularValues.begin() + i * k);
    });
    return out;
}

std::vector<double> inverseRoots(std::span<const double> grams, std::int64_t k) {
    std::vector<double> out(grams.size(), std::numeric_limits<double>::quiet_NaN());
    forEachPiece(std::ssize(grams) / (k * k), [&](std::int64_t i) {
        const Eigen::LLT<Eigen::MatrixXd> root(cpu::matrixOf(grams, i, k, k));
        if (root.info() == Eigen::Success)
            Eigen::Map<cpu::RowMajor>(out.data() + i * k * k, k, k) =
                root.matrixU().solve(Eigen::MatrixXd::Identity(k, k));
    });
    return out;
}

std::vector<double> projections(std::span<const double> grams, std::span<const double> products, std::int64_t k) {
    constexpr double kNear = 0.1; // below it, one more Cholesky factor makes the columns orthonormal to rounding
    std::vector<double> out(grams.size(), std::numeric_limits<double>::quiet_NaN());
    forEachPiece(std::ssize(grams) / (k * k), [&](std::int64_t i) {
        const Eigen::MatrixXd gram = cpu::matrixOf(grams, i, k, k);
        if ((gram - Eigen::MatrixXd::Identity(k, k)).norm() < kNear)
            Eigen::Map<cpu::RowMajor>(out.data() + i * k * k, k, k) =
                Eigen::LLT<Eigen::MatrixXd>(gram).matrixL().solve(Eigen::MatrixXd(cpu::matrixOf(products, i, k, k)));
    });
    return out;
}

} // namespace kvscope
