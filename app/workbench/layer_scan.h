#pragma once

#include "app/workbench/clock.h"
#include "app/workbench/pane_jobs.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

struct MeasureCard;

/// What the head picker shows of a layer: one number per KV head, or why there is none.
struct LayerScanResult {
    std::string key;            ///< of the request that this answers
    std::vector<double> values; ///< [Hkv]: of the active pane, or of the layer itself; empty where refused
    std::string refusal, help;  ///< a short sentence, and all that is to be said about it
};

/// The session's head measure over the layers, one layer after the other in the background. Small captures are scanned
/// as a whole, large ones only where the user has been. A pause comes before, so that a drag does not compete with it.
/// What was found for one measure stays while another one is shown.
class LayerScan {
public:
    /// All references outlive it. `changed`: another layer is known, or another measure is shown.
    LayerScan(const OpenSession& open, Scheduler& scheduler, Clock& clock, std::function<void()> changed);

    const LayerScanResult* at(LayerIndex layer) const; ///< null: not known yet
    void refresh(const PaneJobs::Pane& active);        ///< the session may ask for other numbers
    void note(const PaneJobs::Pane& active);           ///< its result may hold the numbers of its layer
    void outdate();                                    ///< another engine: the next refresh asks for everything again
    void clear();                                      ///< another capture; no job runs any more

private:
    using Rows = std::map<std::int32_t, LayerScanResult>; ///< by layer

    const MeasureCard& measure() const;
    bool isLarge() const;
    std::optional<PaneRequest> request() const;
    std::string currentKey() const;
    std::optional<LayerIndex> nextLayer() const;
    void scanNext();
    void store(LayerIndex layer, LayerScanResult row);

    const OpenSession& m_open;
    Scheduler& m_scheduler;
    std::function<void()> m_changed;
    std::map<std::string, Rows> m_rows; ///< by measure
    std::string m_key;                  ///< of what is scanned; empty: nothing
    std::unique_ptr<Clock::Timer> m_pause;
};

} // namespace kvscope
