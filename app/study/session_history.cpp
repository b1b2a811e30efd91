// Undo keeps whole sessions, which are small, instead of reversible commands.
#include "app/study/session_history.h"

#include <utility>

namespace kvscope {

namespace {
constexpr std::size_t kMaxSteps = 1000;
} // namespace

SessionHistory::SessionHistory(Session first) : m_steps{{first, {}}}, m_saved(std::move(first)) {}

void SessionHistory::change(Session next, std::string label, const std::string& mergeKey) {
    Session lookOnly = current();
    lookOnly.look = next.look;
    if (lookOnly == next) {
        m_steps[m_index].session = std::move(next);
        return;
    }
    m_steps.resize(m_index + 1);
    if (!mergeKey.empty() && mergeKey == m_mergeKey) {
        m_steps[m_index].session = std::move(next);
        return;
    }
    m_steps.push_back({std::move(next), std::move(label)});
    if (m_steps.size() > kMaxSteps) m_steps.erase(m_steps.begin());
    m_index = m_steps.size() - 1;
    m_mergeKey = mergeKey;
}

std::string SessionHistory::undoLabel() const { return canUndo() ? m_steps[m_index].label : std::string{}; }

std::string SessionHistory::redoLabel() const { return canRedo() ? m_steps[m_index + 1].label : std::string{}; }

void SessionHistory::undo() {
    if (canUndo()) moveTo(m_index - 1);
}

void SessionHistory::redo() {
    if (canRedo()) moveTo(m_index + 1);
}

void SessionHistory::moveTo(std::size_t index) {
    LookState look = current().look;
    m_index = index;
    m_steps[m_index].session.look = std::move(look);
    m_mergeKey.clear();
}

} // namespace kvscope
