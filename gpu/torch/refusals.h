#pragma once

#include <cstdint>

namespace kvscope::gpu {

// Errors about numbers that are not finite, with the CPU engine's sentences. Each function throws Error.
[[noreturn]] void refuseKey(std::int64_t row);                        ///< no finite distance to another key
[[noreturn]] void refuseWalkRow(std::int64_t head, std::int64_t row); ///< a walk's product is not finite

} // namespace kvscope::gpu
