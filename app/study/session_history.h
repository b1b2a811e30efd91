#pragma once

#include "app/study/session.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Undo as a list of sessions, each with its document: what was opened, and its session file if any. A drag is one
/// step: changes that follow each other with the same non-empty merge key replace one another until `endMerge` (the
/// mouse button goes up, the field loses focus).
class SessionHistory {
public:
    explicit SessionHistory(Session first = {}, std::string file = {});

    const Session& current() const { return m_steps[m_index].session; }

    /// The session file of the current session; empty: it was never saved.
    const std::string& file() const { return m_documents[m_steps[m_index].document].file; }

    /// A step to a session of its own: another capture, a session file, a lesson. Undo leads back to the one before.
    void open(Session next, std::string file, std::string label);
    /// The latest session before the open lesson; null without one.
    const Session* beforeLesson() const;
    void leaveLesson(); ///< a step to `beforeLesson`

    /// Records a step named `label` ("Budget"). A change of the look alone, or none, is no step.
    void change(Session next, std::string label, const std::string& mergeKey = {});
    void endMerge() { m_mergeKey.clear(); }
    /// Replaces the current session without a step, where it did not fit the capture, whose file has changed.
    void adapt(Session fitted) { m_steps[m_index].session = std::move(fitted); }

    bool canUndo() const { return m_index > 0; }
    bool canRedo() const { return m_index + 1 < m_steps.size(); }
    std::string undoLabel() const; ///< label of the step that undo would revert; empty without one
    std::string redoLabel() const;
    void undo(); ///< does nothing without a step
    void redo();
    const Session* undone() const; ///< what undo would lead to; null without a step
    const Session* redone() const;

    /// True while the current session is the one last marked: closing loses nothing.
    bool isSaved() const { return m_documents[m_steps[m_index].document].saved == current(); }
    /// The current session was written to `file`, which is its file from now on.
    void markSaved(std::string file);
    /// How many documents the steps lead to.
    std::size_t documents() const { return m_documents.size(); }
    /// The latest session of every session file, where it differs from what the file holds.
    std::vector<std::pair<std::string, Session>> unsaved() const;

private:
    struct Document {
        std::string file;
        Session saved;
    };
    struct Step {
        Session session;
        std::string label; ///< of the change that led to this session
        std::size_t document = 0;
    };
    void push(Step step);
    void forgetDocuments(); ///< those that no step leads to
    void moveTo(std::size_t index);
    std::optional<std::size_t> stepBeforeLesson() const;

    std::vector<Document> m_documents; ///< never empty
    std::vector<Step> m_steps;         ///< never empty
    std::size_t m_index = 0;
    std::string m_mergeKey;
};

} // namespace kvscope
