// The norms of keys, values and queries that the theorems' bounds are made of, measured on one layer.
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/metrics/geometry.h"
#include "core/metrics/statistics.h"
#include "core/studies/theory_table.h"

#include <algorithm>
#include <span>
#include <vector>

namespace kvscope {

namespace {

double largestOf(const HostTensor& table, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const float* at = table.data.data() + row * table.shape[1];
    return end > begin ? static_cast<double>(*std::max_element(at + begin, at + end)) : 0;
}

} // namespace

std::vector<TheoryNorms> theoryNorms(const LayerRunner& runner, const RunResult& result, const Checkpoint& checkpoint) {
    const Engine& engine = runner.engine();
    const RunRequest& run = result.request;
    const LayerInfo& layer = run.capture->info().layerInfo(run.layer);
    const Fidelity& fidelity = requireFidelity(result);
    const auto all = [&](TensorRole role) { return runner.tensor(run.capture, run.layer, role, checkpoint); };
    const auto normsOf = [&](const Tensor& rows) { return engine.rowNorms(rows, checkpoint); };
    const Tensor seenKeys = engine.rows(all(TensorRole::Keys), 0, run.cut.token),
                 seenValues = engine.rows(all(TensorRole::Values), 0, run.cut.token);
    const HostTensor keys = normsOf(seenKeys), values = normsOf(seenValues),
                     queries = normsOf(all(TensorRole::Queries));
    const HostTensor singular = engine.singularValues(seenValues, {}, checkpoint);
    const std::int64_t firstRow = fidelity.firstQuery - (run.capture->info().numTokens - layer.queryCount);
    std::vector<TheoryNorms> norms;
    for (std::int64_t h = 0; h < keys.shape[0]; ++h) {
        TheoryNorms one;
        one.tokens = run.cut.token;
        one.keyDim = seenKeys.size(2);
        one.valueDim = seenValues.size(2);
        one.scaling = layer.scaling;
        one.keyNorm = largestOf(keys, h, 0, keys.shape[1]);
        one.valueNorm = largestOf(values, h, 0, values.shape[1]);
        for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q)
            if (layer.gqaGroupOf[q] == h)
                one.queryNorm = std::max(one.queryNorm, largestOf(queries, static_cast<std::int64_t>(q), firstRow,
                                                                  firstRow + fidelity.queryCount));
        const auto width = static_cast<std::size_t>(singular.shape[1]);
        const std::span<const float> spectrum(singular.data.data() + static_cast<std::size_t>(h) * width, width);
        one.valueRank = static_cast<double>(pseudoLogDeterminant(spectrum, run.cut.token).count);
        norms.push_back(one);
    }
    return norms;
}

} // namespace kvscope
