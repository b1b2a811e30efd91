#pragma once

#include "core/engine/engine.h"

#include <utility>

namespace kvscope {

/// Forwards every primitive of Engine, one line each. Derived decides in one place which engine runs a primitive:
/// run(primitive, call) returns call(engine, on), where `on` converts a tensor for that engine. Base is Engine or an
/// interface derived from Engine.
template <class Derived, class Base = Engine> class ForwardedPrimitives : public Base {
public:
    Tensor upload(HostTensor tensor) const override {
        return run("upload", [&](const Engine& e, const auto&) { return e.upload(std::move(tensor)); });
    }
    HostTensor download(const Tensor& tensor) const override {
        return run("download", [&](const Engine& e, const auto& on) { return e.download(on(tensor)); });
    }
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override {
        return run("rows", [&](const Engine& e, const auto& on) { return e.rows(on(tensor), begin, end); });
    }
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override {
        return run("gatherRows", [&](const Engine& e, const auto& on) { return e.gatherRows(on(tensor), rows); });
    }
    HostTensor rowNorms(const Tensor& keys, const Checkpoint& c) const override {
        return run("rowNorms", [&](const Engine& e, const auto& on) { return e.rowNorms(on(keys), c); });
    }
    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override {
        return run("anchor", [&](const Engine& e, const auto& on) { return e.anchor(on(keys), kind, c); });
    }
    HostTensor similarity(const Tensor& keys, const HostTensor& a, SimilarityMetric m,
                          const Checkpoint& c) const override {
        return run("similarity", [&](const Engine& e, const auto& on) { return e.similarity(on(keys), a, m, c); });
    }
    HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric m, const Checkpoint& c) const override {
        return run("pairwiseSums", [&](const Engine& e, const auto& on) { return e.pairwiseSums(on(keys), m, c); });
    }
    HostTensor attentionColumnSums(const AttentionInput& in, const Checkpoint& c) const override {
        return run("attentionColumnSums",
                   [&](const Engine& e, const auto& on) { return e.attentionColumnSums(placed(in, on), c); });
    }
    HostTensor attentionChunkSums(const AttentionChunksInput& in, const Checkpoint& c) const override {
        return run("attentionChunkSums",
                   [&](const Engine& e, const auto& on) { return e.attentionChunkSums(placed(in, on), c); });
    }
    Leverage leverage(const LeverageRequest& in, const Checkpoint& c) const override {
        return run("leverage", [&](const Engine& e, const auto& on) { return e.leverage(placed(in, on), c); });
    }
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& c) const override {
        return run("spectralDistortion",
                   [&](const Engine& e, const auto& on) { return e.spectralDistortion(on(rows), kept, c); });
    }
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& in,
                                             const Checkpoint& c) const override {
        return run("greedyCenters", [&](const Engine& e, const auto& on) { return e.greedyCenters(on(keys), in, c); });
    }
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override {
        return run("streamClusters",
                   [&](const Engine& e, const auto& on) { return e.streamClusters(on(keys), radii, most, c); });
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& in, const Checkpoint& c) const override {
        return run(in.kept.empty() ? "exact attention" : "kept attention",
                   [&](const Engine& e, const auto& on) { return e.weightedAttention(placed(in, on), c); });
    }
    AttentionMap attentionMap(const AttentionMapInput& in, const Checkpoint& c) const override {
        return run("attentionMap", [&](const Engine& e, const auto& on) { return e.attentionMap(placed(in, on), c); });
    }
    HostTensor singularValues(const Tensor& rows, const RowPositions& chosen, const Checkpoint& c) const override {
        return run("singularValues",
                   [&](const Engine& e, const auto& on) { return e.singularValues(on(rows), chosen, c); });
    }
    HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                   const Checkpoint& c) const override {
        return run("prefixOperatorNorms",
                   [&](const Engine& e, const auto& on) { return e.prefixOperatorNorms(on(rows), first, count, c); });
    }
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& in, const Checkpoint& c) const override {
        return run("balancingWalks",
                   [&](const Engine& e, const auto& on) { return e.balancingWalks(placed(in, on), c); });
    }
    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& c) const override {
        return run("principalAxes",
                   [&](const Engine& e, const auto& on) { return e.principalAxes(on(keys), head, components, c); });
    }
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override {
        return run("project", [&](const Engine& e, const auto& on) { return e.project(on(keys), head, axes); });
    }

private:
    template <class Call> auto run(const char* primitive, const Call& call) const {
        return static_cast<const Derived&>(*this).run(primitive, call);
    }

    /// The request with its tensors converted by `on`.
    template <class Request, class On> static Request placed(Request request, const On& on) {
        if constexpr (requires { request.queries; }) request.queries = on(request.queries);
        if constexpr (requires { request.keys; }) request.keys = on(request.keys);
        if constexpr (requires { request.values; }) request.values = on(request.values);
        if constexpr (requires { request.rows; }) request.rows = on(request.rows);
        if constexpr (requires { request.reference; }) request.reference = on(request.reference);
        return request;
    }
};

/// Forwards every primitive to another engine, which must outlive it. Engines that observe another one derive from it;
/// `to` receives the name of every primitive.
template <class Base> class BasicForwardingEngine : public ForwardedPrimitives<BasicForwardingEngine<Base>, Base> {
public:
    explicit BasicForwardingEngine(const Engine& engine) : m_engine(engine) {}

    std::string name() const override { return m_engine.name(); }
    std::string arithmetic() const override { return m_engine.arithmetic(); }
    EngineState state() const override { return m_engine.state(); }

    template <class Call> auto run(const char* primitive, const Call& call) const {
        return call(to(primitive), [](const Tensor& tensor) -> const Tensor& { return tensor; });
    }

protected:
    virtual const Engine& to(const char* primitive) const { return (void)primitive, m_engine; }

private:
    const Engine& m_engine;
};

using ForwardingEngine = BasicForwardingEngine<Engine>;

} // namespace kvscope
