#pragma once

#include "app/study/session.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Past selections in order, to go back and forth like pages of a browser. Not part of the session, and independent of
/// undo. Callers merge the many selections of a drag.
class SelectionHistory {
public:
    /// Appends the session's selection if it differs from the current one and drops those after it. Empty selections
    /// are skipped.
    void note(const Session& session) {
        if (session.selected.empty() || (m_at > 0 && m_places[m_at - 1].first == session.selected)) return;
        m_places.resize(m_at);
        m_places.emplace_back(session.selected, session.selectionName);
        if (m_places.size() > kMost) m_places.erase(m_places.begin());
        m_at = m_places.size();
    }
    /// Sets the session's selection to the previous or next one; false at the ends.
    bool step(Session& session, int by) {
        // With nothing selected, the first step back restores the last selection.
        const bool cleared = session.selected.empty() && m_at > 0;
        const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(m_at) + (cleared && by < 0 ? 0 : by);
        if (to < 1 || to > std::ssize(m_places)) return false;
        m_at = static_cast<std::size_t>(to);
        session.selected = m_places[m_at - 1].first;
        session.selectionName = m_places[m_at - 1].second;
        return true;
    }

private:
    using Place = std::pair<std::vector<TokenIndex>, std::string>;
    static constexpr std::size_t kMost = 100;
    std::vector<Place> m_places;
    std::size_t m_at = 0; ///< present place + 1; 0: none
};

} // namespace kvscope
