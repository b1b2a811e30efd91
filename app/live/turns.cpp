// A queue of tickets: the first has its turn. A waiting thread polls its checkpoint, because a stop request does not
// notify the condition variable.
#include "app/live/turns.h"

#include <chrono>

namespace kvscope::live {

namespace {

constexpr std::chrono::milliseconds kTick(20); // until a stop is noticed

} // namespace

Turns::Turn::Turn(Turns& turns, const Checkpoint& checkpoint) : m_turns(turns) {
    std::unique_lock lock(turns.m_mutex);
    m_ticket = turns.m_next++;
    turns.m_tickets.push_back(m_ticket);
    try {
        checkpoint.stopPoint();
        while (turns.m_tickets.front() != m_ticket) {
            turns.m_changed.wait_for(lock, kTick);
            checkpoint.stopPoint();
        }
    } catch (const Cancelled&) {
        lock.unlock();
        turns.remove(m_ticket); // the destructor does not run
        throw;
    }
}

std::size_t Turns::count() const {
    const std::lock_guard lock(m_mutex);
    return m_tickets.size();
}

void Turns::remove(std::uint64_t ticket) {
    {
        const std::lock_guard lock(m_mutex);
        std::erase(m_tickets, ticket);
    }
    m_changed.notify_all();
}

} // namespace kvscope::live
