#pragma once

#include "core/run/run.h"

#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// A run of a specification on layer 0. `budget`: for one that names none.
inline RunRequest runRequest(std::shared_ptr<const CaptureReader> capture, const std::string& spec,
                             const std::string& cut = "default", const std::string& budget = "1") {
    RunRequest request;
    request.cut = Cut::resolve(cut, *capture);
    request.capture = std::move(capture);
    request.policy = PolicySpec::parse(spec);
    request.budget = request.policy.budget.value_or(Budget::parse(budget));
    return request;
}

} // namespace kvscope
