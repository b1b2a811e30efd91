// The norms of keys and queries that the theorems' bounds are made of, measured on one layer.
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/studies/theory_table.h"

#include <algorithm>
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
    const HostTensor keys = normsOf(engine.rows(all(TensorRole::Keys), 0, run.cut.token)),
                     queries = normsOf(all(TensorRole::Queries));
    const std::int64_t firstRow = fidelity.firstQuery - (run.capture->info().numTokens - layer.queryCount);
    std::vector<TheoryNorms> norms;
    for (std::int64_t h = 0; h < keys.shape[0]; ++h) {
        TheoryNorms one;
        one.tokens = run.cut.token;
        one.keyDim = run.capture->info().headDim;
        one.valueDim = run.capture->info().valueDim;
        one.scaling = layer.scaling;
        one.keyNorm = largestOf(keys, h, 0, keys.shape[1]);
        for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q)
            if (layer.gqaGroupOf[q] == h)
                one.queryNorm = std::max(one.queryNorm, largestOf(queries, static_cast<std::int64_t>(q), firstRow,
                                                                  firstRow + fidelity.queryCount));
        norms.push_back(one);
    }
    return norms;
}

} // namespace kvscope
