// Linked in place of the kernels for a GPU: tells the engine that kernels may be given pointers into host memory.
#include "gpu/kernels/exact_sums.h"
#include "gpu/torch/torch_device.h"

namespace kvscope::gpu {

bool kernelsRunOnTheCpu() { return true; }

int singleToDoubleRatio() {
    return 1; // never asked: the emulated device is the CPU
}

} // namespace kvscope::gpu
