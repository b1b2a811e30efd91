// Jobs of a slot replace each other. A job compares its generation with the slot's newest twice, on the worker and on
// the owner's thread, because the newest may change in between.
#include "core/jobs/scheduler.h"

#include "core/base/thread_wait.h"

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kvscope {

namespace {

void lowerPriority() {
    // On Linux every thread has its own nice value, which the threads that it starts inherit.
    constexpr int niceness = 10;
    const auto self = static_cast<id_t>(syscall(SYS_gettid));
    if (getpriority(PRIO_PROCESS, self) < niceness) static_cast<void>(setpriority(PRIO_PROCESS, self, niceness));
}

} // namespace

struct Scheduler::State : std::enable_shared_from_this<State> {
    struct Waiting {
        Job job;
        Generation generation = 0;
    };
    struct Slot {
        Generation generation = 0; ///< of the newest submit or cancel
        bool busy = false;         ///< the newest is a submit and has not finished
        bool running = false;      ///< a worker is inside a job, possibly an outdated one
        std::stop_source stop;     ///< of that job
        std::optional<Waiting> waiting;
    };
    /// The latest progress of a job, and whether a delivery that will read it is pending.
    struct Progress {
        std::atomic<double> fraction{0};
        std::atomic<bool> underWay{false};
    };

    Executor executor;
    Deliver deliver;
    /// Held while `deliver` is called, so that it is never called after the destructor. Recursive, because a deliver
    /// that runs its task at once may re-enter on the same thread.
    std::recursive_mutex gate;
    bool closed = false; ///< guarded by gate
    mutable std::mutex mutex;
    std::map<std::string, Slot> slots; ///< guarded by mutex

    bool isNewest(const std::string& name, Generation generation) const {
        const std::lock_guard lock(mutex);
        const auto slot = slots.find(name);
        return slot != slots.end() && slot->second.generation == generation;
    }

    void post(const std::string& name, Generation generation, Task task) {
        const std::lock_guard lock(gate);
        if (closed || !isNewest(name, generation)) return;
        deliver([weak = weak_from_this(), name, generation, task = std::move(task)] {
            const auto state = weak.lock();
            if (state && state->isNewest(name, generation)) task();
        });
    }

    void launch(const std::string& name) {
        executor([weak = weak_from_this(), name] {
            if (const auto state = weak.lock()) state->runWaiting(name);
        });
    }

    /// Runs the waiting job unless it was cancelled or another worker took it.
    void runWaiting(const std::string& name) {
        std::optional<Waiting> waiting;
        std::stop_source stop;
        {
            const std::lock_guard lock(mutex);
            Slot& slot = slots[name];
            if (slot.running || !slot.waiting) return;
            waiting = std::exchange(slot.waiting, std::nullopt);
            slot.running = true;
            slot.stop = stop;
        }
        runJob(name, *waiting, stop);
        bool more = false;
        {
            const std::lock_guard lock(mutex);
            Slot& slot = slots[name];
            slot.running = false;
            more = slot.waiting.has_value();
        }
        if (more) launch(name);
    }

    void runJob(const std::string& name, const Waiting& waiting, const std::stop_source& stop) {
        const Job& job = waiting.job;
        const Generation generation = waiting.generation;
        try {
            job.work(Checkpoint(stop.get_token(), reportOf(name, waiting)),
                     [&](Task task) { post(name, generation, std::move(task)); });
        } catch (const Cancelled&) {
            // Cancelled by a newer job, or by the work itself.
        } catch (...) {
            if (job.failed)
                post(name, generation, [failed = job.failed, error = std::current_exception()] { failed(error); });
        }
        post(name, generation, [this, name, generation, finished = job.finished] {
            finish(name, generation);
            if (finished) finished();
        });
    }

    Checkpoint::Report reportOf(const std::string& name, const Waiting& waiting) {
        if (!waiting.job.progress) return {};
        auto newest = std::make_shared<Progress>();
        return [this, name, generation = waiting.generation, progress = waiting.job.progress, newest](double done,
                                                                                                      double total) {
            newest->fraction = total > 0 ? done / total : 0;
            if (newest->underWay.exchange(true)) return;
            post(name, generation, [progress, newest] {
                newest->underWay = false;
                progress(newest->fraction);
            });
        };
    }

    void finish(const std::string& name, Generation generation) {
        const std::lock_guard lock(mutex);
        Slot& slot = slots[name];
        if (slot.generation == generation) slot.busy = false;
    }

    /// Outdates the slot's jobs; returns the waiting one, so that it is destroyed outside the lock.
    std::optional<Waiting> outdate(Slot& slot) {
        ++slot.generation;
        slot.busy = false;
        if (slot.running) slot.stop.request_stop();
        return std::exchange(slot.waiting, std::nullopt);
    }
};

Scheduler::Scheduler(Executor executor, Deliver deliver) : m_state(std::make_shared<State>()) {
    m_state->executor = std::move(executor);
    m_state->deliver = std::move(deliver);
}

Scheduler::~Scheduler() {
    cancelAll();
    const std::lock_guard lock(m_state->gate);
    m_state->closed = true;
}

Scheduler::Generation Scheduler::submit(const std::string& name, Job job) {
    std::optional<State::Waiting> replaced;
    Generation generation = 0;
    bool running = false;
    {
        const std::lock_guard lock(m_state->mutex);
        State::Slot& slot = m_state->slots[name];
        replaced = m_state->outdate(slot);
        generation = slot.generation;
        slot.waiting = State::Waiting{std::move(job), generation};
        slot.busy = true;
        running = slot.running;
    }
    // otherwise the running job starts the waiting one when it ends
    if (!running) m_state->launch(name);
    return generation;
}

void Scheduler::cancel(const std::string& name) {
    std::optional<State::Waiting> dropped;
    const std::lock_guard lock(m_state->mutex);
    const auto slot = m_state->slots.find(name);
    if (slot != m_state->slots.end()) dropped = m_state->outdate(slot->second);
}

void Scheduler::cancelAll() {
    std::map<std::string, std::optional<State::Waiting>> dropped;
    const std::lock_guard lock(m_state->mutex);
    for (auto& [name, slot] : m_state->slots) dropped[name] = m_state->outdate(slot);
}

bool Scheduler::busy(const std::string& name) const {
    const std::lock_guard lock(m_state->mutex);
    const auto slot = m_state->slots.find(name);
    return slot != m_state->slots.end() && slot->second.busy;
}

/// A task that waits (ThreadWait) does not count as computing. There are `most` threads and one more per waiting task,
/// and a thread takes a new task only while fewer than `most` tasks compute or wait for their turn to go on.
struct WorkerPool::State {
    std::mutex mutex;
    std::condition_variable wake; ///< wakes a thread without a task
    std::condition_variable turn; ///< wakes a task that has waited and goes on in its turn
    std::deque<Scheduler::Task> tasks;
    bool ending = false;
    std::vector<std::thread> threads;
    std::size_t most = 0, computing = 0, waiting = 0; ///< numbers of tasks; `waiting` includes `inTurn`
    std::size_t inTurn = 0;                           ///< tasks that wait for their turn to go on

    void work() {
        lowerPriority();
        ThreadWait::setPool({[this] { beginWait(); }, [this](ThreadWait::After after) { endWait(after); }});
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [&] { return ending || (!tasks.empty() && computing + inTurn < most); });
            if (ending) return;
            Scheduler::Task task = std::move(tasks.front());
            tasks.pop_front();
            ++computing;
            lock.unlock();
            task();
            task = nullptr; // destroys the task's captures before the thread sleeps
            lock.lock();
            --computing;
            turn.notify_one();
        }
    }
    void beginWait() {
        const std::lock_guard lock(mutex);
        --computing;
        ++waiting;
        if (!ending && threads.size() < most + waiting) try {
                threads.emplace_back([this] { work(); });
            } catch (const std::system_error&) { // no thread is left: nothing runs in this task's place
            }
        turn.notify_one();
        wake.notify_one();
    }
    void endWait(ThreadWait::After after) {
        std::unique_lock lock(mutex);
        ++inTurn;
        if (after == ThreadWait::After::InTurn) turn.wait(lock, [&] { return computing < most; });
        --inTurn;
        --waiting;
        ++computing;
    }
};

WorkerPool::WorkerPool(int threads) : m_state(std::make_unique<State>()) {
    assert(threads > 0);
    m_state->most = static_cast<std::size_t>(threads);
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
    for (std::thread& thread : m_state->threads) thread.join(); // none is added while it ends
}

void WorkerPool::run(Scheduler::Task task) {
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->tasks.push_back(std::move(task));
    }
    m_state->wake.notify_one();
}

} // namespace kvscope
