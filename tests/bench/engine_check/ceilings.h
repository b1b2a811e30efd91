#pragma once

namespace kvscope::check {

/// What this machine reaches with `threads` threads on the simplest loops: shares of these are honest shares.
struct Ceilings {
    double doubleFlops = 0; ///< fused multiply-adds in registers, two operations each, per second
    double floatFlops = 0;
    double copyBytes = 0; ///< bytes read plus bytes written per second, far beyond the caches
};

Ceilings measureCeilings(int threads);

} // namespace kvscope::check
