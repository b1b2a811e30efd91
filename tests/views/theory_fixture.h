#pragma once

#include "core/studies/theory_table.h"
#include "tests/views/view_fixture.h"

#include <cmath>
#include <string>
#include <vector>

namespace kvscope::theory_fixture {

constexpr int kHead = 1, kCut = 995; ///< of the sample

inline RunRequest requestOf(const std::string& spec) {
    RunRequest request = view_fixture::needleRequest(spec);
    request.recordSteps = true;
    return request;
}

/// The theorems' statements about a policy on the sample.
inline std::vector<TheoryRow> rowsOf(const std::string& spec, TheoryAsked asked = {}) {
    return theoryTable(view_fixture::runner(), requestOf(spec), asked, {}).rows;
}

inline bool near(double got, double expected, double tolerance = 1e-5) {
    return std::abs(got - expected) <= tolerance * std::abs(expected);
}

} // namespace kvscope::theory_fixture
