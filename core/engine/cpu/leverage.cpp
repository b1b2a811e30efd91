// Leverage of a row: its squared norm once the rows are whitened (expressed in an orthonormal basis of their column
// space). The whitening matrix comes from a small d x d problem (whitening.cpp).
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/double_rows.h"
#include "core/engine/cpu/float_rows.h"
#include "core/engine/cpu/symmetric_eigen.h"
#include "core/engine/cpu/turns.h"
#include "core/engine/cpu/whitening.h"

#include <algorithm>
#include <cassert>

namespace kvscope::cpu {

namespace {

struct Chunk {
    std::int64_t head, begin, end;
};

class ChunkLeverage {
public:
    ChunkLeverage(const Workers& workers, const Kernels& kernels, const LeverageRequest& request, bool fast)
        : m_workers(workers), m_kernels(kernels), m_request(request),
          m_inFloat(fast && !request.sketch.empty() && !usesFactor(request.route)),
          m_width(request.sketch.empty() ? request.rows.size(2) : request.sketch.shape[2]) {}

    std::int64_t width() const { return m_width; }

    /// Writes the chunk's part of scores [H, n], and the spectrum [width] unless that is null. Returns the rank.
    std::int64_t compute(const Chunk& chunk, std::vector<float>& scores, float* spectrum) const {
        const std::int64_t n = m_request.rows.size(1), d = m_request.rows.size(2), count = chunk.end - chunk.begin;
        const HeadRows from(m_request.rows, chunk.head, chunk.begin, chunk.end);
        const float* sketch = sketchOf(chunk.head);
        float* out = scores.data() + chunk.head * n + chunk.begin;
        if (m_inFloat) {
            const FloatRows rows(m_workers, m_kernels, from.data(), count, d, sketch, m_width, m_request.centred);
            const Whitening whitening = whiteningOf(rows.gram(), ruleFor(count, rows.removed()));
            if (rows.fits(whitening.directions)) {
                rows.scores(whitening.directions, out);
                writeSpectrum(whitening, rows.gram(), spectrum);
                return whitening.directions.cols();
            }
        }
        const bool gramAhead = !m_request.centred && !usesFactor(m_request.route);
        DoubleRows rows(m_workers, m_kernels, from.data(), count, d, sketch, m_width, gramAhead);
        if (m_request.centred) rows.centre();
        const Eigen::MatrixXd small = usesFactor(m_request.route) ? rows.factor() : rows.gram();
        const Whitening whitening = whiteningOf(small, ruleFor(count, rows.removed()));
        std::vector<double> lengths(static_cast<std::size_t>(count));
        rows.squaredLengths(whitening.directions, lengths.data());
        std::ranges::transform(lengths, out, [](double x) { return static_cast<float>(x); });
        writeSpectrum(whitening, small, spectrum);
        return whitening.directions.cols();
    }

private:
    WhiteningRule ruleFor(std::int64_t count, double removed) const {
        return {m_request.route, m_request.regulariser, m_request.strength, count, removed * kCentringNoise};
    }

    void writeSpectrum(const Whitening& whitening, const Eigen::MatrixXd& small, float* spectrum) const {
        if (!spectrum) return;
        std::ranges::transform(singularValuesOf(whitening, small, m_request.route), spectrum,
                               [](double x) { return static_cast<float>(x); });
    }

    const float* sketchOf(std::int64_t head) const {
        const HostTensor& sketch = m_request.sketch;
        if (sketch.empty()) return nullptr;
        const std::int64_t own = sketch.shape[0] == 1 ? 0 : head;
        return sketch.data.data() + own * sketch.shape[1] * sketch.shape[2];
    }

    const Workers& m_workers;
    const Kernels& m_kernels;
    const LeverageRequest& m_request;
    bool m_inFloat;
    std::int64_t m_width;
};

std::vector<Chunk> chunksOf(const LeverageRequest& request) {
    const std::int64_t heads = request.rows.size(0), n = request.rows.size(1);
    const std::int64_t step = request.chunk > 0 ? request.chunk : n;
    std::vector<Chunk> chunks;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t begin = 0; begin < n; begin += step) chunks.push_back({h, begin, std::min(n, begin + step)});
    return chunks;
}

} // namespace

Leverage CpuEngine::leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const {
    const std::int64_t heads = request.rows.size(0), n = request.rows.size(1);
    assert(n > 0);
    assert(request.sketch.empty() || request.sketch.shape[1] == request.rows.size(2));
    const auto turn = turnFor(request.rows, checkpoint);
    const ChunkLeverage work(m_workers, m_kernels, request, m_arithmetic == Arithmetic::Fast);
    std::vector<float> scores(static_cast<std::size_t>(heads * n));
    Leverage out{{}, {}, std::vector<std::int64_t>(static_cast<std::size_t>(heads))};
    const bool withSpectrum = request.chunk <= 0 && request.wantsSpectrum;
    if (withSpectrum) out.spectrum = HostTensor::filled({heads, work.width()});
    const std::vector<Chunk> chunks = chunksOf(request);
    std::vector<std::int64_t> ranks(chunks.size());
    Progress progress(checkpoint, static_cast<double>(chunks.size()));
    const auto compute = [&](std::int64_t i) {
        const Chunk& chunk = chunks[i];
        float* spectrum = withSpectrum ? out.spectrum.data.data() + chunk.head * work.width() : nullptr;
        ranks[i] = work.compute(chunk, scores, spectrum);
        progress.advance(1);
    };
    // Few long chunks run one after the other on all threads, so that only one head's rows are in memory.
    const auto count = static_cast<std::int64_t>(chunks.size());
    if (chunks.front().end - chunks.front().begin > 4 * kPartRows)
        for (std::int64_t i = 0; i < count; ++i) compute(i);
    else
        m_workers.each(count, compute);
    for (std::size_t i = 0; i < chunks.size(); ++i) out.rank[chunks[i].head] = ranks[i];
    out.scores = {{heads, n}, std::move(scores)};
    return out;
}

std::vector<double> CpuEngine::spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                  const Checkpoint& checkpoint) const {
    const std::int64_t heads = rows.size(0), n = rows.size(1), d = rows.size(2);
    assert(static_cast<std::int64_t>(kept.size()) == heads);
    std::vector<double> out(static_cast<std::size_t>(heads));
    Progress progress(checkpoint, static_cast<double>(heads));
    for (std::int64_t h = 0; h < heads; ++h, progress.advance(1)) {
        const HeadRows own(rows, h, checkpoint);
        const DoubleRows all(m_workers, m_kernels, own.data(), n, d, nullptr, d);
        const Whitening whitening = whiteningOf(all.factor(), {LeverageRoute::Svd, Regulariser::None, 0, n, 0});
        const Eigen::Index rank = whitening.directions.cols();
        const WeightedSet& set = kept[h];
        Eigen::MatrixXd difference = -Eigen::MatrixXd::Identity(rank, rank);
        for (std::size_t i = 0; i < set.numerator.size(); ++i) {
            const Eigen::Map<const Eigen::VectorXf> row(own.data() + set.numerator[i] * d, d);
            const Eigen::VectorXd image = whitening.directions.transpose() * row.cast<double>();
            const double weight = weightAt(set.numeratorWeights, i);
            difference.noalias() += weight * image * image.transpose();
        }
        if (rank > 0) out[h] = symmetricEigenvalues(difference).cwiseAbs().maxCoeff();
    }
    return out;
}

} // namespace kvscope::cpu
