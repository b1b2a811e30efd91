#pragma once

#include "tests/bench/engine_check/engine_case.h"

#include <string>
#include <vector>

namespace kvscope::check {

/// The engines' cases with an oracle whose primitive runs by a CUDA kernel; made once.
const std::vector<EngineCase>& kernelCases();

struct CaseResult {
    std::string name;
    double error = 0, allowed = 0;

    bool good() const { return error <= allowed; }
};

/// Runs the case once and compares it with its oracle.
CaseResult resultOf(const EngineCase& c, const Engine& engine);

} // namespace kvscope::check
