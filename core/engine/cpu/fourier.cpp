// Fourier transforms in passes of radix 4, and one of radix 2 or 3 where the length needs it (Stockham: every pass
// writes its output in the order in which the next one reads it, so nothing is permuted at the end).
#include "core/engine/cpu/fourier.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace kvscope::cpu {

std::int64_t Fourier::lengthFor(std::int64_t least) {
    for (std::int64_t power = 32;; power *= 2) {
        if (power >= least) return power;
        if (power / 2 * 3 >= least) return power / 2 * 3;
    }
}

Fourier::Fourier(const Kernels& kernels, std::int64_t length) : m_kernels(kernels), m_length(length) {
    std::int64_t rest = length;
    for (const int radix : {3, 4, 2})
        for (; rest % radix == 0; rest /= radix) m_radices.push_back(radix);
    assert(rest == 1);
    for (std::int64_t k = 0; k < length; ++k) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
        m_cosines.push_back(std::cos(angle));
        m_sines.push_back(std::sin(angle));
    }
}

void Fourier::transform(double* re, double* im, double* scratch) const {
    FourierPass pass{.fromRe = re,
                     .fromIm = im,
                     .toRe = scratch,
                     .toIm = scratch + size(),
                     .length = m_length,
                     .stride = 1,
                     .radix = 0,
                     .cosines = m_cosines.data(),
                     .sines = m_sines.data()};
    for (const int radix : m_radices) {
        pass.radix = radix;
        m_kernels.fourierPass(pass);
        pass.stride *= radix;
        const double *doneRe = pass.toRe, *doneIm = pass.toIm;
        pass.toRe = doneRe == scratch ? re : scratch;
        pass.toIm = doneRe == scratch ? im : scratch + size();
        pass.fromRe = doneRe;
        pass.fromIm = doneIm;
    }
    if (pass.fromRe == re) return;
    std::copy_n(pass.fromRe, size(), re);
    std::copy_n(pass.fromIm, size(), im);
}

} // namespace kvscope::cpu
