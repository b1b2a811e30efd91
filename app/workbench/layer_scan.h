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

/// The head picker's data for a layer: one number per KV head, or the reason why there is none.
struct LayerScanResult {
    std::string key;            ///< key of the request
    std::vector<double> values; ///< [Hkv]: of the active pane, or of the layer itself; empty with a refusal
    std::string refusal, help;  ///< a short sentence, and its longer explanation
};

/// Computes the session's head measure layer by layer in the background. Small captures are scanned completely, large
/// ones only at visited layers. Starts after a pause, so that it does not compete with a drag. Results are kept per
/// measure.
class LayerScan {
public:
    /// All references must outlive it. `changed`: a layer was computed, or the measure changed.
    LayerScan(const OpenSession& open, Scheduler& scheduler, Clock& clock, std::function<void()> changed);

    const LayerScanResult* at(LayerIndex layer) const; ///< null: not computed yet
    void refresh(const PaneJobs::Pane& active);        ///< call when the session may have changed
    void note(const PaneJobs::Pane& active);           ///< takes the numbers that come with its result
    void outdate();                                    ///< the engine changed: the next refresh requests all
    void clear();                                      ///< the capture changed; call after Scheduler::cancelAll

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
    std::string m_key;                  ///< of the running scan; empty: none
    std::unique_ptr<Clock::Timer> m_pause;
};

} // namespace kvscope
