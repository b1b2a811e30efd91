// Curves over budgets or over a parameter: the same runs as a sweep makes, for the policies that are on the screen. A
// policy that draws random numbers runs with several seeds, whose spread is drawn as a band. With several captures each
// gives a curve of its own, and the curve of the pane is their mean.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/further_captures.h"
#include "app/study/makers/measured_heads.h"
#include "app/study/makers/phase_axis.h"
#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/metrics/averages.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"
#include "views/common/view_options.h"
#include "views/curves/curves_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

namespace kvscope {

namespace {

constexpr std::size_t kValues = 9; // of a parameter, where the option lists none

/// The fractions kept along the axis, ascending: those that "budget=0.1,0.3" lists, else a grid.
std::vector<double> budgetsOf(const ViewDataRequest& request) {
    const std::string& typed = request.options.text("vary");
    if (!typed.starts_with("budget=")) return {kBudgetGrid.begin(), kBudgetGrid.end()};
    const PhaseAxis axis = phaseAxisOf(typed, request.shownPane().run.policy, kValues, request.cut.token);
    for (const std::string& text : axis.texts)
        if (Budget::parse(text).unit != Budget::Unit::Fraction)
            throw Error({"the budget '" + text + "' is no share of the tokens", "option vary of the curves",
                         "Write shares: budget=0.1,0.3"});
    std::vector<double> budgets = axis.numbers;
    std::ranges::sort(budgets);
    return budgets;
}

bool hasParameter(const PaneRequest& pane, const std::string& id) {
    return pane.recordedPath.empty() && pane.run.policy.values.has(id);
}

/// The axis that `typed` names, for the first policy that has the parameter; the active pane's policy comes before the
/// others.
PhaseAxis axisFor(const ViewDataRequest& request, const std::string& typed) {
    const std::string id = typed.substr(0, typed.find('='));
    const PaneRequest* owner = &request.shownPane();
    for (const PaneRequest& pane : request.panes)
        if (!hasParameter(*owner, id) && hasParameter(pane, id)) owner = &pane;
    if (!owner->recordedPath.empty())
        throw Error({"a recorded list has no parameters to vary", "curves", "Add a pane with a policy"});
    PhaseAxis axis = phaseAxisOf(typed, owner->run.policy, kValues, request.cut.token); // throws where nobody has it
    if (!axis.isNumeric)
        throw Error({"'" + id + "' is a choice, and a curve needs numbers", "curves", "Show it in the phase map"});
    return axis;
}

/// The means over captures where all have a point, with the 95 % interval of the mean. A capture whose runs go on takes
/// part with the points that it has.
std::vector<CurvePoint> meanOf(const std::vector<CaptureCurve>& captures, bool lastIsRunning) {
    if (captures.size() == 1) return captures.front().points;
    std::map<double, std::vector<const CurvePoint*>> byAsked;
    for (const CaptureCurve& one : captures)
        for (const CurvePoint& point : one.points) byAsked[point.asked].push_back(&point);
    std::vector<CurvePoint> means;
    for (const auto& [asked, points] : byAsked) {
        if (points.size() + (lastIsRunning ? 1 : 0) < captures.size()) continue;
        CurvePoint mean{.asked = asked, .setting = points.front()->setting, .seeds = points.front()->seeds};
        std::vector<Sample> samples;
        for (const CurvePoint* point : points) {
            samples.push_back(Sample::of(SampleLevel::Captures, std::ssize(samples), point->mean));
            mean.retention += point->retention / static_cast<double>(points.size());
            mean.bytes += point->bytes / static_cast<double>(points.size());
            mean.balancedNothing |= point->balancedNothing;
        }
        const Summary summary = meanByLevels(samples).summary;
        const double half = summary.count > 1 ? summary.halfInterval() : 0;
        mean.mean = summary.mean;
        mean.low = summary.mean - half;
        mean.high = summary.mean + half;
        means.push_back(mean);
    }
    return means;
}

class CurveMaker : ViewDataWork {
public:
    explicit CurveMaker(const ViewDataWork& work)
        : ViewDataWork(work), m_measure(measureById(request.options.choice("measure"))), m_head(measuredHead(request)),
          m_captures(capturesWith(request.options.text("captures"), runner, request, checkpoint)),
          m_budgets(budgetsOf(request)) {
        m_data.measure = m_measure.id;
        if (const std::string varied = request.options.text("vary");
            !varied.empty() && varied != "budget" && !varied.starts_with("budget=")) {
            m_axis = axisFor(request, varied);
            m_data.parameter = m_axis.id;
            m_data.title = m_axis.title;
        }
        m_data.head = m_head;
        m_data.where = measuredWords(m_head);
        m_data.captures = m_captures.size();
        std::set<std::string> models;
        for (const auto& capture : m_captures) models.insert(capture->info().modelId);
        m_data.models = models.size();
        for (std::size_t pane = 0; pane < request.panes.size(); ++pane)
            for (std::size_t capture = 0; capture < capturesOf(request.panes[pane]); ++capture)
                m_plans.push_back(planOf(pane, capture));
        for (const Plan& plan : m_plans) m_total += static_cast<double>(plan.points.size());
    }

    ViewDataMaker::Value run() {
        for (const Plan& plan : m_plans) addCapture(plan);
        return std::make_shared<const CurvesData>(m_data);
    }

private:
    /// The runs of a pane on one capture: budget by budget or value by value, and each with one seed after another.
    struct Plan {
        std::size_t pane = 0, capture = 0, seeds = 1;
        bool varies = false; ///< the parameter varies
        std::vector<GridPoint> points = {};
    };

    /// A recorded list belongs to the capture that it was made on, as do imported scores.
    std::size_t capturesOf(const PaneRequest& pane) const {
        return pane.recordedPath.empty() && !readsImportedScores(pane.run.policy) ? m_captures.size() : 1;
    }

    Plan planOf(std::size_t index, std::size_t capture) const {
        const PaneRequest& pane = request.panes[index];
        const bool noParameter = m_data.parameter.empty();
        Plan plan{index, capture, 1, !noParameter && hasParameter(pane, m_data.parameter)};
        const PolicyCard* card = // null for a recorded list
            pane.recordedPath.empty() ? &policyById(pane.run.policy.policy).card() : nullptr;
        const bool draws = card && card->usesSeed && !pane.run.random; // a file gives every seed the same numbers
        if (draws) plan.seeds = static_cast<std::size_t>(request.options.integer("seeds"));
        const auto add = [&](int group, const std::function<void(RunRequest&)>& change) {
            for (std::size_t seed = 0; seed < plan.seeds; ++seed)
                plan.points.push_back(gridPoint(
                    [&] {
                        RunRequest run = onCapture(pane, m_captures[capture]);
                        run.measure = true;
                        run.seed = plan.seeds == 1 ? run.seed : seed;
                        change(run);
                        return run;
                    },
                    group));
        };
        // Budgets are one group: what refuses one refuses the others. Another value of a parameter may be accepted.
        for (std::size_t i = 0; plan.varies && i < m_axis.texts.size(); ++i)
            add(static_cast<int>(i), [&](RunRequest& run) { run.policy.values.setText(m_axis.id, m_axis.texts[i]); });
        for (std::size_t i = 0; noParameter && card && card->usesBudget && i < m_budgets.size(); ++i)
            add(0, [&](RunRequest& run) { run.budget = {Budget::Unit::Fraction, m_budgets[i]}; });
        if (plan.points.empty()) add(0, [](RunRequest&) {});
        return plan;
    }

    Curve& curve() { return m_data.curves.back(); }

    void addCapture(const Plan& plan) {
        const PaneRequest& pane = request.panes[plan.pane];
        if (plan.capture == 0) {
            PaneName& name = m_data.curves.emplace_back();
            name.letter = static_cast<char>('A' + plan.pane);
            const RunRequest& named = pane.recordedPath.empty() ? pane.run : plan.points.front().run;
            if (named.capture) name = policyIdentityOf(named, plan.pane);
        }
        curve().captures.push_back({m_captures[plan.capture]->info().fileName, {}});
        const auto finished = [&](std::size_t point, const auto& result, const Checkpoint& rest) {
            addRun(plan, point, *result, rest);
        };
        const auto failed = [&](std::size_t, const Error& error) { // also says which of several captures refuses
            curve().error = (m_captures.size() > 1 ? curve().captures.back().capture + ": " : "") + error.what();
        };
        const double before = m_done / m_total;
        m_done += static_cast<double>(plan.points.size());
        runGrid(runner, plan.points, checkpoint.part(before, m_done / m_total), {finished, failed});
        curve().points = meanOf(curve().captures, false);
        if (capturesOf(pane) == 1) curve().captures.clear();
    }

    void addRun(const Plan& plan, std::size_t point, const RunResult& result, const Checkpoint& rest) {
        const double value = meanOverHeads(runner, result, m_measure, m_head, rest);
        const std::size_t setting = point / plan.seeds, seed = point % plan.seeds;
        const auto seeds = static_cast<double>(plan.seeds);
        if (seed == 0) {
            m_point = {.asked = plan.varies ? m_axis.numbers[setting] : result.request.budget.value,
                       .setting = plan.varies ? m_axis.texts[setting] : "",
                       .low = INFINITY,
                       .high = -INFINITY,
                       .seeds = static_cast<int>(plan.seeds)};
            m_samples.clear();
        }
        m_samples.push_back(Sample::of(SampleLevel::Seeds, static_cast<std::int64_t>(seed), value));
        m_point.mean = meanByLevels(m_samples).summary.mean;
        m_point.low = std::min(m_point.low, value);
        m_point.high = std::max(m_point.high, value);
        m_point.retention += keptShareOf(result, m_head) / seeds;
        m_point.bytes += static_cast<double>(storedBytes(result)) / seeds;
        m_point.balancedNothing |= balancedNothing(result);
        curve().simulated |= result.simulated;
        if (seed + 1 < plan.seeds) return;
        curve().captures.back().points.push_back(m_point);
        curve().points = meanOf(curve().captures, true);
        deliver(m_data);
    }

    const MeasureCard& m_measure;
    const std::optional<KvHeadIndex> m_head; ///< none: the whole layer
    const std::vector<std::shared_ptr<const CaptureReader>> m_captures;
    const std::vector<double> m_budgets; ///< where the budget varies
    CurvesData m_data;
    PhaseAxis m_axis; ///< of the parameter that varies
    std::vector<Plan> m_plans;
    double m_done = 0, m_total = 0;
    CurvePoint m_point; ///< over the seeds that have run
    std::vector<Sample> m_samples;
};

/// The panes' budgets when a parameter varies (curves over budgets do not depend on them), and the file stamps of
/// further captures.
std::string detail(const ViewDataRequest& request) {
    std::string texts;
    if (!request.options.text("vary").empty())
        for (const PaneRequest& pane : request.panes) texts += pane.run.budget.text() + ";";
    for (const std::string& path : filesOf(request.options.text("captures")))
        texts += path + "@" + pathStamp(path) + ";";
    return texts;
}

} // namespace

ViewDataMaker curvesMaker() {
    using enum DataScope;
    return {"curves", {Layer, KvHead, Cut, Policies, Seed}, runMaker<CurveMaker>, detail};
}

} // namespace kvscope
