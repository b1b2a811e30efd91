// The head grid for a second pane: the same maker with another pane as the active one.
#include "app/window/panels/other_pane_heads.h"

#include "app/study/makers/view_data_maker.h"
#include "core/base/error.h"
#include "views/view.h"

#include <cstdint>
#include <utility>

namespace kvscope {

OtherPaneHeads::OtherPaneHeads(Workbench& workbench, QObject* parent)
    : QObject(parent), m_workbench(workbench),
      m_slot("other pane's heads " + std::to_string(reinterpret_cast<std::uintptr_t>(this))) {
    // Keys do not name the engine, and a new capture ends running jobs.
    m_workbench.tell(this, &OtherPaneHeads::forget, &Workbench::engineChanged, &Workbench::captureChanged);
}

OtherPaneHeads::~OtherPaneHeads() { m_workbench.cancel(m_slot); }

void OtherPaneHeads::forget() {
    m_workbench.cancel(m_slot);
    m_key.clear();
    m_data = nullptr;
}

void OtherPaneHeads::want(const HeadGridData* shown) {
    std::optional<ViewDataRequest> request = m_workbench.request();
    if (!shown || !shown->ofPane || !request || request->panes.size() < 2) {
        forget();
        return;
    }
    request->options = viewOptions(m_workbench.session(), viewAt(ViewPlace::Model));
    const std::string key = makerFor(viewAt(ViewPlace::Model))->key(*request);
    if (key == m_key) return;
    forget();
    m_key = key;
    submit(*request);
}

void OtherPaneHeads::submit(const ViewDataRequest& request) {
    Scheduler::Job job;
    job.work = [this, runner = m_workbench.sharedRunner(), request](const Checkpoint& checkpoint, const auto& post) {
        const auto deliver = [&](int pane, const ViewDataMaker::Value& value) {
            post([this, pane, data = std::static_pointer_cast<const HeadGridData>(value)] {
                m_pane = pane;
                m_data = data;
                emit changed();
            });
        };
        ViewDataRequest other = request;
        const int panes = static_cast<int>(request.panes.size());
        for (int step = 1; step < panes; ++step) {
            other.activePane = (request.activePane + step) % panes;
            const auto partial = [&](const ViewDataMaker::Value& value) { deliver(other.activePane, value); };
            try {
                deliver(other.activePane,
                        makerFor(viewAt(ViewPlace::Model))->make(*runner, other, checkpoint, partial));
                return;
            } catch (const Error&) {
                deliver(other.activePane, nullptr); // this pane does not have the quantity; try the next one
            }
        }
    };
    m_workbench.submit(m_slot, std::move(job));
}

} // namespace kvscope
