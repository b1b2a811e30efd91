#pragma once

#include "tests/support/emulation/emulated_device.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/same_bits.h"

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

} // namespace kvscope::gpu
