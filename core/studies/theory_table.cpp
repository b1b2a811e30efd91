// Gathers the inputs of the theorems from a run: norms from the tensors, parameters from the request, discrepancies,
// radii and distortions from the step log, errors from the measures. core/metrics/theory.h has the formulas.
#include "core/studies/theory_table.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/metrics/geometry.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/compactor/leverage_features.h"
#include "core/policies/policy.h"
#include "core/policies/subgen/subgen_log.h"
#include "core/run/attention_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numbers>

namespace kvscope {

namespace {

using Kind = TheoryRow::Kind;

/// What was measured against a bound: mean, largest, how many, and the share above the bound.
struct Measured {
    double mean = NAN, worst = NAN;
    std::int64_t count = 0;
    double beyond = NAN;
};

/// A per-query measure over the query heads of a KV head, NaN left out.
Measured overGroup(const MeasureValues& values, const std::vector<std::int32_t>& gqaGroupOf, int kvHead, double bound) {
    std::vector<double> all;
    const std::int64_t w = values.perQuery.shape[1];
    for (std::size_t q = 0; q < gqaGroupOf.size(); ++q)
        for (std::int64_t j = 0; gqaGroupOf[q] == kvHead && j < w; ++j)
            if (const float x = values.perQuery.data[q * static_cast<std::size_t>(w) + static_cast<std::size_t>(j)];
                !std::isnan(x))
                all.push_back(static_cast<double>(x));
    if (all.empty()) return {};
    const auto above = std::ranges::count_if(all, [&](double x) { return x > bound; });
    return {meanOfNumbers(all), *std::ranges::max_element(all), std::ssize(all),
            static_cast<double>(above) / static_cast<double>(all.size())};
}

/// The rows of one layer under construction.
class TableOfLayer {
public:
    TableOfLayer(const LayerRunner& runner, const RunRequest& request, const TheoryAsked& asked,
                 const Checkpoint& checkpoint)
        : m_runner(runner), m_asked(asked), m_checkpoint(checkpoint), m_family(familyOf(request.policy.policy)) {
        RunRequest logged = request;
        logged.measure = true;
        logged.recordSteps = true;
        m_result = runner.run(logged, checkpoint.part(0, 0.6));
        requireFidelity(*m_result);
        m_norms = theoryNorms(runner, *m_result, checkpoint.part(0.6, 0.7));
    }

    TheoryTable made() {
        const Checkpoint part = m_checkpoint.part(0.7, 1);
        if (m_family == PolicyFamily::BalanceRounds || m_family == PolicyFamily::BalanceTree)
            balance(part);
        else if (m_family == PolicyFamily::Clusters)
            subgen(part);
        else if (m_family == PolicyFamily::KeyDiff)
            keydiff(part);
        else
            compactor(part);
        std::ranges::stable_sort(m_rows, {}, &TheoryRow::kvHead);
        return {m_result, std::move(m_rows)};
    }

private:
    const ParameterValues& values() const { return m_result->request.policy.values; }
    int heads() const { return static_cast<int>(m_norms.size()); }
    const TheoryNorms& norms(int head) const { return m_norms[head]; }
    const std::vector<std::int32_t>& gqaGroupOf() const {
        return m_result->request.capture->info().layerInfo(m_result->request.layer).gqaGroupOf;
    }
    double parameter(const char* id) const { return values().has(id) ? values().real(id) : NAN; }
    /// NaN where −1 leaves the parameter to the budget.
    double setByHand(const char* id) const { return parameter(id) < 0 ? NAN : parameter(id); }
    /// Number of rows that the policy drew, repeated ones included; of tokens kept if it draws none.
    double rowsTaken(int head) const {
        const auto log = std::dynamic_pointer_cast<const LeverageLog>(m_result->log);
        return static_cast<double>(log && !log->draws.empty() ? log->draws[head].size()
                                                              : m_result->selection.heads[head].kept.size());
    }

    TheoryTargets targets() const { return {.epsilon = m_asked.epsilon, .delta = m_asked.delta}; }

    /// The requirements of the theorems whose names begin with `paper`.
    void addDemands(int head, const TheoryTargets& targets, const std::string& paper) {
        const std::vector<TheoryDemand> demands = theoryDemands(norms(head), targets);
        for (std::size_t i = 0; i < demands.size(); ++i) {
            const TheoryDemand& demand = demands[i];
            if (!demand.theorem.starts_with(paper)) continue;
            TheoryRow row{.kind = demand.isSetting && demand.demanded > 0 ? Kind::AtLeast : Kind::Describes,
                          .theorem = demand.theorem,
                          .quantity = demand.quantity,
                          .formula = demand.formula,
                          .kvHead = head,
                          .demanded = demand.demanded,
                          .set = demand.set,
                          .overEpsilon = demandOverEpsilon(head, targets, i),
                          .unit = demand.unit,
                          .caveat = demand.caveat};
            if (demand.quantity == "levels T")
                row.set = setByHand(m_family == PolicyFamily::BalanceRounds ? "rounds" : "levels");
            if (demand.quantity == "c") {
                const std::string steps = values().has("c") ? values().choice("steps") : "gain";
                row.set = steps == "manual" ? parameter("c") : NAN;
                if (steps != "manual")
                    row.caveat = steps == "theory" ? "each walk takes 30 ln(m/δ) at its own m and δ"
                                                   : "this walk leans by γ and has no c";
            }
            if (demand.quantity == "sampled rows k") row.set = rowsTaken(head);
            m_rows.push_back(std::move(row));
        }
    }

    std::vector<double> demandOverEpsilon(int head, TheoryTargets targets, std::size_t demand) const {
        return overEpsilon([&](double epsilon) {
            targets.epsilon = epsilon;
            return theoryDemands(norms(head), targets)[demand].demanded;
        });
    }

    /// Empty where epsilon does not occur.
    template <class Demand> static std::vector<double> overEpsilon(const Demand& demandedAt) {
        std::vector<double> demanded;
        for (const double epsilon : theoryEpsilons()) demanded.push_back(demandedAt(epsilon));
        const bool constant = std::isnan(demanded.front()) || std::adjacent_find(demanded.begin(), demanded.end(),
                                                                                 std::not_equal_to{}) == demanded.end();
        return constant ? std::vector<double>{} : demanded;
    }

    TheoryRow& addBound(int head, std::string theorem, std::string quantity, std::string formula, double bound,
                        Measured measured) {
        return m_rows.emplace_back(TheoryRow{.kind = Kind::Bound,
                                             .theorem = std::move(theorem),
                                             .quantity = std::move(quantity),
                                             .formula = std::move(formula),
                                             .kvHead = head,
                                             .demanded = bound,
                                             .measured = measured.mean,
                                             .worst = measured.worst,
                                             .count = measured.count,
                                             .beyond = measured.beyond});
    }

    /// Error bounds that hold for every query, each with probability 1 - mayFail.
    void addErrors(const char* measure, const char* theorem, const char* quantity, double mayFail,
                   const std::string& ifBroken, const Checkpoint& checkpoint) {
        const std::string id = measure;
        const auto measured = m_runner.measure(*m_result, std::span(&id, 1), checkpoint);
        for (int head = 0; head < heads(); ++head) {
            TheoryRow& row = addBound(head, theorem, quantity, measureById(id).help, m_asked.epsilon,
                                      overGroup(measured.front(), gqaGroupOf(), head, m_asked.epsilon));
            row.overEpsilon = theoryEpsilons();
            row.mayFail = mayFail;
            row.ifBroken = ifBroken;
        }
    }

    void balance(const Checkpoint& checkpoint) {
        const bool streaming = m_family == PolicyFamily::BalanceTree;
        TheoryTargets wanted = targets();
        if (streaming) wanted.batch = parameter("batch");
        for (int head = 0; head < heads(); ++head) addDemands(head, wanted, "BalanceKV");
        if (streaming)
            for (TheoryRow& row : discrepancyRows(m_runner, *m_result, m_asked.delta, checkpoint.part(0, 0.6)))
                m_rows.push_back(std::move(row));
        addErrors("eps_f", "BalanceKV (2)", "error, Frobenius", m_asked.delta,
                  streaming ? "nothing: BalanceKV Thm 3.1 hides its constants"
                            : "nothing: BalanceKV Thm 3.1 is about the streaming form",
                  checkpoint.part(0.6, 1));
        for (TheoryRow& row : m_rows) {
            if (!streaming && row.theorem == "BalanceKV Thm 3.4") {
                row.kind = Kind::Describes;
                row.caveat = "about MergeAndReduce, not the blocks of this form; " + row.caveat;
            }
            const std::string nothing = nothingBalanced(*m_result, row.kvHead);
            if (nothing.empty()) continue;
            row.caveat = nothing;
            if (row.kind != Kind::Bound) continue;
            row.kind = Kind::Describes;
            row.formula = "no statement: " + nothing;
        }
    }

    void subgen(const Checkpoint& checkpoint) {
        const auto log = std::dynamic_pointer_cast<const SubgenLog>(m_result->log);
        for (int head = 0; log && head < heads(); ++head) {
            TheoryTargets wanted = targets();
            wanted.clusterDiameter = log->heads[head].delta;
            wanted.clusterSlots = parameter("cluster_slots");
            wanted.reservoir = parameter("value_slots");
            addDemands(head, wanted, "SubGen");
        }
        addErrors("eps_op", "SubGen (3)", "error, operator norm", 0.01,
                  "nothing: SubGen Thm 1 hides the constants of t and s", checkpoint);
    }

    /// A separate leverage run that keeps `tokens` tokens of every head.
    std::shared_ptr<const LeverageLog> leverageRun(const std::string& variant, double tokens,
                                                   const Checkpoint& checkpoint) const {
        RunRequest run = m_result->request;
        run.budget = {Budget::Unit::Tokens, tokens, {}};
        run.policy = PolicySpec::parse(firstOf(PolicyFamily::Leverage) + ":" + variant);
        run.measure = false;
        run.recordSteps = true;
        return std::dynamic_pointer_cast<const LeverageLog>(m_runner.run(run, checkpoint)->log);
    }

    void compactor(const Checkpoint& checkpoint) {
        const auto exact = leverageRun("exact", 1, checkpoint.part(0, 0.5));
        std::map<double, std::shared_ptr<const LeverageLog>> drawings; // by their number of rows
        const auto used = std::dynamic_pointer_cast<const LeverageLog>(m_result->log);
        const bool sketched = values().choice("sketch") != "none" && used &&
                              used->leverage.shape == exact->leverage.shape; // false in blocks
        for (int head = 0; head < heads(); ++head) {
            TheoryTargets wanted = targets();
            if (sketched) wanted.sketch = std::min(parameter("sketch_size"), static_cast<double>(norms(head).keyDim));
            addDemands(head, wanted, "Compactor");
            std::shared_ptr<const LeverageLog>& drawn = drawings[rowsTaken(head)];
            if (!drawn && rowsTaken(head) > 0)
                drawn = leverageRun("sampling", rowsTaken(head), checkpoint.part(0.5, 1));
            if (drawn && !drawn->distortion.empty()) {
                TheoryRow& row = addBound(head, "Compactor Thm 1", "distortion of drawn rows",
                                          "‖(KᵀK)^-½ K̂ᵀK̂ (KᵀK)^-½ − I‖₂ ≤ ε, as many draws as tokens are kept",
                                          m_asked.epsilon, {drawn->distortion[head], drawn->distortion[head]});
                row.overEpsilon = theoryEpsilons();
                row.mayFail = m_asked.delta;
                row.caveat = "one draw; the theorem speaks of at least the sampled rows k that it asks for";
                row.ifBroken = "nothing: the theorem hides its constant C";
            }
            if (sketched && isPlainLeverage(values())) addRatio(head, wanted.sketch, *exact, *used);
        }
    }

    /// Compactor's Theorem 2: the largest factor between sketched and exact leverage, in either direction.
    void addRatio(int head, double columns, const LeverageLog& exact, const LeverageLog& sketched) {
        const std::int64_t width = exact.leverage.shape[1];
        const float* spectrum = exact.spectrum.data.data() + head * exact.spectrum.shape[1];
        const std::int64_t rank = exact.rank[static_cast<std::size_t>(head)];
        const float *x = exact.leverage.data.data() + head * width, *y = sketched.leverage.data.data() + head * width;
        double worst = 1;
        for (std::int64_t i = 0; i < width; ++i)
            if (x[i] > 0 && y[i] > 0)
                worst = std::max({worst, double{x[i]} / double{y[i]}, double{y[i]} / double{x[i]}});
        if (rank == 0 || m_asked.epsilon >= 1) return;
        const auto most = [&](double epsilon) {
            return leverageRatioBounds(static_cast<double>(spectrum[0]), static_cast<double>(spectrum[rank - 1]),
                                       epsilon)
                .high;
        };
        TheoryRow& row = addBound(head, "Compactor Thm 2", "sketched over exact leverage",
                                  "at most κ (1 + ε)/(1 − ε), κ = (s_max/s_min)², or its inverse",
                                  most(m_asked.epsilon), {worst, worst});
        const double asked = sketchColumnsDemanded(static_cast<double>(rank), m_asked.epsilon, m_asked.delta);
        row.overEpsilon = overEpsilon(most);
        row.mayFail = m_asked.delta;
        if (columns >= static_cast<double>(norms(head).keyDim))
            row.caveat = "a sketch as wide as the keys is exact: the ratio is 1 by construction";
        else if (columns < asked)
            row.caveat = "the theorem speaks of wider sketches only";
        row.ifBroken = columns < asked ? "nothing: the sketch has fewer columns than the theorem asks for"
                                       : "a contradiction of the theorem, whose constants are explicit";
    }

    /// The points of all query heads of a GQA group, over the evaluation queries.
    std::vector<TheoremPoint> pointsOf(int head, const Checkpoint& checkpoint) const {
        const RunRequest& run = m_result->request;
        const LayerInfo& layer = run.capture->info().layerInfo(run.layer);
        const Fidelity& fidelity = requireFidelity(*m_result);
        const std::int64_t firstRow = fidelity.firstQuery - (run.capture->info().numTokens - layer.queryCount);
        const Engine& engine = m_runner.engine();
        TheoremInput in;
        in.queries = engine.rows(m_runner.tensor(run.capture, run.layer, TensorRole::Queries, checkpoint), firstRow,
                                 firstRow + fidelity.queryCount);
        in.keys = m_runner.tensor(run.capture, run.layer, TensorRole::Keys, checkpoint);
        in.firstQuery = fidelity.firstQuery;
        in.meanOver = run.cut.token;
        in.rule = attentionRuleOf(layer);
        std::vector<TheoremPoint> points;
        for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q) {
            if (layer.gqaGroupOf[q] != head) continue;
            in.queryHead = static_cast<std::int32_t>(q);
            const auto more = theoremPoints(engine, in, checkpoint);
            points.insert(points.end(), more.begin(), more.end());
        }
        return points;
    }

    /// KeyDiff's Theorem C.1 as an angle, at the evaluation query closest to the bound.
    void addLeastCosine(int head, const Checkpoint& checkpoint) {
        constexpr double kDegrees = 180 / std::numbers::pi, kVacuousAngle = 170;
        const auto angle = [](double cosine) { return kDegrees * std::acos(std::clamp(cosine, -1.0, 1.0)); };
        TheoryRow row{.kind = Kind::Describes,
                      .theorem = "KeyDiff Thm C.1",
                      .quantity = "angle of k* and q",
                      .formula = "no statement: the bound is 180 degrees for every evaluation query",
                      .kvHead = head,
                      .demanded = NAN};
        const std::vector<TheoremPoint> points = pointsOf(head, checkpoint);
        std::int64_t beyond = 0;
        for (const TheoremPoint& point : points) {
            const double most = angle(point.leastCosKey), got = angle(point.cosKey);
            if (point.leastCosKey <= -1) continue;
            ++row.count;
            beyond += got > most ? 1 : 0;
            if (row.kind == Kind::Bound && most / got >= row.margin()) continue;
            row.kind = Kind::Bound;
            row.formula = "arccos((ln(n/(n + 1)) − ln(1 − w)) / (2 M) − 1) degrees, w = the largest weight; the query "
                          "with the least room";
            row.demanded = most;
            row.measured = row.worst = got;
            row.unit = "°";
        }
        if (row.kind == Kind::Bound) {
            row.beyond = static_cast<double>(beyond) / static_cast<double>(row.count);
            row.mayFail = 0;
            row.caveat = row.demanded > kVacuousAngle
                             ? fmt::format("vacuous: excludes only angles above {:.4g}°; M is taken as 1 at least (K6)",
                                           row.demanded)
                             : "M is taken as 1 at least (K6)";
            row.ifBroken = "possible only where cos(k*, q) < 0: a step of the proof needs it positive (K6)";
        }
        if (const auto all = requireFidelity(*m_result).queryCount, most = TheoremInput{}.most; all > most)
            row.caveat +=
                fmt::format("{}the last {} of {} queries of a head", row.caveat.empty() ? "" : "; ", most, all);
        m_rows.push_back(std::move(row));
    }

    /// KeyDiff's Theorem 3.2 with q = the mean query of each query head (cos_means) and k* = the key farthest in angle
    /// from the mean key.
    void keydiff(const Checkpoint& checkpoint) {
        const std::vector<std::string> ids = {"cos_means", "cos_distinct"};
        const auto measured = m_runner.measure(*m_result, ids, checkpoint);
        const RunRequest& run = m_result->request;
        const Engine& engine = m_runner.engine();
        const Tensor keys =
            engine.rows(m_runner.tensor(run.capture, run.layer, TensorRole::Keys, checkpoint), 0, run.cut.token);
        const HostTensor cosines = cosinesToMean(engine, keys, checkpoint);
        for (int head = 0; head < heads(); ++head) {
            const auto begin = cosines.data.begin() + head * cosines.shape[1];
            const auto farthest = static_cast<double>(*std::min_element(begin, begin + cosines.shape[1]));
            double bound = NAN;
            for (std::size_t q = 0; q < gqaGroupOf().size(); ++q) {
                const double a = measured[0].perHead[q], b = measured[1].perHead[q];
                if (gqaGroupOf()[q] == head && a < 0 && b > 0) bound = std::fmin(bound, largestCosineToMean(a, b));
            }
            const bool speaks = !std::isnan(bound);
            m_rows.push_back(
                {.kind = speaks ? Kind::Bound : Kind::Describes,
                 .theorem = "KeyDiff Thm 3.2",
                 .quantity = "cos(k̄, k*)",
                 .formula = speaks ? "1 − (a − b)²/2 with a = cos(k̄, q̄) < 0 < b = cos(k*, q̄)"
                                   : "no statement: needs cos(k̄, q̄) < 0 < cos(k*, q̄)",
                 .kvHead = head,
                 .demanded = bound,
                 .measured = farthest,
                 .worst = farthest,
                 .isSigned = true,
                 .caveat = speaks ? "for the mean query; the margin is 1 plus the difference" : "",
                 .ifBroken = speaks ? "an error of this program: the inequality holds for all vectors" : ""});
            addLeastCosine(head, checkpoint);
        }
    }

    const LayerRunner& m_runner;
    const TheoryAsked m_asked;
    const Checkpoint& m_checkpoint;
    PolicyFamily m_family;
    std::shared_ptr<const RunResult> m_result;
    std::vector<TheoryNorms> m_norms;
    std::vector<TheoryRow> m_rows;
};

void checkAsked(const RunRequest& request, const TheoryAsked& asked) {
    const auto isKnown = [](PolicyFamily family) {
        return family != PolicyFamily::None && family != PolicyFamily::Centres;
    };
    if (!(asked.epsilon > 0) || !(asked.delta > 0 && asked.delta < 1))
        throw Error({"epsilon must be above 0 and delta between 0 and 1", "epsilon, delta", "Try 0.5 and 0.01"});
    if (request.recorded || !isKnown(familyOf(request.policy.policy))) {
        std::vector<std::string> known;
        for (const Policy* policy : allPolicies())
            if (isKnown(policy->card().family))
                known.push_back(fmt::format("{} ({})", policy->card().name, policy->card().id));
        const PolicyCard asking =
            request.recorded ? PolicyCard{.name = "a recorded list"} : policyById(request.policy.policy).card();
        throw Error({"no theorem of the papers speaks about " + asking.name,
                     asking.id.empty() ? "policy" : "policy " + asking.id,
                     fmt::format("Choose one of {}", fmt::join(known, ", "))});
    }
}

} // namespace

TheoryTable theoryTable(const LayerRunner& runner, const RunRequest& request, const TheoryAsked& asked,
                        const Checkpoint& checkpoint) {
    checkAsked(request, asked);
    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    if (const bool caps = layer.softcap > 0; caps || !layer.sinks.empty())
        throw Error({fmt::format("the theorems are about plain softmax of dot products, and layer {} {}",
                                 request.layer.value, caps ? "caps its logits" : "has attention sinks"),
                     fmt::format("layers/{:02d}/{}", request.layer.value, caps ? "softcap" : "sinks"),
                     "Use the measures, which include the cap and the sinks", request.capture->info().path});
    return TableOfLayer(runner, request, asked, checkpoint).made();
}

} // namespace kvscope
