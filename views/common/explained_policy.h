#pragma once

#include "views/view.h"

#include <string>

namespace kvscope {

/// A view whose steps need not be those of the active pane's policy: if that has none, another pane or an example
/// stands in.
class ExplainedPolicyView {
public:
    virtual ~ExplainedPolicyView() = default;
    /// Id of the policy whose steps are shown; empty: none.
    virtual std::string explainedPolicy(const ViewInput& input) const = 0;
};

} // namespace kvscope
