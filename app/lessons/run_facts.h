#pragma once

#include "views/view.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Where a shown step sequence stands, and what must hold of it by the algorithm, checked on the run that is shown.
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
