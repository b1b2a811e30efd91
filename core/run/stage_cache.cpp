// A cache that computes a missing value exactly once, however many threads ask. Values are held by shared pointers:
// evicting one does not affect its users.
#include "core/run/stage_cache.h"

#include "core/base/thread_wait.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <vector>

namespace kvscope {

namespace {
using Clock = std::chrono::steady_clock;
// How often a waiting thread checks whether it has been cancelled.
constexpr auto kLook = std::chrono::milliseconds(20);
// After this time the pool starts another task in place of the waiting one. A slider step waits less and must not start
// work that competes with its value; a wait for a live model's worker is longer and must not hold two threads.
constexpr auto kShort = std::chrono::milliseconds(100);
thread_local bool t_atOnce = false;
} // namespace

struct StageCache::State {
    struct Entry {
        Erased value; ///< null while it is being computed
        std::size_t bytes = 0;
        std::list<std::string>::iterator age; ///< valid only with a value
    };

    mutable std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, Entry> entries;
    std::list<std::string> byAge; ///< most recently used first
    std::size_t maxBytes = 0, bytes = 0;

    bool isMade(const std::string& key) const {
        const auto at = entries.find(key);
        return at == entries.end() || at->second.value;
    }

    /// Waits until the thread that makes the value has made it or given up. Throws Cancelled.
    void await(std::unique_lock<std::mutex>& lock, const std::string& key, const Checkpoint& checkpoint) {
        const auto begun = Clock::now();
        const auto look = [&](std::unique_lock<std::mutex>& held) {
            changed.wait_for(held, kLook);
            checkpoint.stopPoint();
        };
        while (!isMade(key) && Clock::now() - begun < kShort) look(lock);
        if (isMade(key)) return;
        lock.unlock();
        {
            const ThreadWait wait(ThreadWait::After::InTurn);
            std::unique_lock held(mutex); // unlocked before ~ThreadWait waits for tasks that need it
            while (!isMade(key)) look(held);
        }
        lock.lock();
    }

    /// Moves the entry's value to `dropped`, to be destroyed outside the lock. Returns the next entry.
    std::map<std::string, Entry>::iterator remove(std::map<std::string, Entry>::iterator entry,
                                                  std::vector<Erased>& dropped) {
        bytes -= entry->second.bytes;
        byAge.erase(entry->second.age);
        dropped.push_back(std::move(entry->second.value));
        return entries.erase(entry);
    }

    std::vector<Erased> insert(const std::string& key, Erased value, std::size_t size) {
        std::vector<Erased> dropped;
        Entry& entry = entries.at(key);
        entry.value = std::move(value);
        entry.bytes = size;
        byAge.push_front(key);
        entry.age = byAge.begin();
        bytes += size;
        while (bytes > maxBytes && !byAge.empty()) remove(entries.find(byAge.back()), dropped);
        return dropped;
    }
};

StageCache::StageCache(std::size_t maxBytes) : m_state(std::make_unique<State>()) { m_state->maxBytes = maxBytes; }

StageCache::~StageCache() = default;

StageCache::AtOnce::AtOnce() { t_atOnce = true; }

StageCache::AtOnce::~AtOnce() { t_atOnce = false; }

bool StageCache::AtOnce::isAsked() { return t_atOnce; }

StageCache::Erased StageCache::find(const std::string& key, const Checkpoint& checkpoint, bool* wasThere, Cost cost,
                                    const std::function<std::pair<Erased, std::size_t>()>& make) {
    State& state = *m_state;
    std::unique_lock lock(state.mutex);
    for (;;) {
        const auto at = state.entries.find(key);
        if (at == state.entries.end()) break;
        if (at->second.value) {
            state.byAge.splice(state.byAge.begin(), state.byAge, at->second.age);
            if (wasThere) *wasThere = true;
            return at->second.value;
        }
        if (t_atOnce) throw Missing{};
        state.await(lock, key, checkpoint);
    }
    if (t_atOnce && cost == Cost::Long) throw Missing{};
    if (wasThere) *wasThere = false;
    state.entries[key];
    lock.unlock();
    std::vector<Erased> dropped;
    try {
        auto [value, bytes] = make();
        lock.lock();
        dropped = state.insert(key, value, bytes);
        lock.unlock();
        state.changed.notify_all();
        return value;
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        state.entries.erase(key);
        lock.unlock();
        state.changed.notify_all();
        throw;
    }
}

bool StageCache::has(const std::string& key) const {
    const std::lock_guard lock(m_state->mutex);
    const auto at = m_state->entries.find(key);
    return at != m_state->entries.end() && at->second.value;
}

void StageCache::drop(const std::string& prefix) {
    std::vector<Erased> dropped;
    const std::lock_guard lock(m_state->mutex);
    auto at = m_state->entries.lower_bound(prefix);
    while (at != m_state->entries.end() && at->first.starts_with(prefix))
        at = at->second.value ? m_state->remove(at, dropped) : std::next(at);
}

std::size_t StageCache::maxBytes() const { return m_state->maxBytes; }

std::size_t StageCache::bytes() const {
    const std::lock_guard lock(m_state->mutex);
    return m_state->bytes;
}

} // namespace kvscope
