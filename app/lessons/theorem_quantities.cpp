// Numbers about the papers' theorems and calibration on the run that a lesson shows. Halvings are computed for every
// evaluation query by plain loops over one node.
#include "app/lessons/theorem_quantities.h"

#include "core/calibration/calibration.h"
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/policies/balance/balance_errors.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "core/run/attention_rule.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

namespace kvscope {

namespace {

constexpr double kEpsilon = 0.5, kDelta = 0.01, kTau = 0.95;

const BalanceNode& firstHalving(const LessonAsked& asked, const BalanceLog& log) {
    const BalanceTree* fullest = nullptr;
    if (log.stream)
        for (const BalanceTree& tree : log.stream->trees)
            if (tree.kvHead == asked.request.kvHead.value && tree.numerator && !tree.nodes.empty() &&
                (!fullest || tree.rows.size() > fullest->rows.size()))
                fullest = &tree;
    if (!fullest || fullest->nodes.front().empty())
        throw Error({"this pane has halved no values", "", "Open the lesson again"});
    return fullest->nodes.front().front();
}

TheoryNorms normsOf(const LessonAsked& asked) {
    return theoryNorms(asked.runner, *runOf(asked), asked.checkpoint)[headOf(asked)];
}

double demandAt(const TheoryNorms& norms, std::string_view quantity, double diameter = 1) {
    TheoryTargets targets;
    targets.epsilon = kEpsilon;
    targets.delta = kDelta;
    targets.clusterDiameter = diameter;
    for (const TheoryDemand& demand : theoryDemands(norms, targets))
        if (demand.quantity == quantity) return demand.demanded;
    throw Error({"no theorem asks for " + std::string(quantity)});
}

double radiusOf(const LessonAsked& asked) { return logOf<SubgenLog>(runOf(asked, true))->heads[headOf(asked)].delta; }

Calibration caseStudyFit(const LessonAsked& asked) {
    const PolicySpec policy = runOf(asked)->request.policy;
    const auto folder = std::filesystem::path(asked.request.capture->info().path).parent_path();
    const std::string table = (folder / "case_study" / "calibration.csv").string();
    return calibrate(policy, readTriplesCsv(table, policy.policy, policy.variant), kTau, kCalibrationWeight, 0);
}

} // namespace

Halving halvingOf(const LessonAsked& asked) {
    const auto result = runOf(asked, true);
    const auto log = logOf<BalanceLog>(result);
    const BalanceNode& node = firstHalving(asked, *log);
    const Engine& engine = asked.runner.engine();
    const HostTensor keys = downloadHead(engine, tensorOf(asked, TensorRole::Keys), asked.request.kvHead.value);
    QuerySight sight{{}, downloadHead(engine, tensorOf(asked, TensorRole::Values), asked.request.kvHead.value)};
    Halving halving;
    double count = 0;
    const Tensor queries = evaluationQueries(asked, requireFidelity(*result));
    for (const std::size_t head : queryHeadsOf(asked)) {
        const HostTensor rows = downloadHead(engine, queries, static_cast<std::int64_t>(head));
        for (std::int64_t j = 0; j < rows.shape[0]; ++j, ++count) {
            asked.checkpoint.stopPoint();
            const std::span query(rows.data.data() + j * rows.shape[1], static_cast<std::size_t>(rows.shape[1]));
            sight.logits = queryLogits(query, keys, attentionRuleOf(layerOf(asked)));
            const double error = halvingDiscrepancy(node, true, sight);
            halving.mean += error;
            halving.worst = std::max(halving.worst, error);
        }
    }
    halving.mean /= count;
    return halving;
}

TheoryRow discrepancyOf(const LessonAsked& asked) {
    for (TheoryRow& row : discrepancyRows(asked.runner, *runOf(asked, true), kDelta, asked.checkpoint))
        if (row.kvHead == asked.request.kvHead.value) return std::move(row);
    throw Error({"this pane has walked no pairs", "", "Open the lesson again"});
}

double distortionOf(const LessonAsked& asked, bool drawn) {
    constexpr std::uint64_t kSeeds = 10;
    double sum = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        PaneRequest pane = paneOf(asked);
        pane.run.seed += seed;
        ViewDataRequest at = asked.request;
        at.panes[asked.pane] = pane;
        const auto log = logOf<LeverageLog>(runOf({asked.runner, at, asked.pane, asked.checkpoint}, true));
        const std::vector<double>& distortion = drawn ? log->distortion : log->topDistortion;
        if (distortion.empty()) throw Error({"this pane's policy draws no rows", "", "Open the lesson again"});
        sum += distortion[headOf(asked)];
    }
    return sum / static_cast<double>(kSeeds);
}

double demandedRows(const LessonAsked& asked) { return demandAt(normsOf(asked), "sampled rows k"); }

double demandedSlots(const LessonAsked& asked) { return demandAt(normsOf(asked), "slots t", radiusOf(asked)); }

double leastSubgenMemory(const LessonAsked& asked) {
    const double delta = radiusOf(asked);
    const TheoryNorms norms = normsOf(asked);
    const Tensor keys = rowsBeforeCut(asked, TensorRole::Keys);
    double least = std::numeric_limits<double>::infinity();
    for (int quarters = 0; quarters <= 8; ++quarters) {
        const double radius = delta * quarters / 4;
        const std::vector<double> radii(static_cast<std::size_t>(keys.size(0)), radius);
        const auto clusters = asked.runner.engine().streamClusters(keys, radii, keys.size(1), asked.checkpoint);
        const auto m = static_cast<double>(clusters[headOf(asked)].representatives.size());
        least = std::min(least, m * demandAt(norms, "slots t", radius) + demandAt(norms, "reservoir s"));
    }
    return least;
}

double retentionNeededBy(const LessonAsked& asked, std::string_view kind) {
    std::vector<double> needed;
    for (const CalibratedContext& context : caseStudyFit(asked).contexts)
        if (context.name.starts_with(kind)) needed.push_back(context.retention);
    return meanOfNumbers(needed);
}

double fitResidual(const LessonAsked& asked) { return misfitOf(caseStudyFit(asked)).rms; }

} // namespace kvscope
