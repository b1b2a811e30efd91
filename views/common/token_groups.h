#pragma once

#include "views/view.h"

#include <vector>

namespace kvscope {

/// Interface of views whose marks (picks Cell or Node) stand for several tokens, such as nodes of a tree: a click
/// selects them all.
class TokenGroups {
public:
    virtual ~TokenGroups() = default;
    /// Ascending; empty: no tokens at the point.
    virtual std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                             Point at) const = 0;
};

} // namespace kvscope
