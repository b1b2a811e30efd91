#pragma once

#include "gpu/kernels/walks_call.h"

// Self-balancing walks on the device, see walks_call.h.
namespace kvscope::gpu {

void balancingWalks(const WalksCall& call, Stream stream);

} // namespace kvscope::gpu
