#pragma once

#include "tests/support/emulation/emulated_device.h"
#include "tests/support/kernel_rows.h"

namespace kvscope::gpu {

/// Calls work once for every order in which the emulated device lets its threads run.
template <class Work> void inEveryOrder(const Work& work) {
    using emulation::Order;
    for (const Order order : {Order::Forward, Order::Backward, Order::Warps}) {
        emulation::setOrder(order, 5);
        work();
    }
    emulation::setOrder(Order::Forward);
}

inline bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline bool sameBits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

} // namespace kvscope::gpu
