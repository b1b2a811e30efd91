#pragma once

#include "app/study/session.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// The selections that were made, in order, to go back and forth in like pages of a browser. Not part of the session:
/// undo has its own memory.
class SelectionHistory {
public:
    /// Notes the session's selection where it differs from the present one; what lay ahead is forgotten. Empty
    /// selections are no places to return to.
    void note(const Session& session);
    /// Makes the session's selection the one before or after; false at the ends.
    bool step(Session& session, int by);

private:
    using Place = std::pair<std::vector<TokenIndex>, std::string>;
    static constexpr std::size_t kMost = 100;
    std::vector<Place> m_places;
    std::size_t m_at = 0; ///< present place + 1; 0: none
};

} // namespace kvscope
