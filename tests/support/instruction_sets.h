#pragma once

#include "core/base/error.h"
#include "core/engine/engine.h"

#include <string>
#include <vector>

namespace kvscope::testing {

/// Builds of the CPU engine's kernels that this processor can run.
inline std::vector<std::string> availableSets() {
    std::vector<std::string> sets;
    for (const char* set : {"v2", "v3", "v4"}) {
        try {
            makeCpuEngine(1, set);
            sets.push_back(set);
        } catch (const Error&) { // this processor lacks it
        }
    }
    return sets;
}

} // namespace kvscope::testing
