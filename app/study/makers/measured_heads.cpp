// Numbers of a measure per head. Output error and retained mass come with every result; other measures are computed on
// request.
#include "app/study/makers/measured_heads.h"

#include "core/base/error.h"
#include "core/metrics/measure_values.h"
#include "core/run/head_means.h"

#include <cmath>

namespace kvscope {

std::vector<double> headValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                               const Checkpoint& checkpoint) {
    const Fidelity& fidelity = requireFidelity(result);
    if (measure.id == "output_error") return fidelity.meanOutputError;
    if (measure.id == "retained_mass") return fidelity.meanRetainedMass;
    const std::vector<std::string> ids = {measure.id};
    return runner.measure(result, ids, checkpoint).front().perHead;
}

bool comesWithResults(const MeasureCard& measure) {
    return measure.id == "output_error" || measure.id == "retained_mass";
}

std::vector<double> kvHeadValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                                 const Checkpoint& checkpoint) {
    std::vector<double> values = headValues(runner, result, measure, checkpoint);
    if (measure.shape == MeasureShape::PerKvHead) return values;
    const CaptureInfo& info = result.request.capture->info();
    std::vector<double> means;
    for (std::int32_t head = 0; head < info.numKvHeads; ++head)
        means.push_back(meanOverHeads(values, info.layerInfo(result.request.layer), KvHeadIndex(head)));
    return means;
}

RunRequest wholeCache(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, const Cut& cut) {
    RunRequest whole;
    whole.capture = capture;
    whole.layer = layer;
    whole.policy = PolicySpec::parse("exact");
    whole.cut = cut;
    return whole;
}

void checkCaptureHas(const CaptureReader& capture, LayerIndex layer, MeasureNeed need) {
    const LayerInfo& info = capture.info().layerInfo(layer);
    const std::string place = "layer " + std::to_string(layer.value), &path = capture.info().path;
    if (need == MeasureNeed::OutputProjection && !info.hasOutputProjection)
        throw Error({"no output projection captured", place, "Capture with o_proj, or look at errors before it", path});
    if (need == MeasureNeed::PreRopeKeys && info.hasRope && !info.hasKeysPreRope &&
        capture.inverseFrequencies(layer).empty())
        throw Error({"no keys before RoPE captured", place,
                     "Capture the prompt again with inverse frequencies or k_pre", path});
}

std::optional<KvHeadIndex> measuredHead(const ViewDataRequest& request) {
    return request.options.choice("heads") == "layer" ? std::nullopt : std::optional(request.kvHead);
}

std::string measuredWords(std::optional<KvHeadIndex> head) {
    return head ? "KV head " + std::to_string(head->value) : "all heads of the layer";
}

double meanOverHeads(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                     std::optional<KvHeadIndex> head, const Checkpoint& checkpoint) {
    const std::vector<double> values = headValues(runner, result, measure, checkpoint);
    const LayerInfo& layer = result.request.capture->info().layerInfo(result.request.layer);
    const double mean =
        head && measure.shape == MeasureShape::PerKvHead ? values[head->value] : meanOverHeads(values, layer, head);
    if (std::isnan(mean))
        throw Error(
            {"'" + measure.id + "' has no number here", measure.id, "Look at another head, or choose another measure"});
    return mean;
}

} // namespace kvscope
