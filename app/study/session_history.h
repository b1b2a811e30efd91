#pragma once

#include "app/study/session.h"

#include <string>
#include <vector>

namespace kvscope {

/// Undo as a list of sessions. A drag is one step: changes that follow each other with the same non-empty merge key
/// replace one another until `endMerge` (the mouse button goes up, the field loses focus).
class SessionHistory {
public:
    explicit SessionHistory(Session first = {});

    const Session& current() const { return m_steps[m_index].session; }

    /// Records a step named `label` ("Budget"). A change of the look alone, or none, is no step.
    void change(Session next, std::string label, const std::string& mergeKey = {});
    void endMerge() { m_mergeKey.clear(); }

    bool canUndo() const { return m_index > 0; }
    bool canRedo() const { return m_index + 1 < m_steps.size(); }
    std::string undoLabel() const; ///< label of the step that undo would revert; empty without one
    std::string redoLabel() const;
    void undo(); ///< nothing without a step
    void redo();

    /// True while the current session is the one last marked: closing loses nothing.
    bool isSaved() const { return m_saved == current(); }
    void markSaved() { m_saved = current(); }

private:
    struct Step {
        Session session;
        std::string label; ///< of the change that led to this session
    };
    void moveTo(std::size_t index);

    std::vector<Step> m_steps; ///< never empty
    std::size_t m_index = 0;
    std::string m_mergeKey;
    Session m_saved;
};

} // namespace kvscope
