// One program per target (KVSCOPE_FUZZ_TARGET), made and mutated by libFuzzer; see resources/dev/fuzz.sh.
#include "tests/fuzz/targets.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    kvscope::fuzz::readAs(KVSCOPE_FUZZ_TARGET, {reinterpret_cast<const char*>(data), size});
    return 0;
}
