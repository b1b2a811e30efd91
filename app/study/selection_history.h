#pragma once

#include "app/study/session.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Past selections in order, to go back and forth like pages of a browser. Not part of the session, and independent of
/// undo.
class SelectionHistory {
public:
    /// Appends the session's selection if it differs from the current one and drops those after it. Empty selections
    /// are skipped.
    void note(const Session& session);
    /// Sets the session's selection to the previous or next one; false at the ends.
    bool step(Session& session, int by);

private:
    using Place = std::pair<std::vector<TokenIndex>, std::string>;
    static constexpr std::size_t kMost = 100;
    std::vector<Place> m_places;
    std::size_t m_at = 0; ///< present place + 1; 0: none
};

} // namespace kvscope
