// Every primitive is written once, as a call that fits either engine: `on` converts a tensor to the form of the engine
// that runs. `run` alone handles device failures.
#include "gpu/resident_engine.h"

#include <algorithm>
#include <utility>

namespace kvscope {

/// Converts tensors to the form of the engine that a call runs on, and takes over its results.
struct ResidentEngine::Side {
    Residency& residency;
    Place place;

    Tensor operator()(const Tensor& tensor) const { return residency.on(place, tensor); }

    template <class Result> Result keep(Result result) const { return result; }
    Tensor keep(const Tensor& made) const { return residency.keep(made, place); }
    Leverage keep(Leverage made) const {
        made.scores = keep(made.scores);
        return made;
    }
    WeightedAttention keep(WeightedAttention made) const {
        made.output = keep(made.output);
        return made;
    }
};

ResidentEngine::ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                               std::size_t memoryBytes)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes),
      m_residency(m_device, m_cpu, memoryBytes) {}

template <class Call> auto ResidentEngine::run(const char* primitive, const Call& call) const {
    while (!m_lost) {
        try {
            const Side device{m_residency, Place::Device};
            return device.keep(call(*m_device, device));
        } catch (const std::exception& failure) {
            if (!tryAgain(primitive, failure))
                break;
        }
    }
    const Side cpu{m_residency, Place::Cpu};
    return cpu.keep(call(*m_cpu, cpu));
}

/// Call inside a handler. Rethrows what is not the device's fault. True: retry on the device; false: run this call on
/// the CPU engine.
bool ResidentEngine::tryAgain(const std::string& primitive, const std::exception& failure) const {
    switch (m_device->classify(failure)) {
    case DeviceFailure::Ours:
        throw;
    case DeviceFailure::OutOfMemory:
        if (makeRoom())
            return true;
        if (!m_lost)
            notice("GPU memory is full: " + primitive + " ran on the CPU");
        return false;
    case DeviceFailure::Refused:
        notice("The GPU could not run " + primitive + ": it ran on the CPU");
        return false;
    case DeviceFailure::Lost:
        handleDeviceLost();
    }
    return false;
}

/// Evicts all tensors and asks for smaller batches. False when that does not help.
bool ResidentEngine::makeRoom() const {
    try {
        m_residency.evictAll();
        if (!m_device->shrink())
            return false;
    } catch (const std::exception& failure) { // evicting downloads results, which may fail too
        if (m_device->classify(failure) == DeviceFailure::Lost)
            handleDeviceLost();
        return false;
    }
    notice("GPU memory is full: smaller batches");
    return true;
}

void ResidentEngine::handleDeviceLost() const {
    m_lost = true;
    m_residency.handleDeviceLost();
    notice("The GPU stopped answering: going on with the CPU");
}

void ResidentEngine::notice(const std::string& text) const {
    const std::lock_guard lock(m_noticeMutex);
    m_notice = text;
}

EngineState ResidentEngine::state() const {
    EngineState state = m_device->state();
    {
        const std::lock_guard lock(m_noticeMutex);
        if (!m_notice.empty())
            state.notice = m_notice;
    }
    state.residentBytes = m_residency.residentBytes();
    state.memoryBytes = m_memoryBytes;
    state.threads = m_cpu->state().threads;
    return state;
}

Tensor ResidentEngine::upload(HostTensor tensor) const { return m_residency.upload(std::move(tensor)); }

void ResidentEngine::prefetch(const Tensor& tensor) const {
    if (m_lost)
        return;
    try {
        m_residency.prefetch(tensor);
    } catch (const std::exception& failure) {
        if (m_device->classify(failure) == DeviceFailure::Ours)
            throw;
    }
}

HostTensor ResidentEngine::download(const Tensor& tensor) const {
    try {
        return m_residency.download(tensor);
    } catch (const std::exception& failure) {
        if (m_device->classify(failure) == DeviceFailure::Refused)
            handleDeviceLost(); // numbers that the device does not return are lost
        else
            tryAgain("download", failure);
    }
    return m_residency.download(tensor);
}

Tensor ResidentEngine::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const {
    return Residency::rows(tensor, begin, end);
}

Tensor ResidentEngine::gatherRows(const Tensor& tensor, const RowPositions& rows) const {
    return run("gatherRows", [&](const Engine& e, const Side& on) { return e.gatherRows(on(tensor), rows); });
}

Tensor ResidentEngine::rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const {
    return run("rowNorms", [&](const Engine& e, const Side& on) { return e.rowNorms(on(keys), checkpoint); });
}

Tensor ResidentEngine::anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const {
    return run("anchor", [&](const Engine& e, const Side& on) { return e.anchor(on(keys), kind, checkpoint); });
}

Tensor ResidentEngine::similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                                  const Checkpoint& checkpoint) const {
    return run("similarity",
               [&](const Engine& e, const Side& on) { return e.similarity(on(keys), on(anchor), metric, checkpoint); });
}

Tensor ResidentEngine::pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const {
    return run("pairwiseSums",
               [&](const Engine& e, const Side& on) { return e.pairwiseSums(on(keys), metric, checkpoint); });
}

Tensor ResidentEngine::attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const {
    return run("attentionColumnSums", [&](const Engine& e, const Side& on) {
        AttentionInput placed = input;
        placed.queries = on(input.queries);
        placed.keys = on(input.keys);
        return e.attentionColumnSums(placed, checkpoint);
    });
}

Tensor ResidentEngine::attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const {
    return run("attentionChunkSums", [&](const Engine& e, const Side& on) {
        AttentionChunksInput placed = input;
        placed.queries = on(input.queries);
        placed.keys = on(input.keys);
        return e.attentionChunkSums(placed, checkpoint);
    });
}

Leverage ResidentEngine::leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const {
    return run("leverage", [&](const Engine& e, const Side& on) {
        LeverageRequest placed = request;
        placed.rows = on(request.rows);
        return e.leverage(placed, checkpoint);
    });
}

std::vector<double> ResidentEngine::spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                       const Checkpoint& checkpoint) const {
    return run("spectralDistortion",
               [&](const Engine& e, const Side& on) { return e.spectralDistortion(on(rows), kept, checkpoint); });
}

Tensor ResidentEngine::pool(const Tensor& scores, PoolKind kind, std::int64_t width) const {
    return run("pool", [&](const Engine& e, const Side& on) { return e.pool(on(scores), kind, width); });
}

Tensor ResidentEngine::reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf,
                                    std::int64_t numKvHeads, GroupRule rule) const {
    return run("reduceGroups", [&](const Engine& e, const Side& on) {
        return e.reduceGroups(on(scores), gqaGroupOf, numKvHeads, rule);
    });
}

Tensor ResidentEngine::scale(const Tensor& scores, double factor) const {
    return run("scale", [&](const Engine& e, const Side& on) { return e.scale(on(scores), factor); });
}

Tensor ResidentEngine::standardise(const Tensor& scores, const Standardisation& how) const {
    return run("standardise", [&](const Engine& e, const Side& on) { return e.standardise(on(scores), how); });
}

Tensor ResidentEngine::blend(const Tensor& a, const Tensor& b, double weight) const {
    return run("blend", [&](const Engine& e, const Side& on) { return e.blend(on(a), on(b), weight); });
}

Tensor ResidentEngine::multiply(const Tensor& a, const Tensor& b) const {
    return run("multiply", [&](const Engine& e, const Side& on) { return e.multiply(on(a), on(b)); });
}

std::vector<TopKHead> ResidentEngine::topK(const TopKRequest& request) const {
    return run("topK", [&](const Engine& e, const Side& on) {
        TopKRequest placed = request;
        placed.scores = on(request.scores);
        return e.topK(placed);
    });
}

std::vector<GreedyCenters> ResidentEngine::greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                         const Checkpoint& checkpoint) const {
    return run("greedyCenters",
               [&](const Engine& e, const Side& on) { return e.greedyCenters(on(keys), request, checkpoint); });
}

std::vector<StreamClusters> ResidentEngine::streamClusters(const Tensor& keys, std::span<const double> radii,
                                                           std::int64_t most, const Checkpoint& checkpoint) const {
    return run("streamClusters",
               [&](const Engine& e, const Side& on) { return e.streamClusters(on(keys), radii, most, checkpoint); });
}

WeightedAttention ResidentEngine::weightedAttention(const WeightedAttentionInput& input,
                                                    const Checkpoint& checkpoint) const {
    return run("weightedAttention", [&](const Engine& e, const Side& on) {
        WeightedAttentionInput placed = input;
        placed.queries = on(input.queries);
        placed.keys = on(input.keys);
        placed.values = on(input.values);
        return e.weightedAttention(placed, checkpoint);
    });
}

AttentionMap ResidentEngine::attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const {
    return run("attentionMap", [&](const Engine& e, const Side& on) {
        AttentionMapInput placed = input;
        placed.queries = on(input.queries);
        placed.keys = on(input.keys);
        return e.attentionMap(placed, checkpoint);
    });
}

HostTensor ResidentEngine::singularValues(const Tensor& rows, const RowPositions& chosen,
                                          const Checkpoint& checkpoint) const {
    return run("singularValues",
               [&](const Engine& e, const Side& on) { return e.singularValues(on(rows), chosen, checkpoint); });
}

HostTensor ResidentEngine::prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                               const Checkpoint& checkpoint) const {
    return run("prefixOperatorNorms", [&](const Engine& e, const Side& on) {
        return e.prefixOperatorNorms(on(rows), first, count, checkpoint);
    });
}

std::vector<BalancingSteps> ResidentEngine::balancingWalks(const BalancingWalks& input,
                                                           const Checkpoint& checkpoint) const {
    return run("balancingWalks", [&](const Engine& e, const Side& on) {
        BalancingWalks placed = input;
        placed.keys = on(input.keys);
        placed.values = on(input.values);
        placed.centres = on(input.centres);
        return e.balancingWalks(placed, checkpoint);
    });
}

Tensor ResidentEngine::blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& checkpoint) const {
    return run("blockMeanProducts",
               [&](const Engine& e, const Side& on) { return e.blockMeanProducts(on(keys), block, checkpoint); });
}

PrincipalAxes ResidentEngine::principalAxes(const Tensor& keys, std::int64_t head, int components,
                                            const Checkpoint& checkpoint) const {
    return run("principalAxes", [&](const Engine& e, const Side& on) {
        return e.principalAxes(on(keys), head, components, checkpoint);
    });
}

HostTensor ResidentEngine::project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const {
    return run("project", [&](const Engine& e, const Side& on) { return e.project(on(keys), head, axes); });
}

} // namespace kvscope
