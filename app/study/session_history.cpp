// Undo keeps whole sessions, which are small, instead of reversible commands.
#include "app/study/session_history.h"

#include <map>
#include <set>

namespace kvscope {

constexpr std::size_t kMaxSteps = 200;

SessionHistory::SessionHistory(Session first, std::string file)
    : m_documents{{std::move(file), first}}, m_steps{{std::move(first), {}}} {}

void SessionHistory::push(Step step) {
    m_steps.resize(m_index + 1);
    m_steps.push_back(std::move(step));
    if (m_steps.size() > kMaxSteps) m_steps.erase(m_steps.begin());
    m_index = m_steps.size() - 1;
    forgetDocuments();
}

// Old steps and undone steps are dropped; a document that only they referred to is dropped with them.
void SessionHistory::forgetDocuments() {
    std::set<std::size_t> used;
    for (const Step& step : m_steps) used.insert(step.document);
    if (used.size() == m_documents.size()) return;
    std::vector<Document> left;
    std::map<std::size_t, std::size_t> place;
    for (const std::size_t document : used) {
        place[document] = left.size();
        left.push_back(std::move(m_documents[document]));
    }
    m_documents = std::move(left);
    for (Step& step : m_steps) step.document = place[step.document];
}

void SessionHistory::change(Session next, std::string label, const std::string& mergeKey) {
    Session lookOnly = current();
    lookOnly.look = next.look;
    if (lookOnly == next) {
        m_steps[m_index].session = std::move(next);
        return;
    }
    if (!mergeKey.empty() && mergeKey == m_mergeKey) {
        m_steps.resize(m_index + 1);
        if (m_index > 0) lookOnly = m_steps[m_index - 1].session;
        lookOnly.look = next.look;
        if (m_index > 0 && lookOnly == next) { // a drag back to where it began is no step
            m_steps.pop_back();
            --m_index;
            m_mergeKey.clear();
        }
        m_steps[m_index].session = std::move(next);
        return;
    }
    push({std::move(next), std::move(label), m_steps[m_index].document});
    m_mergeKey = mergeKey;
}

void SessionHistory::open(Session next, std::string file, std::string label) {
    m_documents.push_back({std::move(file), next});
    push({std::move(next), std::move(label), m_documents.size() - 1});
    m_mergeKey.clear();
}

std::optional<std::size_t> SessionHistory::stepBeforeLesson() const {
    if (current().lesson.empty()) return std::nullopt;
    for (std::size_t step = m_index; step-- > 0;)
        if (m_steps[step].session.lesson.empty()) return step;
    return std::nullopt;
}

const Session* SessionHistory::beforeLesson() const {
    const auto step = stepBeforeLesson();
    return step ? &m_steps[*step].session : nullptr;
}

void SessionHistory::leaveLesson() {
    const auto step = stepBeforeLesson();
    if (!step) return;
    Step back = m_steps[*step];
    back.label = "Leave lesson";
    keepInterface(back.session, current());
    push(std::move(back));
    m_mergeKey.clear();
}

void SessionHistory::markSaved(std::string file) {
    m_documents[m_steps[m_index].document] = {std::move(file), current()};
}

std::vector<std::pair<std::string, Session>> SessionHistory::unsaved() const {
    std::vector<const Session*> latest(m_documents.size());
    for (const Step& step : m_steps) latest[step.document] = &step.session;
    latest[m_steps[m_index].document] = &current();
    std::vector<std::size_t> order = {m_steps[m_index].document}; // of two sessions of one file the later one counts
    for (std::size_t i = m_documents.size(); i-- > 0;) order.push_back(i);
    std::vector<std::pair<std::string, Session>> unsaved;
    std::set<std::string> seen = {""}; // no file
    for (const std::size_t i : order)
        if (latest[i] && seen.insert(m_documents[i].file).second && *latest[i] != m_documents[i].saved)
            unsaved.emplace_back(m_documents[i].file, *latest[i]);
    return unsaved;
}

std::string SessionHistory::undoLabel() const { return canUndo() ? m_steps[m_index].label : std::string{}; }

std::string SessionHistory::redoLabel() const { return canRedo() ? m_steps[m_index + 1].label : std::string{}; }

const Session* SessionHistory::undone() const { return canUndo() ? &m_steps[m_index - 1].session : nullptr; }

const Session* SessionHistory::redone() const { return canRedo() ? &m_steps[m_index + 1].session : nullptr; }

void SessionHistory::undo() {
    if (canUndo()) moveTo(m_index - 1);
}

void SessionHistory::redo() {
    if (canRedo()) moveTo(m_index + 1);
}

void SessionHistory::moveTo(std::size_t index) {
    const std::size_t from = std::exchange(m_index, index);
    Step& step = m_steps[m_index];
    if (step.document == m_steps[from].document)
        step.session.look = m_steps[from].session.look;
    else
        keepInterface(step.session, m_steps[from].session);
    m_mergeKey.clear();
}

} // namespace kvscope
