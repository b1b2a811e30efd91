// The layer scan fills the head picker: one measure on one layer after the other, in one slot. A change of what is
// asked for cancels the layer that is under way.
#include "app/workbench/layer_scan.h"

#include "app/study/makers/measured_heads.h"
#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr std::uint64_t kScannedUpToBytes = std::uint64_t{256} << 20;
constexpr std::chrono::milliseconds kPause{350};
constexpr const char* kSlot = "layer scan";

/// Runs on a worker. Throws Error where the layer lacks the measure.
std::vector<double> scanLayer(const LayerRunner& runner, const PaneRequest& request, const MeasureCard& measure,
                              const Checkpoint& checkpoint) {
    checkCaptureHas(*request.run.capture, request.run.layer, measure.need);
    const auto result = runner.run(resolvePane(request), checkpoint.part(0, 0.5));
    if (measure.need == MeasureNeed::Scores && result->scores.empty() && result->queryHeadScores.empty())
        throw Error({policyIdentityOf(result->request).policyName + " scores no tokens", "",
                     "Look at a pane whose policy ranks tokens by a score"});
    return kvHeadValues(runner, *result, measure, checkpoint.part(0.5, 1));
}

LayerScanResult refused(const std::string& key, const std::exception_ptr& failure) {
    LayerScanResult row{key, {}, messageOf(failure), messageOf(failure)};
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        row.refusal = error.parts().sentence;
    } catch (...) { // no Error: it has no parts
    }
    return row;
}

} // namespace

LayerScan::LayerScan(const OpenSession& open, Scheduler& scheduler, Clock& clock, std::function<void()> changed)
    : m_open(open), m_scheduler(scheduler), m_changed(std::move(changed)),
      m_pause(clock.makeTimer([this] { scanNext(); })) {}

const MeasureCard& LayerScan::measure() const { return measureById(m_open.session().look.headMeasure); }

bool LayerScan::isLarge() const { return m_open.capture && m_open.capture->info().fileBytes > kScannedUpToBytes; }

const LayerScanResult* LayerScan::at(LayerIndex layer) const {
    const auto rows = m_rows.find(measure().id);
    if (rows == m_rows.end()) return nullptr;
    const auto row = rows->second.find(layer.value);
    return row == rows->second.end() ? nullptr : &row->second;
}

/// The request for the session's layer. Measures of the layer itself use the whole cache and stay valid when panes
/// change.
std::optional<PaneRequest> LayerScan::request() const {
    if (measure().subject == MeasureSubject::KeptTokens) return m_open.paneRequest(m_open.session().activePane);
    if (!m_open.cut) return std::nullopt;
    return PaneRequest{wholeCache(m_open.capture, m_open.session().layer, *m_open.cut), {}};
}

std::string LayerScan::currentKey() const {
    const std::optional<PaneRequest> request = this->request();
    return request ? measure().id + "|" + resultKey(*request) : std::string{};
}

void LayerScan::refresh(const PaneJobs::Pane& active) {
    std::string key = currentKey();
    if (key == m_key) {
        if (isLarge() && !m_scheduler.busy(kSlot)) m_pause->start(kPause); // the user may have gone to another layer
        return;
    }
    m_key = std::move(key);
    m_scheduler.cancel(kSlot);
    // Old numbers stay until new ones replace them, unless no scan will run.
    std::erase_if(m_rows[measure().id], [&](const auto& entry) {
        const LayerScanResult& row = entry.second;
        return row.key != m_key && (m_key.empty() || isLarge() || !row.refusal.empty());
    });
    m_changed();
    note(active);
    m_pause->start(kPause);
}

void LayerScan::note(const PaneJobs::Pane& active) {
    if (active.state != JobState::Ready || !active.value->fidelity || !comesWithResults(measure()) ||
        currentKey() != m_key) // a refresh follows
        return;
    store(active.value->request.layer, {m_key, kvHeadValues(*m_open.runner, *active.value, measure(), {}), {}, {}});
}

/// The current layer first, then the others in order. For a large capture only the current one, and only for measures
/// that do not come with a pane's result.
std::optional<LayerIndex> LayerScan::nextLayer() const {
    if (m_key.empty() || (isLarge() && comesWithResults(measure()))) return std::nullopt;
    const auto isMissing = [&](LayerIndex layer) {
        const LayerScanResult* known = at(layer);
        return !known || known->key != m_key;
    };
    if (isMissing(m_open.session().layer)) return m_open.session().layer;
    if (isLarge()) return std::nullopt;
    const auto& layers = m_open.capture->info().layers;
    const auto missing = std::ranges::find_if(layers, [&](const LayerInfo& layer) { return isMissing(layer.layer); });
    return missing == layers.end() ? std::nullopt : std::optional(missing->layer);
}

void LayerScan::scanNext() {
    std::optional<PaneRequest> request = this->request();
    const std::optional<LayerIndex> layer = nextLayer();
    if (!request || !layer) return;
    request->run.layer = *layer;
    const auto storeAndGoOn = [this, layer = *layer](LayerScanResult row) {
        store(layer, std::move(row));
        m_pause->start({});
    };
    Scheduler::Job job;
    job.work = [runner = m_open.runner, request = *request, &measure = measure(), key = m_key,
                storeAndGoOn](const Checkpoint& checkpoint, const auto& post) {
        post([storeAndGoOn, row = LayerScanResult{key, scanLayer(*runner, request, measure, checkpoint), {}, {}}] {
            storeAndGoOn(row);
        });
    };
    job.failed = [key = m_key, storeAndGoOn](std::exception_ptr failure) { storeAndGoOn(refused(key, failure)); };
    m_scheduler.submit(kSlot, std::move(job));
}

void LayerScan::store(LayerIndex layer, LayerScanResult row) {
    m_rows[measure().id][layer.value] = std::move(row);
    m_changed();
}

void LayerScan::outdate() {
    m_key.clear();
    for (auto& [measure, rows] : m_rows)
        for (auto& [layer, row] : rows) row.key.clear();
}

void LayerScan::clear() {
    m_rows.clear();
    m_key.clear();
}

} // namespace kvscope
