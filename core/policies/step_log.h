#pragma once

#include <string>

namespace kvscope {

/// A record of a policy's decisions, written by the code that decides, for step-by-step views (teaching mode) and
/// tests. A policy with steps derives its own log; a view that knows the type casts. Written only when
/// PolicyInput::recordSteps is set.
struct StepLog {
    virtual ~StepLog() = default;
    /// The whole log as one JSON object, with the names that the policy's explanation uses.
    virtual std::string json() const = 0;
};

} // namespace kvscope
