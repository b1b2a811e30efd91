// The layer scan fills the head picker: one measure on one layer after the other, in a slot of its own that any change
// of the request empties. What was found for one measure stays while another is looked at.
#include "app/study/makers/measured_heads.h"
#include "app/workbench/workbench.h"
#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr std::uint64_t kScannedUpToBytes = std::uint64_t{256} << 20;
constexpr std::chrono::milliseconds kPause{350};
constexpr const char* kSlot = "survey";

bool isLarge(const CaptureReader& capture) { return capture.info().fileBytes > kScannedUpToBytes; }

const MeasureCard& measureOf(const Session& session) { return measureById(session.look.headMeasure); }

/// Runs on a worker. Throws Error where the layer has no such number.
std::vector<double> scanLayer(const LayerRunner& runner, const PaneRequest& request, const MeasureCard& measure,
                              const Checkpoint& checkpoint) {
    checkCaptureHas(*request.run.capture, request.run.layer, measure.need);
    const auto result = runner.run(resolvePane(request), checkpoint.part(0, 0.5));
    if (measure.need == MeasureNeed::Scores && result->scores.empty() && result->queryHeadScores.empty())
        throw Error({policyIdentityOf(result->request).policyName + " scores no tokens", "",
                     "Look at a pane whose policy ranks tokens by a score", ""});
    return kvHeadValues(runner, *result, measure, checkpoint.part(0.5, 1));
}

LayerScanResult refused(const std::string& key, const std::exception_ptr& failure) {
    LayerScanResult row{key, {}, messageOf(failure), messageOf(failure)};
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        row.refusal = error.parts().sentence;
    } catch (...) { // has no parts
    }
    return row;
}

} // namespace

const LayerScanResult* Workbench::layerScan(LayerIndex layer) const {
    const auto rows = m_layerScans.find(session().look.headMeasure);
    if (rows == m_layerScans.end())
        return nullptr;
    const auto found = rows->second.find(layer.value);
    return found == rows->second.end() ? nullptr : &found->second;
}

/// Of the session's layer. What no policy changes is asked of the whole cache, and stays valid when panes change.
std::optional<PaneRequest> Workbench::layerScanRequest() const {
    if (measureOf(session()).subject == MeasureSubject::KeptTokens)
        return requestFor(session().activePane);
    if (!m_capture || !m_cut)
        return std::nullopt;
    return PaneRequest{wholeCache(m_capture, session().layer, *m_cut), {}};
}

void Workbench::refreshLayerScan() {
    const std::optional<PaneRequest> request = layerScanRequest();
    const std::string key = request ? measureOf(session()).id + "|" + resultKey(*request) : std::string{};
    if (key == m_layerScanKey) {
        if (m_capture && isLarge(*m_capture) && !m_scheduler.busy(kSlot))
            m_layerScanDelay->start(kPause); // one may have gone to another layer
        return;
    }
    m_layerScanKey = key;
    m_scheduler.cancel(kSlot);
    // Numbers of the old request stay until new ones replace them, unless nobody is going to.
    std::erase_if(m_layerScans[measureOf(session()).id], [&](const auto& entry) {
        return entry.second.key != key && (!request || isLarge(*m_capture) || !entry.second.refusal.empty());
    });
    emit layerScanChanged();
    const auto& active = m_panes[static_cast<std::size_t>(session().activePane)];
    if (active.result && active.result->fidelity && !active.computing)
        noteResult(*active.result);
    m_layerScanDelay->start(kPause);
}

/// The layer that is looked at, then the others from the first on. Of a large capture only that one, and only for
/// measures that its pane does not bring along.
std::optional<LayerIndex> Workbench::nextLayerToScan() const {
    if (!m_capture || m_layerScanKey.empty() || (isLarge(*m_capture) && comesWithResults(measureOf(session()))))
        return std::nullopt;
    const auto isMissing = [&](LayerIndex layer) {
        const LayerScanResult* known = layerScan(layer);
        return !known || known->key != m_layerScanKey;
    };
    if (isMissing(session().layer))
        return session().layer;
    if (isLarge(*m_capture))
        return std::nullopt;
    const auto& layers = m_capture->info().layers;
    const auto missing =
        std::find_if(layers.begin(), layers.end(), [&](const LayerInfo& layer) { return isMissing(layer.layer); });
    return missing == layers.end() ? std::nullopt : std::optional(missing->layer);
}

void Workbench::scanNextLayer() {
    std::optional<PaneRequest> request = layerScanRequest();
    const std::optional<LayerIndex> layer = nextLayerToScan();
    if (!request || !layer)
        return;
    request->run.layer = *layer;
    const auto noteAndGoOn = [this, layer = *layer](LayerScanResult row) {
        storeLayerScan(layer, std::move(row));
        m_layerScanDelay->start({});
    };
    Scheduler::Job job;
    job.work = [runner = m_runner, request = *request, &measure = measureOf(session()), key = m_layerScanKey,
                noteAndGoOn](const Checkpoint& checkpoint, const auto& post) {
        post([noteAndGoOn, row = LayerScanResult{key, scanLayer(*runner, request, measure, checkpoint), {}, {}}] {
            noteAndGoOn(row);
        });
    };
    job.failed = [key = m_layerScanKey, noteAndGoOn](std::exception_ptr failure) {
        noteAndGoOn(refused(key, failure));
    };
    m_scheduler.submit(kSlot, std::move(job));
}

/// What a measured result of the active pane says by itself is not asked for again.
void Workbench::noteResult(const RunResult& result) {
    if (m_capture && result.request.capture == m_capture && comesWithResults(measureOf(session())))
        storeLayerScan(result.request.layer,
                       {m_layerScanKey, kvHeadValues(*m_runner, result, measureOf(session()), {}), {}, {}});
}

void Workbench::storeLayerScan(LayerIndex layer, LayerScanResult row) {
    m_layerScans[measureOf(session()).id][layer.value] = std::move(row);
    emit layerScanChanged();
}

} // namespace kvscope
