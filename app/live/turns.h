#pragma once

#include "core/base/checkpoint.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace kvscope::live {

/// Lets one thread at a time through, in the order in which they came. Unlike with a mutex, a waiting thread can give
/// up, and a thread that asks again at once queues behind those that already wait.
class Turns {
public:
    /// Holds the turn as long as it lives.
    class Turn {
    public:
        /// Waits for the turn. Throws Cancelled when the checkpoint stops.
        Turn(Turns& turns, const Checkpoint& checkpoint);
        ~Turn() { m_turns.remove(m_ticket); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

    private:
        Turns& m_turns;
        std::uint64_t m_ticket;
    };

    std::size_t count() const; ///< threads that have the turn or wait for it

private:
    void remove(std::uint64_t ticket);

    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::uint64_t> m_tickets; ///< the one that has the turn, then those that wait; guarded by m_mutex
    std::uint64_t m_next = 0;            ///< guarded by m_mutex
};

} // namespace kvscope::live
