// Threads that take tasks from one queue, at a lower priority than the GUI thread.
#include "core/jobs/scheduler.h"

#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kvscope {

namespace {

void lowerPriority() {
#ifdef __linux__
    // On Linux the nice value is per thread and inherited by the threads it starts.
    constexpr int niceness = 10;
    const auto self = static_cast<id_t>(syscall(SYS_gettid));
    if (getpriority(PRIO_PROCESS, self) < niceness) static_cast<void>(setpriority(PRIO_PROCESS, self, niceness));
#endif
}

} // namespace

struct WorkerPool::State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Scheduler::Task> tasks;
    bool ending = false;
    std::vector<std::thread> threads;

    void work() {
        lowerPriority();
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [&] { return ending || !tasks.empty(); });
            if (ending) return;
            Scheduler::Task task = std::move(tasks.front());
            tasks.pop_front();
            lock.unlock();
            task();
            task = nullptr; // destroys the task's captures before the thread sleeps
            lock.lock();
        }
    }
};

WorkerPool::WorkerPool(int threads) : m_state(std::make_unique<State>()) {
    assert(threads > 0);
    for (int i = 0; i < threads; ++i) m_state->threads.emplace_back([state = m_state.get()] { state->work(); });
}

WorkerPool::~WorkerPool() {
    std::deque<Scheduler::Task> dropped;
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->ending = true;
        dropped.swap(m_state->tasks);
    }
    m_state->wake.notify_all();
    for (std::thread& thread : m_state->threads) thread.join();
}

void WorkerPool::run(Scheduler::Task task) {
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->tasks.push_back(std::move(task));
    }
    m_state->wake.notify_one();
}

} // namespace kvscope
