#pragma once

#include "views/view.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Where a shown step sequence stands, and the properties that the algorithm guarantees, checked on the shown run.
struct RunFacts {
    std::vector<std::pair<std::string, std::string>> now;
    struct Check {
        std::string sentence;
        bool holds = false;
    };
    std::vector<Check> checks;
};

/// For the trees and walks of BalanceKV (Algorithms 2 and 4) and the clusters of SubGen (Algorithm 1), at the input's
/// step cursor; empty for other views and before data are there.
RunFacts runFacts(const ViewInput& input);

} // namespace kvscope
