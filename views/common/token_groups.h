#pragma once

#include "views/view.h"

#include <vector>

namespace kvscope {

/// A view whose marks (picks Cell or Node) stand for several tokens, as nodes of a tree do: a click selects them all.
class TokenGroups {
public:
    virtual ~TokenGroups() = default;
    /// Ascending; empty: the point stands for none.
    virtual std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                             Point at) const = 0;
};

} // namespace kvscope
