#pragma once

#include "core/engine/engine.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kvscope::check {

/// Work whose cost theory calls linear in the tokens: one KV head, 4 query heads, d = 128.
struct LinearWork {
    std::string name; ///< "snapkv/window-32"
    /// Uploads the inputs of `tokens` tokens and returns the work to be timed.
    std::function<std::function<void()>(const Engine&, std::int64_t tokens)> prepare;
};
const std::vector<LinearWork>& linearWorks();

/// log cost = exponent log tokens + constant, by least squares.
struct PowerFit {
    double exponent = 0;
    double largestResidual = 0; ///< largest |cost / fitted cost - 1|
};
/// At least two sizes, all positive.
PowerFit fitPower(std::span<const std::int64_t> tokens, std::span<const double> costs);

/// Prints processor time of all threads at every size, the fitted exponent and what is off it, one line a work whose
/// name matches `pattern`. Processor time, because other programs on the machine must not bend the line. Returns how
/// many exponents lie above `most`; throws Error when no name matches.
int fitLinearWorks(const Engine& engine, std::span<const std::int64_t> sizes, const std::string& pattern, double most);

} // namespace kvscope::check
