// Chooses the build of the kernels that the processor supports (cpuid, through compiler built-ins, which also check
// that the operating system saves the wide registers).
#include "core/engine/cpu/kernels.h"

#include "core/base/error.h"

namespace kvscope::cpu {

namespace v2 {
extern const Kernels kKernels;
}
namespace v3 {
extern const Kernels kKernels;
}
namespace v4 {
extern const Kernels kKernels;
}

namespace {

bool hasV3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

bool hasV4() {
    return hasV3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

} // namespace

const Kernels& kernelsFor(const std::string& instructionSet) {
    __builtin_cpu_init();
    if (instructionSet.empty()) return hasV4() ? v4::kKernels : hasV3() ? v3::kKernels : v2::kKernels;
    if (instructionSet == "v2") return v2::kKernels;
    if (instructionSet == "v3" && hasV3()) return v3::kKernels;
    if (instructionSet == "v4" && hasV4()) return v4::kKernels;
    throw Error({"this processor has no instruction set \"" + instructionSet + "\"", "instruction set",
                 "use v2, or v3 and v4 where the processor has them"});
}

} // namespace kvscope::cpu
