// Clusters come from the policies' step logs. Cluster counts over a grid of radii need no policy: the engine runs the
// same pass over one head's rows, for keys, keys before RoPE and values.
#include "app/study/makers/view_data_maker.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/policies/subgen/subgen_radius.h"
#include "views/clustering/clustering_data.h"

#include <algorithm>

namespace kvscope {

namespace {

constexpr std::int64_t kMostClusters = 1024, kMostCentres = 1024;
constexpr double kFirstRadius = 0.3, kLastRadius = 1.3, kRadiusStep = 0.05; // of the median distance

class ClusteringMaker : ViewDataWork {
public:
    explicit ClusteringMaker(const ViewDataWork& work) : ViewDataWork(work) { m_data.cut = request.cut.token; }

    ViewDataMaker::Value run() {
        const std::string& picture = request.options.choice("picture");
        if (picture == "delta")
            countOverRadii();
        else if (picture == "radius")
            cover();
        else
            followPolicy(picture);
        return std::make_shared<const ClusteringData>(m_data);
    }

private:
    std::size_t head() const { return static_cast<std::size_t>(request.kvHead.value); }

    /// The head's rows before the cut, as a tensor of one head.
    Tensor headRows(TensorRole role, const Checkpoint& part) const {
        const Engine& engine = runner.engine();
        const HostTensor all = engine.download(engine.rows(tensor(role, part), 0, request.cut.token));
        const std::int64_t n = all.shape[1], d = all.shape[2];
        const auto begin = all.data.begin() + request.kvHead.value * n * d;
        return engine.upload({{1, n, d}, std::vector<float>(begin, begin + n * d), all.stored});
    }

    RunRequest paneRun() const {
        if (request.panes.empty()) return {};
        RunRequest run = resolvePane(request.shownPane());
        run.measure = false;
        run.recordSteps = true;
        return run;
    }

    static bool isOf(const RunRequest& run, PolicyFamily family) {
        return run.capture && !run.recorded && familyOf(run.policy.policy) == family;
    }

    void followPolicy(const std::string& picture) {
        const RunRequest run = paneRun();
        const bool streams = isOf(run, PolicyFamily::Clusters), centres = isOf(run, PolicyFamily::Centres);
        if (!streams && !(centres && (picture == "overview" || picture == "sizes")))
            throw Error({centres ? "k-center has neither a stream of births nor reservoirs"
                                 : "this picture shows SubGen's clusters, and the active pane has none",
                         "",
                         centres ? "Choose SubGen (streaming) in the pane, or the pictures \"Overview\", "
                                   "\"Sizes\" and \"Radius against k\""
                                 : "Choose SubGen or SubGen k-center in the pane; the pictures \"m against "
                                   "δ\" and \"Radius against k\" need no policy"});
        const auto result = runner.run(run, checkpoint.part(0, 0.7));
        if (result->simulated) // in blocks the log is of the last block alone, whose rows are not the prompt's tokens
            throw Error(
                {"in prompt blocks " + policyById(run.policy.policy).card().name + " has no walk over the whole prompt",
                 "", "Set its prompt block and decode tokens to 0"});
        if (const auto log = std::dynamic_pointer_cast<const SubgenLog>(result->log))
            m_data.stream = log->heads[head()];
        if (const auto log = std::dynamic_pointer_cast<const KCenterLog>(result->log))
            m_data.centres = log->heads[head()];
        if (!m_data.stream && !m_data.centres)
            throw Error(
                {"this run of the pane recorded no clusters", "", "Choose SubGen or SubGen k-center in the pane"});
        project();
        if (m_data.centres) cover();
    }

    void project() {
        const Tensor keys = headRows(TensorRole::Keys, checkpoint);
        const int components = std::min<int>(2, static_cast<int>(std::min(keys.size(1), keys.size(2))));
        const PrincipalAxes axes = runner.engine().principalAxes(keys, 0, components, checkpoint.part(0.7, 0.9));
        m_data.points = runner.engine().project(keys, 0, axes);
        for (std::size_t c = 0; c < axes.explainedVariance.size() && c < 2; ++c)
            m_data.explained[c] = axes.explainedVariance[c];
    }

    /// With the pane's k-center if it has one, else with the policy's defaults; over the whole prompt at once.
    void cover() {
        if (m_data.centres && std::ssize(m_data.centres->order) >= kMostCentres) { // the pane's own walk is long enough
            m_data.coverOrder = m_data.centres->order;
            m_data.coverRadius = m_data.centres->radius;
            return;
        }
        RunRequest run = paneRun();
        if (!isOf(run, PolicyFamily::Centres)) {
            run = request.loggedRun(PolicySpec::parse(firstOf(PolicyFamily::Centres)));
            run.policy.values.setText("recent", "0"); // every token counts
        }
        run.policy.values.reset("prompt_block");
        run.policy.values.reset("decode_tokens");
        const std::int64_t budget =
            std::min<std::int64_t>(request.cut.token, kMostCentres + run.policy.values.integer("recent"));
        run.budget = {Budget::Unit::Tokens, static_cast<double>(budget)};
        const auto result = runner.run(run, checkpoint.part(0.9, 1));
        const auto log = std::dynamic_pointer_cast<const KCenterLog>(result->log);
        if (!log) return;
        m_data.coverOrder = log->heads[head()].order;
        m_data.coverRadius = log->heads[head()].radius;
    }

    void countOverRadii() {
        const std::pair<TensorRole, const char*> sources[] = {
            {TensorRole::Keys, "keys"}, {TensorRole::KeysPreRope, "keys before RoPE"}, {TensorRole::Values, "values"}};
        m_data.most = kMostClusters;
        m_data.medianRows = std::min(m_data.cut, kSampledRows);
        for (std::size_t i = 0; const auto& [role, name] : sources) {
            const Checkpoint part = checkpoint.step(i++, std::size(sources));
            if (role == TensorRole::KeysPreRope && !request.capture->info().layerInfo(request.layer).hasRope)
                continue; // they are the keys themselves
            try {
                countOne(headRows(role, part), name, part);
            } catch (const Error&) {
                if (role != TensorRole::KeysPreRope) // which a capture need not hold
                    throw;
            }
        }
    }

    void countOne(const Tensor& rows, const std::string& name, const Checkpoint& part) {
        m_data.curves.push_back({name, distanceQuantiles(runner.engine(), rows, 0.5).front(), {}, {}});
        const int steps = static_cast<int>((kLastRadius - kFirstRadius) / kRadiusStep + 1.5);
        for (int step = steps - 1; step >= 0; --step) { // descending radius: each costs more than the one before
            ClusteringData::RadiusCurve& curve = m_data.curves.back();
            const double share = kFirstRadius + kRadiusStep * step, radius = share * curve.median;
            const auto clusters = runner.engine().streamClusters(
                rows, std::span(&radius, 1), kMostClusters,
                part.step(static_cast<std::size_t>(steps - 1 - step), static_cast<std::size_t>(steps)));
            curve.radius.insert(curve.radius.begin(), share);
            curve.clusters.insert(curve.clusters.begin(),
                                  clusters.front().full ? 0 : std::ssize(clusters.front().representatives));
            deliver(m_data);
            if (clusters.front().full) break;
        }
    }

    ClusteringData m_data;
};

} // namespace

ViewDataMaker clusteringMaker() {
    using enum DataScope;
    return {"clustering", {Layer, KvHead, Cut, ActivePane, Seed}, runMaker<ClusteringMaker>};
}

} // namespace kvscope
