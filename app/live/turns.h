#pragma once

#include "core/base/checkpoint.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace kvscope::live {

/// Lets one thread at a time through, in the order in which they came. Unlike a mutex, it lets go who no longer wants
/// to wait, and whoever asks again at once stands behind those who wait already.
class Turns {
public:
    /// Has its turn as long as it lives.
    class Turn {
    public:
        /// Waits for it. Throws Cancelled when the checkpoint stops.
        Turn(Turns& turns, const Checkpoint& checkpoint);
        ~Turn() { m_turns.remove(m_ticket); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

    private:
        Turns& m_turns;
        std::uint64_t m_ticket;
    };

    std::size_t count() const; ///< who has the turn and who waits

private:
    void remove(std::uint64_t ticket);

    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::uint64_t> m_tickets; ///< who has the turn, then who waits; guarded by m_mutex, as the next one
    std::uint64_t m_next = 0;
};

} // namespace kvscope::live
