// Errors about numbers that are not finite.
#include "gpu/torch/refusals.h"

#include "core/base/error.h"

#include <string>

namespace kvscope::gpu {

void refuseKey(std::int64_t row) {
    throw Error({"key " + std::to_string(row) + " has no finite distance to another key", "keys",
                 "Look for NaN or infinity in the capture's keys"});
}

void refuseWalkRow(std::int64_t head, std::int64_t row) {
    throw Error({"the balancing walk of head " + std::to_string(head) + " meets a number that is not finite at row " +
                     std::to_string(row),
                 "keys and values", "look for NaN or infinity in the capture's keys and values"});
}

} // namespace kvscope::gpu
