// Convolves by Fourier transforms of real rows, two at a time as real and imaginary part, and of half the columns,
// which the other half mirrors. Work is cut by the grid's shape, and charges are added in the order of the points, so
// results depend neither on threads nor on the instruction set.
#include "core/engine/cpu/repulsion_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace kvscope::cpu {

namespace {

constexpr double kFinest = 1.0 / 64, kSpacing = 0.5;      // of nodes; w falls to half of its height at distance 1
constexpr std::int64_t kCheap = 512;                      // transform length up to which the nodes stay finest
constexpr std::int64_t kLongest = 2048;                   // transform length: over 500 units the nodes move apart
constexpr std::int64_t kMargin = 8;                       // the inverse spline filter decays by 0.27 per node
constexpr std::int64_t kRowsPerBlock = 2 * kFourierLanes; // a row is a real or an imaginary part

/// Four cubic B-splines on the nodes around u, from node `first` on, and their slopes.
struct Splines {
    explicit Splines(double u) : first(static_cast<std::int64_t>(u) - 1) {
        const double t = u - std::floor(u), s = 1 - t;
        weights = {s * s * s / 6, (t * t * (3 * t - 6) + 4) / 6, (s * s * (3 * s - 6) + 4) / 6, t * t * t / 6};
        slopes = {-s * s / 2, t * (3 * t - 4) / 2, -s * (3 * s - 4) / 2, t * t / 2};
    }

    std::int64_t first;
    std::array<double, 4> weights, slopes;
};

/// Transform of the splines' values at the nodes.
double splineTransform(std::int64_t k, std::int64_t length) {
    return (2 + std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length))) / 3;
}

} // namespace

void RepulsionGrid::place(const std::vector<double>& points) {
    frame(points);
    prepareTransfer();
    spread(points);
    convolve();
}

void RepulsionGrid::frame(const std::vector<double>& points) {
    double low[2] = {points[0], points[1]}, high[2] = {points[0], points[1]};
    for (std::size_t c = 0; c < points.size(); ++c) {
        low[c % 2] = std::min(low[c % 2], points[c]);
        high[c % 2] = std::max(high[c % 2], points[c]);
    }
    const double width = std::max(high[0] - low[0], high[1] - low[1]);
    const auto length = [&] { return 2 * (std::floor(width / m_spacing) + 6) + kMargin; };
    for (m_spacing = kFinest; length() > (m_spacing < kSpacing ? kCheap : kLongest); m_spacing *= 2) {
    }
    m_left = low[0] - 1.5 * m_spacing;
    m_top = low[1] - 1.5 * m_spacing;
    m_width = static_cast<std::int64_t>(width / m_spacing) + 6;
    m_rows = (m_width + kRowsPerBlock - 1) / kRowsPerBlock * kRowsPerBlock;
}

void RepulsionGrid::spread(const std::vector<double>& points) {
    m_nodes.assign(static_cast<std::size_t>(m_rows * m_width), 0.0);
    for (std::size_t i = 0; i < points.size(); i += 2) {
        const Splines across((points[i] - m_left) / m_spacing), down((points[i + 1] - m_top) / m_spacing);
        double* node = m_nodes.data() + down.first * m_width + across.first;
        for (int r = 0; r < 4; ++r, node += m_width)
            for (int c = 0; c < 4; ++c) node[c] += down.weights[r] * across.weights[c];
    }
}

void RepulsionGrid::read(double x, double y, double* sums) const {
    const Splines across((x - m_left) / m_spacing), down((y - m_top) / m_spacing);
    const double* node = m_nodes.data() + down.first * m_width + across.first;
    double potential = 0, alongX = 0, alongY = 0;
    for (int r = 0; r < 4; ++r, node += m_width) {
        double value = 0, slope = 0;
        for (int c = 0; c < 4; ++c) {
            value += across.weights[c] * node[c];
            slope += across.slopes[c] * node[c];
        }
        potential += down.weights[r] * value;
        alongX += down.weights[r] * slope;
        alongY += down.slopes[r] * value;
    }
    sums[0] = potential;
    sums[1] = -0.5 * alongX / m_spacing;
    sums[2] = -0.5 * alongY / m_spacing;
}

RepulsionGrid::Spectrum RepulsionGrid::spectrumOf(std::int64_t rows) const {
    const auto size = static_cast<std::size_t>(columnBlocks() * rows * kFourierLanes);
    return {rows, std::vector<double>(size), std::vector<double>(size)};
}

void RepulsionGrid::transformRows(const std::vector<double>& grid, std::int64_t width, Spectrum& spectrum) {
    const std::int64_t length = m_fourier->length(), size = m_fourier->size();
    m_workers.each(spectrum.rows / kRowsPerBlock, [&](std::int64_t block) {
        double *re = scratch(), *im = re + size;
        std::fill(re, re + 2 * size, 0.0);
        for (std::int64_t lane = 0; lane < kFourierLanes; ++lane) {
            const double* row = grid.data() + (block * kRowsPerBlock + 2 * lane) * width;
            for (std::int64_t c = 0; c < width; ++c) {
                re[c * kFourierLanes + lane] = row[c];
                im[c * kFourierLanes + lane] = row[c + width];
            }
        }
        m_fourier->transform(re, im, re + 2 * size);
        for (std::int64_t k = 0; k <= length / 2; ++k) {
            const std::int64_t own = k * kFourierLanes, mirror = (length - k) % length * kFourierLanes;
            for (std::int64_t lane = 0; lane < kFourierLanes; ++lane) {
                const double a = re[own + lane], b = im[own + lane], c = re[mirror + lane], d = im[mirror + lane];
                const std::int64_t even = spectrum.at(k, block * kRowsPerBlock + 2 * lane), odd = even + kFourierLanes;
                spectrum.re[even] = 0.5 * (a + c);
                spectrum.im[even] = 0.5 * (b - d);
                spectrum.re[odd] = 0.5 * (b + d);
                spectrum.im[odd] = 0.5 * (c - a);
            }
        }
    });
}

void RepulsionGrid::invertRows(const Spectrum& spectrum) {
    const std::int64_t length = m_fourier->length(), size = m_fourier->size();
    m_workers.each(spectrum.rows / kRowsPerBlock, [&](std::int64_t block) {
        double *re = scratch(), *im = re + size;
        for (std::int64_t k = 0; k <= length / 2; ++k) {
            const std::int64_t own = k * kFourierLanes, mirror = (length - k) % length * kFourierLanes;
            for (std::int64_t lane = 0; lane < kFourierLanes; ++lane) {
                const std::int64_t even = spectrum.at(k, block * kRowsPerBlock + 2 * lane), odd = even + kFourierLanes;
                const double a = spectrum.re[even], b = spectrum.im[even], c = spectrum.re[odd], d = spectrum.im[odd];
                re[mirror + lane] = a + d;
                im[mirror + lane] = c - b;
                re[own + lane] = a - d;
                im[own + lane] = b + c;
            }
        }
        m_fourier->invert(re, im, re + 2 * size);
        for (std::int64_t lane = 0; lane < kFourierLanes; ++lane) {
            double* row = m_nodes.data() + (block * kRowsPerBlock + 2 * lane) * m_width;
            for (std::int64_t c = 0; c < m_width; ++c) {
                row[c] = re[c * kFourierLanes + lane];
                row[c + m_width] = im[c * kFourierLanes + lane];
            }
        }
    });
}

void RepulsionGrid::prepareTransfer() {
    const std::int64_t length = Fourier::lengthFor(2 * m_width + kMargin);
    if (m_fourier && m_fourier->length() == length && m_transferSpacing == m_spacing) return;
    m_transferSpacing = m_spacing;
    m_fourier = std::make_unique<Fourier>(m_kernels, length);
    std::vector<double> grid;
    const auto squareOf = [&](std::int64_t node) {
        const double distance = m_spacing * static_cast<double>(std::min(node, length - node));
        return distance * distance;
    };
    for (std::int64_t row = 0; row < length; ++row)
        for (std::int64_t c = 0; c < length; ++c) grid.push_back(1 / (1 + (squareOf(row) + squareOf(c))));
    Spectrum spectrum = spectrumOf(length);
    transformRows(grid, length, spectrum);
    m_transfer.resize(spectrum.re.size());
    m_workers.each(columnBlocks(), [&](std::int64_t block) {
        const std::int64_t first = block * m_fourier->size();
        m_fourier->transform(spectrum.re.data() + first, spectrum.im.data() + first, scratch());
        for (std::int64_t k = 0; k < length; ++k)
            for (std::int64_t lane = 0; lane < kFourierLanes; ++lane) {
                const double splines = splineTransform(k, length) *
                                       splineTransform(block * kFourierLanes + lane, length) *
                                       static_cast<double>(length);
                m_transfer[first + k * kFourierLanes + lane] =
                    spectrum.re[first + k * kFourierLanes + lane] / (splines * splines);
            }
    });
}

void RepulsionGrid::convolve() {
    const std::int64_t size = m_fourier->size(), filled = m_rows * kFourierLanes;
    Spectrum spectrum = spectrumOf(m_rows);
    transformRows(m_nodes, m_width, spectrum);
    m_workers.each(columnBlocks(), [&](std::int64_t block) {
        double *re = scratch(), *im = re + size;
        double *ofRe = spectrum.re.data() + block * filled, *ofIm = spectrum.im.data() + block * filled;
        std::fill(re, re + 2 * size, 0.0);
        std::copy_n(ofRe, filled, re);
        std::copy_n(ofIm, filled, im);
        m_fourier->transform(re, im, re + 2 * size);
        const double* transfer = m_transfer.data() + block * size;
        for (std::int64_t i = 0; i < size; ++i) {
            re[i] *= transfer[i];
            im[i] *= transfer[i];
        }
        m_fourier->invert(re, im, re + 2 * size);
        std::copy_n(re, filled, ofRe);
        std::copy_n(im, filled, ofIm);
    });
    invertRows(spectrum);
}

} // namespace kvscope::cpu
