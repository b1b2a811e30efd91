#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

namespace kvscope {

/// Thrown by Checkpoint when the work is no longer wanted. Not an Error, because nothing went wrong.
struct Cancelled {};

/// Progress report and stop point in one call. Copies share the report and the stop token.
/// Reports are made one at a time and never fall, so one Checkpoint serves one piece of work.
/// Give parts of it to the steps of the work.
class Checkpoint {
public:
    using Report = std::function<void(double done, double total)>;

    /// Never reports, never stops.
    Checkpoint() = default;
    explicit Checkpoint(std::stop_token stop, Report report = {})
        : m_stop(std::move(stop)), m_report(report ? rising(std::move(report)) : nullptr) {}

    /// Call at intervals of a few milliseconds of work. Safe from any thread.
    /// Throws Cancelled once a stop is requested.
    void at(double done, double total) const {
        if (m_stop.stop_requested()) throw Cancelled{};
        if (m_report) m_report(done, total);
    }

    /// A stop point without a report, for example while waiting for other work.
    void stopPoint() const {
        if (m_stop.stop_requested()) throw Cancelled{};
    }

    /// The same stop point without reports: for steps inside a reported one.
    Checkpoint silent() const { return Checkpoint(m_stop); }

    /// The same stop point for a part of the work: its reports are mapped to [from, to] of the whole, 0..1.
    Checkpoint part(double from, double to) const {
        if (!m_report) return Checkpoint(m_stop);
        return Checkpoint(m_stop, [report = m_report, from, to](double done, double total) {
            report(from + (to - from) * (total > 0 ? done / total : 1), 1);
        });
    }

    /// The same for one of `count` equal steps.
    Checkpoint step(std::size_t index, std::size_t count) const {
        const auto whole = static_cast<double>(count);
        return part(static_cast<double>(index) / whole, static_cast<double>(index + 1) / whole);
    }

private:
    /// Every step counts from 0, and workers report out of order; the reported value only grows.
    static Report rising(Report report) {
        struct State {
            std::mutex mutex;
            double highest = 0;
        };
        return [state = std::make_shared<State>(), report = std::move(report)](double done, double total) {
            const double fraction = total > 0 ? done / total : 1;
            const std::lock_guard lock(state->mutex);
            if (fraction < state->highest) return;
            state->highest = fraction;
            report(done, total);
        };
    }

    std::stop_token m_stop;
    Report m_report;
};

} // namespace kvscope
