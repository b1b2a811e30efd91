#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/device_data.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

// A CUDA device made of one CPU thread: the threads of a block are fibers that run one after the other from barrier to
// barrier. Kernels' sources are compiled against this header in place of CUDA's, unchanged.
//
// What it finds: wrong indices (buffers are plain heap memory, so the address sanitizer sees every access beyond them),
// barriers that not all threads reach (reported as Deadlock), missing barriers (blocks and threads run in a chosen
// order, and every order must give the same bits; and race_check.h). What it cannot find: anything that depends on the
// hardware, speed above all.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

namespace kvscope::gpu {

struct Grid {
    std::int64_t x = 1, y = 1, z = 1; ///< blocks
};

namespace emulation {

struct Place {
    unsigned x = 0, y = 0, z = 0;
};

/// In which order blocks, and threads between two barriers, take their turn. Warps: a random warp runs up to its next
/// barrier, then another one, so that warps are any number of their own barriers apart.
enum class Order { Forward, Backward, Shuffled, Warps };
void setOrder(Order order, unsigned seed = 0);

/// Launches since the program started; tests see that a call enqueues what it should.
std::int64_t launches();

/// What a block may ask for on every GPU from compute capability 8.0 on (those of 8.6, 8.9 and 12.0 have the least).
inline constexpr std::size_t kMostSharedBytes = std::size_t{99} * 1024;
struct TooMuchSharedMemory {}; ///< thrown by launch

struct Deadlock {}; ///< thrown by launch: some threads wait where the others do not come

struct BadLaunch {}; ///< thrown by launch: more threads or blocks than every GPU takes

/// Thrown by launch while races are checked.
struct Race {
    std::string text;
};
/// From now on. False: this build cannot.
bool checkRaces(bool on);
void noteAccess(const void* address, std::size_t bytes, bool isWrite, bool isAtomic = false);

Place threadPlace();
Place blockPlace();
Place blockSize();
Place gridSize();
/// Whether any thread of the block arrived with true.
bool blockBarrier(bool vote = false);
void warpBarrier();
void* sharedBytes();
/// 16 bytes per lane of the calling thread's warp.
unsigned char* laneSlot(int lane);

using Body = void (*)(const void* argument);
void run(Body body, const void* argument, Grid grid, int threads, std::size_t sharedBytes);

/// The old number; the larger of both is stored.
unsigned exchangedForLarger(unsigned* to, unsigned value);

template <class T> T exchanged(T value, int fromLane) {
    static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
    const int lane = static_cast<int>(threadPlace().x % 32);
    std::memcpy(laneSlot(lane), &value, sizeof value);
    warpBarrier();
    T result;
    std::memcpy(&result, laneSlot(fromLane & 31), sizeof result);
    warpBarrier();
    return result;
}

} // namespace emulation

template <class Argument>
void launch(const char*, void (*kernel)(Argument), Grid grid, int threads, std::size_t sharedBytes, Stream,
            const Argument& argument) {
    struct Call {
        void (*kernel)(Argument);
        Argument argument;
    };
    const Call call{kernel, argument};
    emulation::run(
        [](const void* data) { static_cast<const Call*>(data)->kernel(static_cast<const Call*>(data)->argument); },
        &call, grid, threads, sharedBytes);
}

template <class Argument>
void launchOverlapping(const char* name, void (*kernel)(Argument), Grid grid, int threads, std::size_t sharedBytes,
                       Stream stream, const Argument& argument) {
    launch(name, kernel, grid, threads, sharedBytes, stream, argument);
}

inline void awaitPreviousLaunch() {}

template <class T> T& sharedAs() { return *static_cast<T*>(emulation::sharedBytes()); }

} // namespace kvscope::gpu

#include "tests/support/emulation/emulated_intrinsics.h"
