#pragma once

#include <string>

namespace kvscope {

/// What a policy wrote down while it decided, by the very code that decides, so that it can be shown step by step
/// (teaching mode) and checked. A policy with steps derives its own log; a view that knows it casts. Only written when
/// PolicyInput::recordSteps asks for it.
struct StepLog {
    virtual ~StepLog() = default;
    /// One JSON object: the whole log, named as the policy's explanation names things.
    virtual std::string json() const = 0;
};

} // namespace kvscope
