// Distributions of a capture's vectors. Figures over tokens count every token before the cut; figures over heads use
// one measure per head from core/metrics.
#include "app/study/makers/measured_heads.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/run/attention_rule.h"
#include "views/geometry/geometry_data.h"

#include <algorithm>
#include <bit>
#include <memory>

namespace kvscope {

namespace {

constexpr std::size_t kTokenBins = 120, kMostHeadBins = 24;

/// Sturges' rule for few heads.
std::size_t headBins(std::size_t heads) {
    return std::min(kMostHeadBins, static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(1, heads) - 1)) + 1);
}

class FigureMaker : ViewDataWork {
public:
    explicit FigureMaker(const ViewDataWork& work) : ViewDataWork(work) {
        m_data.figure = request.options.choice("figure");
        m_data.tokens = request.cut.token;
        const bool wholeModel = m_data.wholeModel = request.options.choice("scope") == "model" && !m_data.isScatter();
        for (const LayerInfo& layer : request.capture->info().layers)
            if (wholeModel || layer.layer == request.layer) m_layers.push_back(layer.layer);
        if (m_layers.empty())
            request.capture->info().layerInfo(request.layer); // throws, naming the layers that are there
        nameFigure();
    }

    ViewDataMaker::Value run() {
        for (std::size_t i = 0; i < m_layers.size(); ++i) {
            const Checkpoint part = checkpoint.step(i, m_layers.size());
            part.at(0, 1);
            addLayer(m_layers[i], part);
            m_data.where = m_layers.size() > 1
                               ? std::to_string(i + 1) + " of " + std::to_string(m_layers.size()) + " layers"
                               : whereInLayer();
            deliver(m_data);
        }
        return std::make_shared<const GeometryData>(m_data);
    }

private:
    using Role = GeometrySeries::Role;
    bool headOnly() const { return request.options.choice("scope") == "head"; }

    std::string whereInLayer() const {
        const std::string layer = "layer " + std::to_string(request.layer.value);
        if (m_data.isScatter()) return layer + ", query head " + std::to_string(request.queryHead.value);
        return headOnly() ? layer + ", KV head " + std::to_string(request.kvHead.value) : layer;
    }

    void series(Role role, const char* name, double low, double high) {
        m_data.series.push_back({role, name, {}, 'A', Histogram(low, high, kTokenBins), {}});
    }

    void nameFigure() {
        const std::string& figure = m_data.figure;
        m_data.of = figure == "log_det"                         ? "KV heads"
                    : figure == "means" || figure == "distinct" ? "query heads"
                                                                : "vectors";
        m_data.isSigned = figure == "cosines" || figure == "means" || figure == "distinct";
        m_data.axis = figure == "cosines"    ? "Cosine to the mean"
                      : figure == "means"    ? "cos(mean key, mean query)"
                      : figure == "distinct" ? "Cosine to the mean query"
                      : figure == "log_det"  ? "log det of the kept keys"
                      : figure == "lemma"    ? "Attention weight w of k*"
                      : figure == "theorem"  ? "a − b = cos(mean key, q) − cos(k*, q)"
                                             : "Norm";
        if (figure == "cosines") {
            series(Role::Keys, "keys", -1, 1 + 1e-6);
            series(Role::Queries, "queries", -1, 1 + 1e-6);
        } else if (figure == "norms") {
            series(Role::Keys, "‖k‖", 0, 4);
            series(Role::Queries, "‖q‖", 0, 4);
        } else if (figure == "table3") {
            series(Role::Queries, "‖q‖", 0, 4);
            series(Role::Keys, "‖k − mean k‖", 0, 4);
            series(Role::Values, "‖v‖", 0, 4);
        }
    }

    void addLayer(LayerIndex layer, const Checkpoint& part) {
        if (m_data.isScatter())
            addPoints(layer, part);
        else if (m_data.figure == "means")
            addMeasures(layer, {"cos_means"}, {Role::Keys}, {"cos(mean key, mean query)"}, part);
        else if (m_data.figure == "distinct")
            addMeasures(layer, {"cos_distinct", "cos_means"}, {Role::Keys, Role::Values},
                        {"most distinct key k*", "mean key"}, part);
        else if (m_data.figure == "log_det")
            addLogDeterminants(layer, part);
        else
            addVectors(layer, part);
    }

    Tensor rowsOf(LayerIndex layer, TensorRole role, const Checkpoint& part) const {
        const Tensor all = runner.tensor(request.capture, layer, role, part);
        if (role != TensorRole::Queries) return runner.engine().rows(all, 0, request.cut.token);
        const std::int64_t first = request.capture->info().numTokens - all.size(1);
        const std::int64_t seen = request.cut.token - first;
        if (seen < 1)
            throw Error({"no query before the cut was captured", "layer " + std::to_string(layer.value),
                         "Choose a later cut, or capture the queries of all tokens", request.capture->info().path});
        return runner.engine().rows(all, 0, seen);
    }

    /// Adds every number of the heads in scope.
    void add(std::size_t which, const HostTensor& table, LayerIndex layer) {
        const auto& gqaGroupOf = request.capture->info().layerInfo(layer).gqaGroupOf;
        const bool perQuery = m_data.series[which].role == Role::Queries;
        const std::int64_t width = table.shape[1];
        for (std::int64_t head = 0; head < table.shape[0]; ++head) {
            const std::int32_t kvHead = perQuery ? gqaGroupOf[head] : static_cast<std::int32_t>(head);
            if (headOnly() && kvHead != request.kvHead.value) continue;
            for (std::int64_t i = 0; i < width; ++i)
                m_data.series[which].histogram.add(static_cast<double>(table.data[head * width + i]));
        }
    }

    void addVectors(LayerIndex layer, const Checkpoint& part) {
        const Engine& engine = runner.engine();
        const Checkpoint step = part.silent();
        const auto norms = [&](const Tensor& rows) { return engine.rowNorms(rows, step); };
        const Tensor keys = rowsOf(layer, TensorRole::Keys, step), queries = rowsOf(layer, TensorRole::Queries, step);
        if (m_data.figure == "cosines") {
            add(0, cosinesToMean(engine, keys, step), layer);
            add(1, cosinesToMean(engine, queries, step), layer);
        } else if (m_data.figure == "norms") {
            add(0, norms(keys), layer);
            add(1, norms(queries), layer);
        } else {
            add(0, norms(queries), layer);
            add(1, distancesToMean(engine, keys, step), layer);
            add(2, norms(rowsOf(layer, TensorRole::Values, step)), layer);
        }
    }

    /// The measures of these ids on a layer of `run`.
    std::vector<MeasureValues> measuresOf(RunRequest run, LayerIndex layer, const std::vector<std::string>& ids,
                                          const Checkpoint& part) const {
        run.layer = layer;
        run.measure = true;
        const auto result = runner.run(run, part.part(0, 0.7));
        return runner.measure(*result, ids, part.part(0.7, 1));
    }

    void addNumbers(GeometrySeries& series, const std::vector<double>& perHead, bool perQuery, LayerIndex layer) {
        const auto& gqaGroupOf = request.capture->info().layerInfo(layer).gqaGroupOf;
        for (std::size_t head = 0; head < perHead.size(); ++head)
            if (!headOnly() || (perQuery ? gqaGroupOf[head] : static_cast<std::int32_t>(head)) == request.kvHead.value)
                series.numbers.push_back(perHead[head]);
        series.histogram = Histogram::over(series.numbers, headBins(series.numbers.size()));
    }

    void addMeasures(LayerIndex layer, const std::vector<std::string>& ids, const std::vector<Role>& roles,
                     const std::vector<std::string>& names, const Checkpoint& part) {
        const auto values = measuresOf(wholeCache(request.capture, layer, request.cut), layer, ids, part);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (m_data.series.size() <= i) m_data.series.push_back({roles[i], names[i], {}, 'A', {}, {}});
            addNumbers(m_data.series[i], values[i].perHead, true, layer);
        }
    }

    void addLogDeterminants(LayerIndex layer, const Checkpoint& part) {
        if (request.panes.empty())
            throw Error({"no policy is shown", "", "Add a pane: log det is that of the keys it keeps"});
        for (std::size_t pane = 0; pane < request.panes.size(); ++pane) {
            const RunRequest run = resolvePane(request.panes[pane]);
            const PaneName name = policyIdentityOf(run, pane);
            if (m_data.series.size() <= pane)
                m_data.series.push_back({Role::Policy, name.policyName, name.policyId, name.letter, {}, {}});
            addNumbers(m_data.series[pane], measuresOf(run, layer, {"log_det"}, part.silent()).front().perHead, false,
                       layer);
        }
    }

    void addPoints(LayerIndex layer, const Checkpoint& part) {
        const CaptureInfo& info = request.capture->info();
        const LayerInfo& about = info.layerInfo(layer);
        const std::int64_t first = info.numTokens - about.queryCount,
                           judging = std::max<std::int64_t>(first, request.cut.evaluatedOnSeen ? info.numTokens - 256
                                                                                               : request.cut.token);
        if (about.queryCount == 0 || judging >= info.numTokens)
            throw Error(
                {"the bounds need queries, and layer " + std::to_string(layer.value) + " holds none after the cut", "",
                 about.queryCount == 0 ? "Capture queries too" : "Capture queries too, or choose an earlier cut",
                 info.path});
        const Tensor queries = runner.tensor(request.capture, layer, TensorRole::Queries, part.silent());
        TheoremInput input{runner.engine().rows(queries, judging - first, about.queryCount),
                           runner.tensor(request.capture, layer, TensorRole::Keys, part.silent()),
                           static_cast<TokenIndex>(judging),
                           request.cut.token,
                           attentionRuleOf(about),
                           request.queryHead.value};
        if (about.softcap > 0 || !about.sinks.empty())
            throw Error({"the bounds are about plain softmax of dot products, and layer " +
                             std::to_string(layer.value) +
                             (about.softcap > 0 ? " caps its logits" : " has attention sinks"),
                         "", "Choose another figure", info.path});
        m_data.points = theoremPoints(runner.engine(), input, part);
        m_data.evaluated = input.queries.size(1);
        m_data.leftOut = std::min(input.most, input.queries.size(1)) - std::ssize(m_data.points);
    }

    std::vector<LayerIndex> m_layers;
    GeometryData m_data;
};

} // namespace

ViewDataMaker geometryMaker() {
    using enum DataScope;
    return {"geometry", {Layer, KvHead, QueryHead, Cut, Panes}, runMaker<FigureMaker>};
}

} // namespace kvscope
