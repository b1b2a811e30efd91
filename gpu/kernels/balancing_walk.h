#pragma once

#include "gpu/kernels/walks_call.h"

// Self-balancing walks on the device, see walks_call.h.
namespace kvscope::gpu {

void balancingWalks(const WalksCall& call, Stream stream);
/// The launch of balancingWalks for KernelArithmetic::Fast.
void fastBalancingWalks(const WalksCall& call, Stream stream);

} // namespace kvscope::gpu
