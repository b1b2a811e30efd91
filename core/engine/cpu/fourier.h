#pragma once

#include "core/engine/cpu/kernels.h"

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

/// Fourier transforms of kFourierLanes complex columns [length, kFourierLanes] at once, in double.
class Fourier {
public:
    /// The smallest length of the form 2^a or 3 2^a that is at least `least`, and at least 32.
    static std::int64_t lengthFor(std::int64_t least);

    Fourier(const Kernels& kernels, std::int64_t length);

    std::int64_t length() const { return m_length; }
    /// Numbers in the real (or imaginary) parts of the columns.
    std::int64_t size() const { return m_length * kFourierLanes; }
    /// x_k becomes the sum over j of x_j e^(-2 pi i j k / length). `scratch` holds 2 size() numbers.
    void transform(double* re, double* im, double* scratch) const;
    /// The inverse, times `length`: the transform with real and imaginary parts exchanged.
    void invert(double* re, double* im, double* scratch) const { transform(im, re, scratch); }

private:
    const Kernels& m_kernels;
    std::int64_t m_length;
    std::vector<int> m_radices;
    std::vector<double> m_cosines, m_sines; ///< of -2 pi k / length
};

} // namespace kvscope::cpu
