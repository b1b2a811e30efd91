// History of selections. Callers merge the many selections of a drag.
#include "app/study/selection_history.h"

namespace kvscope {

void SelectionHistory::note(const Session& session) {
    if (session.selected.empty() || (m_at > 0 && m_places[m_at - 1].first == session.selected)) return;
    m_places.resize(m_at);
    m_places.emplace_back(session.selected, session.selectionName);
    if (m_places.size() > kMost) m_places.erase(m_places.begin());
    m_at = m_places.size();
}

bool SelectionHistory::step(Session& session, int by) {
    // With nothing selected, the first step back restores the last selection.
    const bool cleared = session.selected.empty() && m_at > 0;
    const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(m_at) + (cleared && by < 0 ? 0 : by);
    if (to < 1 || to > std::ssize(m_places)) return false;
    m_at = static_cast<std::size_t>(to);
    session.selected = m_places[m_at - 1].first;
    session.selectionName = m_places[m_at - 1].second;
    return true;
}

} // namespace kvscope
