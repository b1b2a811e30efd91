// Any measure as numbers of heads. Two of them come with every measured result; the others are computed when asked for.
#include "app/view_data/measured_heads.h"

#include "app/view_data/head_values.h"
#include "core/base/error.h"

#include <cmath>

namespace kvscope {

std::vector<double> headValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure, const Checkpoint& checkpoint) {
    const Fidelity& fidelity = requireFidelity(result);
    if (measure.id == "output_error")
        return fidelity.meanOutputError;
    if (measure.id == "retained_mass")
        return fidelity.meanRetainedMass;
    const std::vector<std::string> ids = {measure.id};
    return runner.measure(result, ids, checkpoint).front().perHead;
}

double meanOverHeads(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure, const ViewDataRequest& request,
                     bool wholeLayer, const Checkpoint& checkpoint) {
    const std::vector<double> values = headValues(runner, result, measure, checkpoint);
    const bool perKvHead = measure.shape == MeasureShape::PerKvHead;
    const double mean = !perKvHead   ? meanOverHeads(values, request, wholeLayer)
                        : wholeLayer ? meanOfNumbers(values)
                                     : values[static_cast<std::size_t>(request.kvHead.value)];
    if (std::isnan(mean))
        throw Error({.sentence = "'" + measure.id + "' has no number here", .place = measure.id, .remedy = "Look at another head, or choose another measure"});
    return mean;
}

} // namespace kvscope
