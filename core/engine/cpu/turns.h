#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/tensor.h"

#include <chrono>
#include <mutex>
#include <thread>

namespace kvscope::cpu {

/// Calls that read whole heads of tensors in files take turns, so that the heads and the scratch of one call at a time
/// are in memory: hold the result during such a call. For a tensor in memory it holds nothing. Throws Cancelled.
inline std::unique_lock<std::mutex> turnFor(const Tensor& tensor, const Checkpoint& checkpoint) {
    static std::mutex turns;
    std::unique_lock turn(turns, std::defer_lock);
    while (tensor.storage()->isOnDemand() && !turn.try_lock()) {
        checkpoint.stopPoint();
        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // a call takes tens of milliseconds or more
    }
    return turn;
}

} // namespace kvscope::cpu
