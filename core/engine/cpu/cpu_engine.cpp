// The CPU engine in its plainest form: Eigen for products, TBB over heads and row blocks, sums in double.
#include "core/base/error.h"
#include "core/engine/engine.h"

#include <Eigen/Dense>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct CpuStorage : TensorStorage {
    std::shared_ptr<const std::vector<float>> data;
    std::int64_t offset = 0, headStride = 0; // elements
};

struct View {
    const float* data;
    std::int64_t headStride;
    const float* head(std::int64_t h) const { return data + h * headStride; }
};

View viewOf(const Tensor& t) {
    const auto& s = static_cast<const CpuStorage&>(*t.storage());
    return {s.data->data() + s.offset, s.headStride};
}

Tensor wrap(Shape shape, std::vector<float> data) {
    auto storage = std::make_shared<CpuStorage>();
    storage->headStride = shape.rank() == 0 ? 0 : shape.count() / std::max<std::int64_t>(1, shape[0]);
    storage->data = std::make_shared<const std::vector<float>>(std::move(data));
    return {shape, std::move(storage)};
}

double dotOf(const float* a, const float* b, std::int64_t d) {
    double sum = 0;
    for (std::int64_t i = 0; i < d; ++i)
        sum += double(a[i]) * double(b[i]);
    return sum;
}

double metricOf(const float* a, const float* b, std::int64_t d, SimilarityMetric metric) {
    if (metric == SimilarityMetric::Dot)
        return dotOf(a, b, d);
    if (metric == SimilarityMetric::Euclidean) {
        double sum = 0;
        for (std::int64_t i = 0; i < d; ++i)
            sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
        return std::sqrt(sum);
    }
    const double norms = std::sqrt(dotOf(a, a, d)) * std::sqrt(dotOf(b, b, d));
    return norms > 0 ? dotOf(a, b, d) / norms : 0;
}

double logit(const AttentionRule& rule, const float* q, const float* k, std::int64_t d) {
    const double raw = dotOf(q, k, d) * rule.scaling;
    return rule.softcap > 0 ? rule.softcap * std::tanh(raw / rule.softcap) : raw;
}

bool seen(const AttentionRule& rule, std::int64_t query, std::int64_t key) {
    return key <= query && (rule.slidingWindow == 0 || key > query - rule.slidingWindow);
}

class CpuEngine final : public Engine {
public:
    explicit CpuEngine(int threads) {
        if (threads > 0)
            m_control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
    }
    std::string name() const override { return "cpu"; }
    std::string arithmetic() const override { return "exact index contract"; }
    Tensor upload(HostTensor t) const override { return wrap(t.shape, std::move(t.data)); }
    HostTensor download(const Tensor& t) const override {
        HostTensor out{t.shape(), std::vector<float>(std::size_t(t.shape().count()))};
        const View v = viewOf(t);
        const std::int64_t per = t.shape().rank() ? t.shape().count() / std::max<std::int64_t>(1, t.size(0)) : 0;
        for (std::int64_t h = 0; h < t.size(0); ++h)
            std::copy_n(v.head(h), per, out.data.begin() + h * per);
        return out;
    }
    Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t end) const override {
        auto s = std::make_shared<CpuStorage>(static_cast<const CpuStorage&>(*t.storage()));
        const std::int64_t width = t.shape().rank() == 3 ? t.size(2) : 1;
        s->offset += begin * width;
        return {t.shape().rank() == 3 ? Shape{t.size(0), end - begin, t.size(2)} : Shape{t.size(0), end - begin}, s};
    }
    Tensor gatherRows(const Tensor& t, const RowPositions& rows) const override {
        const std::int64_t H = t.size(0), m = std::int64_t(rows[0].size()), w = t.shape().rank() == 3 ? t.size(2) : 1;
        std::vector<float> out(std::size_t(H * m * w));
        const View v = viewOf(t);
        tbb::parallel_for(std::int64_t(0), H, [&](std::int64_t h) {
            for (std::int64_t r = 0; r < m; ++r)
                std::copy_n(v.head(h) + rows[std::size_t(h)][std::size_t(r)] * w, w, out.begin() + (h * m + r) * w);
        });
        return wrap(t.shape().rank() == 3 ? Shape{H, m, w} : Shape{H, m}, std::move(out));
    }
    Tensor rowNorms(const Tensor& k, const Checkpoint&) const override {
        return perRow(k, [&](std::int64_t, const float* row, std::int64_t d) { return std::sqrt(dotOf(row, row, d)); });
    }
    Tensor anchor(const Tensor& k, AnchorKind kind, const Checkpoint&) const override {
        const std::int64_t H = k.size(0), n = k.size(1), d = k.size(2);
        std::vector<float> out(std::size_t(H * d));
        const View v = viewOf(k);
        tbb::parallel_for(std::int64_t(0), H, [&](std::int64_t h) {
            std::vector<double> sum(static_cast<std::size_t>(d));
            for (std::int64_t i = 0; i < n; ++i) {
                const float* row = v.head(h) + i * d;
                const double norm = kind == AnchorKind::NormalisedMean ? std::sqrt(dotOf(row, row, d)) : 1;
                if (norm > 0)
                    for (std::int64_t c = 0; c < d; ++c)
                        sum[std::size_t(c)] += row[c] / norm;
            }
            for (std::int64_t c = 0; c < d; ++c) {
                if (kind != AnchorKind::Median) {
                    out[std::size_t(h * d + c)] = float(sum[std::size_t(c)] / double(n));
                    continue;
                }
                std::vector<float> column(static_cast<std::size_t>(n));
                for (std::int64_t i = 0; i < n; ++i)
                    column[std::size_t(i)] = v.head(h)[i * d + c];
                std::sort(column.begin(), column.end());
                const std::size_t mid = std::size_t(n / 2);
                out[std::size_t(h * d + c)] =
                    n % 2 ? column[mid] : float((double(column[mid - 1]) + column[mid]) / 2);
            }
        });
        return wrap(Shape{H, d}, std::move(out));
    }
    Tensor similarity(const Tensor& k, const Tensor& anchor, SimilarityMetric metric, const Checkpoint&) const override {
        const View a = viewOf(anchor);
        return perRow(k, [&](std::int64_t h, const float* row, std::int64_t d) { return metricOf(row, a.head(h), d, metric); });
    }
    Tensor pairwiseSums(const Tensor& k, SimilarityMetric metric, const Checkpoint&) const override {
        const View v = viewOf(k);
        return perRow(k, [&](std::int64_t h, const float* row, std::int64_t d) {
            double sum = 0;
            for (std::int64_t j = 0; j < k.size(1); ++j)
                sum += metricOf(row, v.head(h) + j * d, d, metric);
            return sum;
        });
    }
    Tensor attentionColumnSums(const AttentionInput& in, const Checkpoint& checkpoint) const override {
        const std::int64_t Hq = in.queries.size(0), w = in.queries.size(1), d = in.queries.size(2), m = in.keys.size(1);
        std::vector<float> out(std::size_t(Hq * m));
        const View q = viewOf(in.queries), k = viewOf(in.keys);
        tbb::parallel_for(std::int64_t(0), Hq, [&](std::int64_t h) {
            const std::int64_t g = in.rule.kvOfQ[std::size_t(h)];
            std::vector<double> sum(static_cast<std::size_t>(m)), l(static_cast<std::size_t>(m));
            for (std::int64_t j = 0; j < w; ++j) {
                checkpoint.at(double(j), double(w));
                double top = -INFINITY, total = 0;
                for (std::int64_t i = 0; i < m; ++i) {
                    const std::int64_t at = in.keyPositions.empty() ? i : in.keyPositions[std::size_t(g)][std::size_t(i)];
                    l[std::size_t(i)] = seen(in.rule, in.firstQuery + j, at)
                                            ? logit(in.rule, q.head(h) + j * d, k.head(g) + i * d, d) : -INFINITY;
                    top = std::max(top, l[std::size_t(i)]);
                }
                if (top == -INFINITY)
                    continue;
                for (double& x : l)
                    total += x = std::exp(x - top);
                for (std::int64_t i = 0; i < m; ++i)
                    sum[std::size_t(i)] += l[std::size_t(i)] / total;
            }
            std::copy(sum.begin(), sum.end(), out.begin() + h * m);
        });
        return wrap(Shape{Hq, m}, std::move(out));
    }
    Tensor pool(const Tensor& s, PoolKind kind, std::int64_t width) const override {
        const std::int64_t H = s.size(0), n = s.size(1), half = width / 2;
        std::vector<float> out(std::size_t(H * n));
        const View v = viewOf(s);
        for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t i = 0; i < n; ++i) {
                double sum = 0, top = -INFINITY;
                for (std::int64_t j = std::max<std::int64_t>(0, i - half); j <= std::min(n - 1, i + half); ++j) {
                    sum += v.head(h)[j];
                    top = std::max(top, double(v.head(h)[j]));
                }
                out[std::size_t(h * n + i)] = float(kind == PoolKind::Max ? top : sum / double(width));
            }
        return wrap(Shape{H, n}, std::move(out));
    }
    Tensor reduceGroups(const Tensor& s, std::span<const std::int32_t> kvOfQ, std::int64_t numKv, GroupRule rule) const override {
        const std::int64_t n = s.size(1);
        std::vector<float> out(std::size_t(numKv * n));
        const View v = viewOf(s);
        for (std::int64_t g = 0; g < numKv; ++g)
            for (std::int64_t i = 0; i < n; ++i) {
                double sum = 0, top = -INFINITY;
                int count = 0;
                for (std::size_t h = 0; h < kvOfQ.size(); ++h)
                    if (kvOfQ[h] == g) {
                        const double x = v.head(std::int64_t(h))[i];
                        sum += x;
                        top = std::max(top, x);
                        ++count;
                    }
                out[std::size_t(g * n + i)] = float(rule == GroupRule::Sum ? sum : rule == GroupRule::Max ? top : sum / count);
            }
        return wrap(Shape{numKv, n}, std::move(out));
    }
    Tensor scale(const Tensor& s, double factor) const override {
        HostTensor t = download(s);
        for (float& x : t.data)
            x = float(x * factor);
        return upload(std::move(t));
    }
    std::vector<TopKHead> topK(const TopKRequest& r) const override {
        std::vector<TopKHead> heads(std::size_t(r.scores.size(0)));
        const View v = viewOf(r.scores);
        const std::int64_t m = r.scores.size(1);
        for (std::size_t h = 0; h < heads.size(); ++h) {
            const float* s = v.head(std::int64_t(h));
            for (std::int64_t i = 0; i < m; ++i)
                if (std::isnan(s[i]))
                    throw Error({"score of token " + std::to_string(i) + " in head " + std::to_string(h) + " is not a number"});
            std::int64_t count = r.counts[h], first = std::min(r.protectFirst, m);
            std::int64_t last = std::min(r.protectLast, m - first);
            first = std::min(first, count);
            last = std::min(last, count - first);
            TopKHead& out = heads[h];
            for (std::int64_t i = 0; i < first; ++i)
                out.kept.push_back(TokenIndex(i));
            for (std::int64_t i = m - last; i < m; ++i)
                out.kept.push_back(TokenIndex(i));
            std::vector<TokenIndex> order(std::size_t(m - first - last));
            std::iota(order.begin(), order.end(), TokenIndex(first));
            std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return s[a] > s[b]; });
            const std::size_t free = std::size_t(count - first - last);
            out.kept.insert(out.kept.end(), order.begin(), order.begin() + std::ptrdiff_t(free));
            std::sort(out.kept.begin(), out.kept.end());
            out.margin = free == 0 || free == order.size() ? INFINITY : s[order[free - 1]] - s[order[free]];
        }
        return heads;
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& in, const Checkpoint& checkpoint) const override {
        const std::int64_t Hq = in.queries.size(0), w = in.queries.size(1), d = in.queries.size(2), dv = in.values.size(2);
        std::vector<float> out(std::size_t(Hq * w * dv));
        HostTensor logs{Shape{Hq, w}, std::vector<float>(std::size_t(Hq * w))};
        const View q = viewOf(in.queries), k = viewOf(in.keys), v = viewOf(in.values);
        tbb::parallel_for(std::int64_t(0), Hq * w, [&](std::int64_t r) {
            checkpoint.at(0, 1);
            const std::int64_t h = r / w, j = r % w, at = in.firstQuery + j, g = in.rule.kvOfQ[std::size_t(h)];
            struct Term { std::int64_t i; double l, num, den; };
            std::vector<Term> terms;
            double top = -INFINITY;
            auto add = [&](std::int64_t i, double num, double den) {
                if (!seen(in.rule, at, i))
                    return;
                terms.push_back({i, logit(in.rule, q.head(h) + j * d, k.head(g) + i * d, d), num, den});
                top = std::max(top, terms.back().l);
            };
            if (in.kept.empty())
                for (std::int64_t i = 0; i < in.cut; ++i)
                    add(i, 1, 1);
            else {
                const WeightedSet& set = in.kept[std::size_t(g)];
                const bool shared = set.denominator.empty();
                for (std::size_t i = 0; i < set.numerator.size(); ++i) {
                    const double den = !shared ? 0 : set.denominatorWeights.empty() ? 1 : set.denominatorWeights[i];
                    add(set.numerator[i], set.numeratorWeights.empty() ? 1 : set.numeratorWeights[i], den);
                }
                for (std::size_t i = 0; i < set.denominator.size(); ++i)
                    add(set.denominator[i], 0, set.denominatorWeights.empty() ? 1 : set.denominatorWeights[i]);
            }
            for (std::int64_t i = in.cut; i <= at; ++i)
                add(i, 1, 1);
            std::vector<double> num(static_cast<std::size_t>(dv));
            double den = 0;
            for (const Term& t : terms) {
                const double e = std::exp(t.l - top);
                den += t.den * e;
                if (t.num != 0)
                    for (std::int64_t c = 0; c < dv; ++c)
                        num[std::size_t(c)] += t.num * e * v.head(g)[t.i * dv + c];
            }
            for (std::int64_t c = 0; c < dv; ++c)
                out[std::size_t(r * dv + c)] = den > 0 ? float(num[std::size_t(c)] / den) : 0;
            logs.data[std::size_t(r)] = den > 0 ? float(std::log(den) + top) : -INFINITY;
        });
        return {wrap(Shape{Hq, w, dv}, std::move(out)), std::move(logs)};
    }
    PrincipalAxes principalAxes(const Tensor& k, std::int64_t head, int components, const Checkpoint&) const override {
        const std::int64_t n = k.size(1), d = k.size(2);
        const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> X(viewOf(k).head(head), n, d);
        RowMajor Y = X.cast<double>();
        const Eigen::RowVectorXd mean = Y.colwise().mean();
        Y.rowwise() -= mean;
        const Eigen::MatrixXd C = Y.transpose() * Y / double(std::max<std::int64_t>(1, n - 1));
        const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(C);
        const int count = std::min<int>(components, int(d));
        PrincipalAxes out{{Shape{d}, std::vector<float>(std::size_t(d))}, {Shape{count, d}, std::vector<float>(std::size_t(count * d))}, {}, C.trace()};
        for (std::int64_t c = 0; c < d; ++c)
            out.mean.data[std::size_t(c)] = float(mean[c]);
        for (int a = 0; a < count; ++a) {
            Eigen::VectorXd axis = solver.eigenvectors().col(d - 1 - a);
            Eigen::Index big;
            axis.cwiseAbs().maxCoeff(&big);
            if (axis[big] < 0)
                axis = -axis;
            for (std::int64_t c = 0; c < d; ++c)
                out.axes.data[std::size_t(a * d + c)] = float(axis[c]);
            out.explainedVariance.push_back(out.totalVariance > 0 ? std::max(0.0, solver.eigenvalues()[d - 1 - a]) / out.totalVariance : 0);
        }
        return out;
    }
    HostTensor project(const Tensor& k, std::int64_t head, const PrincipalAxes& axes) const override {
        const std::int64_t n = k.size(1), d = k.size(2), a = axes.axes.shape[0];
        HostTensor out{Shape{n, a}, std::vector<float>(std::size_t(n * a))};
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t c = 0; c < a; ++c) {
                double sum = 0;
                for (std::int64_t x = 0; x < d; ++x)
                    sum += (double(viewOf(k).head(head)[i * d + x]) - axes.mean.data[std::size_t(x)]) * axes.axes.data[std::size_t(c * d + x)];
                out.data[std::size_t(i * a + c)] = float(sum);
            }
        return out;
    }

private:
    template <class F> Tensor perRow(const Tensor& k, F f) const {
        const std::int64_t H = k.size(0), n = k.size(1), d = k.size(2);
        std::vector<float> out(std::size_t(H * n));
        const View v = viewOf(k);
        tbb::parallel_for(std::int64_t(0), H * n, [&](std::int64_t r) {
            out[std::size_t(r)] = float(f(r / n, v.head(r / n) + (r % n) * d, d));
        });
        return wrap(Shape{H, n}, std::move(out));
    }
    std::unique_ptr<tbb::global_control> m_control;
};

} // namespace

std::unique_ptr<Engine> makeCpuEngine(int threads, const std::string&) { return std::make_unique<CpuEngine>(threads); }

} // namespace kvscope
