// Runs the threads of a block as fibers. A fiber runs until it reaches a barrier; when every thread of the block (or of
// the warp) has arrived, all go on. The order of turns is the test's choice, because a kernel's result must not depend
// on it.
#include "tests/support/emulation/emulated_device.h"
#include "tests/support/emulation/race_check.h"

#include <cstdlib>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#if defined(KVSCOPE_FIBERS_AS_STACKS) // address sanitizer
#include <sanitizer/common_interface_defs.h>
#endif

namespace kvscope::gpu::emulation {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr int kWarpSize = 32;

enum class State { Ready, AtBlockBarrier, AtWarpBarrier, Done };

/// A place to come back to. Saving a ucontext asks the kernel for the signal mask, which takes ten times as long as a
/// jump, so a ucontext only starts a fiber. The compiler's own jumps, because sanitizers do not watch them: they are
/// informed of every switch below. This source itself is compiled without sanitizers.
struct Context {
    ucontext_t start{};
    void* jump[5];
    bool started = false;
};

[[gnu::noinline, noreturn]] void resumeContext(Context& to) {
    if (to.started) __builtin_longjmp(to.jump, 1);
    setcontext(&to.start);
    std::abort(); // setcontext returns only when it fails
}

[[gnu::noinline]] void switchContext(Context& from, Context& to) {
    if (__builtin_setjmp(from.jump) == 0) {
        from.started = true;
        resumeContext(to);
    }
}

struct Fiber {
    Context context;
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    State state = State::Done;
    void* sanitizerStack = nullptr; ///< address sanitizer: what it keeps of this fiber's stack
};

struct Device {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<unsigned char> slots; ///< 16 bytes per thread
    Context scheduler;
    void* schedulerStack = nullptr;
    const void* schedulerBottom = nullptr;
    std::size_t schedulerSize = 0;
    Place block, size, grid;
    unsigned current = 0;
    std::unique_ptr<unsigned char[]> shared;
    Body body = nullptr;
    const void* argument = nullptr;
    Order order = Order::Forward;
    std::mt19937 random{0};
    std::int64_t launches = 0;
    bool vote = false, lastVote = false; ///< of the coming and of the last block barrier
    RaceCheck races;
    bool checksRaces = false, isRunning = false;
};

Device& device() {
    static Device instance;
    return instance;
}

void switchToScheduler(Fiber& from, [[maybe_unused]] bool forGood) {
    Device& d = device();
#if defined(KVSCOPE_FIBERS_AS_STACKS)
    __sanitizer_start_switch_fiber(forGood ? nullptr : &from.sanitizerStack, d.schedulerBottom, d.schedulerSize);
#endif
    switchContext(from.context, d.scheduler);
#if defined(KVSCOPE_FIBERS_AS_STACKS)
    __sanitizer_finish_switch_fiber(from.sanitizerStack, &d.schedulerBottom, &d.schedulerSize);
#endif
}

void waitIn(State state) {
    Fiber& fiber = *device().fibers[device().current];
    fiber.state = state;
    switchToScheduler(fiber, false);
}

void enter() {
    Device& d = device();
#if defined(KVSCOPE_FIBERS_AS_STACKS)
    __sanitizer_finish_switch_fiber(nullptr, &d.schedulerBottom, &d.schedulerSize);
#endif
    d.body(d.argument);
    Fiber& fiber = *d.fibers[d.current];
    fiber.state = State::Done;
    switchToScheduler(fiber, true);
}

void start(Fiber& fiber) {
    ucontext_t& context = fiber.context.start;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
    fiber.context.started = false;
    fiber.state = State::Ready;
}

void resume(unsigned thread) {
    Device& d = device();
    Fiber& fiber = *d.fibers[thread];
    d.current = thread;
#if defined(KVSCOPE_FIBERS_AS_STACKS)
    __sanitizer_start_switch_fiber(&d.schedulerStack, fiber.stack.get(), kStackBytes);
#endif
    switchContext(d.scheduler, fiber.context);
#if defined(KVSCOPE_FIBERS_AS_STACKS)
    __sanitizer_finish_switch_fiber(d.schedulerStack, nullptr, nullptr);
#endif
}

std::vector<unsigned> turns(unsigned count) {
    Device& d = device();
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0U);
    if (d.order == Order::Backward) std::reverse(order.begin(), order.end());
    if (d.order == Order::Shuffled || d.order == Order::Warps) std::shuffle(order.begin(), order.end(), d.random);
    return order;
}

/// Lets threads [begin, end) go on if all of them wait in `state`.
bool release(unsigned begin, unsigned end, State state) {
    Device& d = device();
    const auto first = d.fibers.begin() + begin, last = d.fibers.begin() + end;
    if (!std::all_of(first, last, [&](const auto& f) { return f->state == state; })) return false;
    std::for_each(first, last, [](const auto& f) { f->state = State::Ready; });
    if (state == State::AtWarpBarrier) d.races.warpBarrier(begin / kWarpSize);
    if (state == State::AtBlockBarrier) {
        d.races.blockBarrier();
        d.lastVote = std::exchange(d.vote, false);
    }
    return true;
}

/// Runs the ready ones of `threads` up to their next barrier. False: none was ready.
bool runReady(const std::vector<unsigned>& threads) {
    bool moved = false;
    for (const unsigned t : threads)
        if (device().fibers[t]->state == State::Ready) {
            resume(t);
            moved = true;
        }
    return moved;
}

/// A random warp that can run goes on to its next barrier.
bool runSomeWarp(unsigned threads) {
    Device& d = device();
    std::vector<unsigned> warps(threads / kWarpSize + (threads % kWarpSize != 0));
    std::iota(warps.begin(), warps.end(), 0U);
    std::shuffle(warps.begin(), warps.end(), d.random);
    for (const unsigned warp : warps) {
        const unsigned begin = warp * kWarpSize, end = std::min(threads, begin + kWarpSize);
        std::vector<unsigned> lanes(end - begin);
        std::iota(lanes.begin(), lanes.end(), begin);
        std::shuffle(lanes.begin(), lanes.end(), d.random);
        const bool moved = runReady(lanes);
        if (release(begin, end, State::AtWarpBarrier) || moved) return true;
    }
    return false;
}

void runBlock(unsigned threads) {
    Device& d = device();
    for (unsigned t = 0; t < threads; ++t) start(*d.fibers[t]);
    for (bool moving = true; moving;) {
        if (d.order == Order::Warps) {
            moving = runSomeWarp(threads);
        } else {
            moving = runReady(turns(threads));
            for (unsigned warp = 0; warp < threads; warp += kWarpSize)
                moving |= release(warp, std::min(threads, warp + kWarpSize), State::AtWarpBarrier);
        }
        moving |= release(0, threads, State::AtBlockBarrier);
    }
    const bool done = std::all_of(d.fibers.begin(), d.fibers.begin() + threads,
                                  [](const auto& f) { return f->state == State::Done; });
    if (!done) {
        d.isRunning = false;
        throw Deadlock{};
    }
}

} // namespace

void setOrder(Order order, unsigned seed) {
    device().order = order;
    device().random.seed(seed);
}

std::int64_t launches() { return device().launches; }

Place threadPlace() { return {device().current, 0, 0}; }
Place blockPlace() { return device().block; }
Place blockSize() { return device().size; }
Place gridSize() { return device().grid; }

bool blockBarrier(bool vote) {
    device().vote |= vote;
    waitIn(State::AtBlockBarrier);
    return device().lastVote;
}

void warpBarrier() { waitIn(State::AtWarpBarrier); }

bool checkRaces([[maybe_unused]] bool on) {
#if defined(KVSCOPE_CHECKS_RACES)
    device().checksRaces = on;
    return true;
#else
    return false;
#endif
}

void noteAccess(const void* address, std::size_t bytes, bool isWrite, bool isAtomic) {
    Device& d = device();
    if (!d.checksRaces || !d.isRunning) return;
    const auto isIn = [address](const void* begin, std::size_t size) {
        return begin <= address && address < static_cast<const unsigned char*>(begin) + size;
    };
    // A thread's own stack, and what lanes exchange between barriers of their own.
    if (isIn(d.fibers[d.current]->stack.get(), kStackBytes) || isIn(d.slots.data(), d.slots.size())) return;
    d.races.note(address, bytes, {d.current, isWrite, isAtomic});
}

unsigned exchangedForLarger(unsigned* to, unsigned value) { return std::exchange(*to, std::max(*to, value)); }

void* sharedBytes() { return device().shared.get(); }

unsigned char* laneSlot(int lane) {
    Device& d = device();
    return d.slots.data() + (d.current / kWarpSize * kWarpSize + static_cast<unsigned>(lane)) * 16;
}

void run(Body body, const void* argument, Grid grid, int threads, std::size_t sharedBytes) {
    if (sharedBytes > kMostSharedBytes) throw TooMuchSharedMemory();
    if (threads > 1024 || grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff) throw BadLaunch();
    Device& d = device();
    const auto count = static_cast<unsigned>(threads);
    while (d.fibers.size() < count) d.fibers.push_back(std::make_unique<Fiber>());
    d.slots.resize((count + kWarpSize) * 16);
    d.body = body;
    d.argument = argument;
    d.size = {count, 1, 1};
    d.grid = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)};
    d.launches += grid.x * grid.y * grid.z > 0;
    d.races.beginLaunch();
    for (const unsigned block : turns(static_cast<unsigned>(grid.x * grid.y * grid.z))) {
        d.block = {block % d.grid.x, block / d.grid.x % d.grid.y, block / d.grid.x / d.grid.y};
        d.shared.reset(new unsigned char[sharedBytes]);
        std::memset(d.shared.get(), 0xff, sharedBytes); // NaN and huge indices: nothing may rely on zeros
        d.races.beginBlock(d.shared.get(), sharedBytes, count);
        d.isRunning = true;
        runBlock(count);
        d.isRunning = false;
        if (const std::string race = d.races.takeRace(); !race.empty()) throw Race{race};
    }
}

} // namespace kvscope::gpu::emulation
