#pragma once

#include "app/workbench/workbench.h"

#include <memory>
#include <string>

namespace kvscope {

/// The workbench of the capture that a session is compared with (app/study/compared_capture.h). It follows the session
/// of the first one, which owns it, and has a capture while that one compares. Edits made here become edits of the
/// first session, one step of undo there.
class SecondWorkbench final : public Workbench {
    Q_OBJECT

public:
    SecondWorkbench(Workbench& first, Scheduler::Executor executor, Scheduler::Deliver deliver);

    bool isOpen() const { return capture() != nullptr; }
    /// Opens a capture on a worker and compares with it; the first workbench says why it cannot (`failed`).
    void compareWith(const std::string& path);
    void stopComparing();

    void change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey = {}) override;
    void endMerge() override { m_first.endMerge(); }
    void undo() override { m_first.undo(); }
    void redo() override { m_first.redo(); }
    void setCursor(std::optional<TokenIndex> tokens) override { m_first.setCursor(tokens); }
    void setRange(const View& view, const std::optional<Viewport::Range>& range) override;

private:
    using Use = std::function<void(std::shared_ptr<const CaptureReader>)>;
    void openChecked(const std::string& path, Use use);
    void follow();
    void install(std::shared_ptr<const CaptureReader> opened); ///< null: closes
    void show(Session next);

    Workbench& m_first;
    std::shared_ptr<const CaptureReader> m_ready; ///< opened, not shown yet
    std::string m_tried;                          ///< path that is being opened or cannot be opened
    std::weak_ptr<const CaptureReader> m_with;    ///< the first capture, as it was when the two were checked
};

} // namespace kvscope
