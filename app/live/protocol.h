#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace kvscope::live {

using Json = nlohmann::json; ///< of a message

/// Takes a notification that belongs to a call: tensors/data, answer/token.
using Notified = std::function<void(const std::string& method, const Json& params, std::vector<std::string>& blobs)>;

} // namespace kvscope::live
