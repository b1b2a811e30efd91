#pragma once

#include "core/engine/cpu/fourier.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/workers.h"

#include <tbb/enumerable_thread_specific.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kvscope::cpu {

/// Repulsion of t-SNE by interpolation on a grid (Linderman et al., Nature Methods 16, 2019, with splines in place of
/// polynomials). The potential of all points, sum over j of w(y - y_j) with w = 1 / (1 + |y|^2), is a convolution, and
/// its gradient is -2 sum of w^2 (y - y_j). The points put charges on the grid's nodes by cubic B-splines, Fourier
/// transforms convolve these with w, and the points read potential and gradient from the nodes by the same splines.
class RepulsionGrid {
public:
    RepulsionGrid(const Kernels& kernels, const Workers& workers) : m_kernels(kernels), m_workers(workers) {}

    /// Computes the potential of the points [n, 2].
    void place(const std::vector<double>& points);
    /// For one of the points: the sums over all points, itself included, of w, w^2 (x - x_j) and w^2 (y - y_j).
    void read(double x, double y, double* sums) const;

private:
    /// [column blocks, rows, kFourierLanes] between the transforms of rows and of columns.
    struct Spectrum {
        std::int64_t rows = 0;
        std::vector<double> re, im;

        std::int64_t at(std::int64_t column, std::int64_t row) const {
            return (column / kFourierLanes * rows + row) * kFourierLanes + column % kFourierLanes;
        }
    };

    void frame(const std::vector<double>& points);
    void prepareTransfer();
    void spread(const std::vector<double>& points);
    void convolve();
    Spectrum spectrumOf(std::int64_t rows) const;
    void transformRows(const std::vector<double>& grid, std::int64_t width, Spectrum& spectrum);
    void invertRows(const Spectrum& spectrum);
    std::int64_t columnBlocks() const { return m_fourier->length() / 2 / kFourierLanes + 1; }
    double* scratch() { return m_scratch.local().atLeast(4 * m_fourier->size()); }

    const Kernels& m_kernels;
    const Workers& m_workers;
    double m_left = 0, m_top = 0, m_spacing = 0;
    std::int64_t m_width = 0, m_rows = 0; ///< nodes of the grid; rows: padded to whole blocks
    std::vector<double> m_nodes;          ///< [rows, width] charges, then the potential
    std::unique_ptr<Fourier> m_fourier;   ///< long enough that the convolution does not wrap around
    double m_transferSpacing = 0;
    std::vector<double> m_transfer; ///< [column blocks, length, kFourierLanes]: the transform of w and of the splines
    tbb::enumerable_thread_specific<AlignedMemory<double>> m_scratch;
};

} // namespace kvscope::cpu
