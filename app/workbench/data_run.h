#pragma once

#include "app/workbench/clock.h"
#include "views/view_data.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace kvscope {

/// What the workbench knows of the data of one view.
struct DataRun {
    int shown = 0;                          ///< by so many widgets
    std::int64_t width = 600, height = 400; ///< device pixels
    std::string wantedKey, identity;
    DataState state;
    Clock::TimePoint asked; ///< when the computation under way was, or the first of those that it took the place of
    Clock::Duration took{}; ///< the last one that came to its end, or at least those taken back since
    bool waits = false;     ///< wanted, and not asked for before the hand rests

    /// Whether computing at every step of a movement would hold the movement up.
    bool isSlow() const { return took > std::chrono::milliseconds(25); }
};

} // namespace kvscope
