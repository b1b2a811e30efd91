#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope::fuzz {

/// What reads bytes that others wrote: captures, sessions, lists, policy specs, scores, tensors, described models,
/// frames of a worker.
std::vector<std::string> targetNames();
/// Reads the bytes as the program would. An Error is as good as success; anything else goes through.
void readAs(std::string_view target, std::string_view bytes);

} // namespace kvscope::fuzz
