// Curves over budgets or over a parameter: the same runs as a sweep makes, for the policies that are on the screen. A
// policy that draws random numbers runs with several seeds, so that luck is seen as a band. On several captures each
// gives a curve of its own, and what is said is their mean.
#include "app/study/makers/curves_maker.h"

#include "app/study/makers/further_captures.h"
#include "app/study/makers/head_values.h"
#include "app/study/makers/measured_heads.h"
#include "app/study/makers/phase_axis.h"
#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/metrics/statistics.h"
#include "core/policies/policy.h"
#include "views/common/file_option.h"
#include "views/curves/curves_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

namespace kvscope {

namespace {

constexpr std::array kBudgetGrid = {0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 0.9};

bool drawsRandomNumbers(const PaneRequest& pane) {
    return pane.recordedPath.empty() && policyById(pane.run.policy.policy).card().usesSeed;
}

bool hasBudgets(const PaneRequest& pane) {
    return pane.recordedPath.empty() && policyById(pane.run.policy.policy).card().usesBudget;
}

constexpr std::size_t kValues = 9; // of a parameter, where nobody lists them

bool hasParameter(const PaneRequest& pane, const std::string& id) {
    return pane.recordedPath.empty() && pane.run.policy.values.has(id);
}

/// The values that `typed` names, spread about the default of the first policy that has the parameter; the active
/// pane's before the others.
PhaseAxis axisFor(const ViewDataRequest& request, const std::string& typed) {
    const std::string id = typed.substr(0, typed.find('='));
    const PaneRequest* owner = &request.shownPane();
    for (const PaneRequest& pane : request.panes)
        if (!hasParameter(*owner, id) && hasParameter(pane, id))
            owner = &pane;
    if (!owner->recordedPath.empty())
        throw Error({"a recorded list has no parameters to vary", "curves", "Add a pane with a policy", {}});
    PhaseAxis axis = phaseAxisOf(typed, owner->run.policy, kValues, request.cut.token); // throws where nobody has it
    if (!axis.isNumeric)
        throw Error({"'" + id + "' is a choice, and a curve needs numbers", "curves", "Show it in the phase map", {}});
    return axis;
}

/// The means over captures where all have a point, with the 95 % interval of the mean. A capture that still runs takes
/// part where it has got to.
std::vector<CurvePoint> meanOf(const std::vector<CaptureCurve>& captures, bool lastIsRunning) {
    if (captures.size() == 1)
        return captures.front().points;
    std::map<double, std::vector<const CurvePoint*>> byAsked;
    for (const CaptureCurve& one : captures)
        for (const CurvePoint& point : one.points)
            byAsked[point.asked].push_back(&point);
    std::vector<CurvePoint> means;
    for (const auto& [asked, points] : byAsked) {
        if (points.size() + (lastIsRunning ? 1 : 0) < captures.size())
            continue;
        CurvePoint mean{.asked = asked, .setting = points.front()->setting, .seeds = points.front()->seeds};
        std::vector<double> values;
        for (const CurvePoint* point : points) {
            values.push_back(point->mean);
            mean.retention += point->retention / static_cast<double>(points.size());
            mean.bytes += point->bytes / static_cast<double>(points.size());
        }
        const Summary summary = summaryOf(values);
        mean.mean = summary.mean;
        mean.low = summary.mean - summary.studentHalfInterval();
        mean.high = summary.mean + summary.studentHalfInterval();
        means.push_back(mean);
    }
    return means;
}

class CurveMaker {
public:
    CurveMaker(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
               const ViewDataMaker::Partial& partial)
        : m_runner(runner), m_request(request), m_checkpoint(checkpoint), m_partial(partial),
          m_measure(measureById(request.options.choice("measure"))),
          m_wholeLayer(request.options.choice("heads") == "layer"),
          m_captures(capturesWith(request.options.text("captures"), runner, request, checkpoint)) {
        m_data.measure = m_measure.id;
        if (const std::string varied = request.options.text("vary"); !varied.empty() && varied != "budget") {
            m_axis = axisFor(request, varied);
            m_data.parameter = m_axis.id;
            m_data.title = m_axis.title;
        }
        m_data.where = m_wholeLayer ? "all heads of the layer" : "KV head " + std::to_string(request.kvHead.value);
        m_data.captures = m_captures.size();
        std::set<std::string> models;
        for (const auto& capture : m_captures)
            models.insert(capture->info().modelId);
        m_data.models = models.size();
        for (const PaneRequest& pane : request.panes)
            m_total += runsOf(pane) * static_cast<double>(capturesOf(pane));
    }

    ViewDataMaker::Value run() {
        for (std::size_t i = 0; i < m_request.panes.size(); ++i)
            addCurve(m_request.panes[i], static_cast<char>('A' + i));
        return std::make_shared<const CurvesData>(m_data);
    }

private:
    int seedsOf(const PaneRequest& pane) const {
        return drawsRandomNumbers(pane) ? static_cast<int>(m_request.options.integer("seeds")) : 1;
    }
    std::size_t settingsOf(const PaneRequest& pane) const {
        if (!m_data.parameter.empty())
            return hasParameter(pane, m_data.parameter) ? m_axis.texts.size() : 1;
        return hasBudgets(pane) ? kBudgetGrid.size() : 1;
    }
    double runsOf(const PaneRequest& pane) const { return static_cast<double>(settingsOf(pane)) * seedsOf(pane); }
    /// A recorded list belongs to the capture that it was made on.
    std::size_t capturesOf(const PaneRequest& pane) const { return pane.recordedPath.empty() ? m_captures.size() : 1; }

    Curve& curve() { return m_data.curves.back(); }
    /// Says also which of several captures refuses.
    void note(const Error& error) {
        curve().error = (m_captures.size() > 1 ? curve().captures.back().capture + ": " : "") + error.what();
    }

    void addCurve(const PaneRequest& pane, char letter) {
        m_data.curves.emplace_back();
        curve().letter = letter;
        for (std::size_t i = 0; i < capturesOf(pane); ++i) {
            const double before = m_done;
            curve().captures.push_back({m_captures[i]->info().fileName, {}});
            try {
                addCapture(pane, onCapture(pane, m_captures[i]));
            } catch (const Error& error) {
                note(error);
            }
            m_done = before + runsOf(pane);
            curve().points = meanOf(curve().captures, false);
        }
        if (curve().captures.size() == 1)
            curve().captures.clear();
    }

    void addCapture(const PaneRequest& pane, RunRequest run) {
        const PolicyIdentity identity = policyIdentityOf(run);
        curve().policyId = identity.policyId;
        curve().policyName = identity.policyName;
        curve().variant = identity.variant;
        if (settingsOf(pane) == 1)
            addPoint(run, seedsOf(pane), {});
        else if (!m_data.parameter.empty())
            addValues(run, seedsOf(pane));
        else
            for (const double retention : kBudgetGrid) {
                run.budget = {Budget::Unit::Fraction, retention};
                addPoint(run, seedsOf(pane), {});
            }
    }

    /// A value that the policy refuses leaves a gap; the next one may do.
    void addValues(RunRequest run, int seeds) {
        for (std::size_t i = 0; i < m_axis.texts.size(); ++i) {
            const double before = m_done;
            try {
                run.policy.values.setText(m_axis.id, m_axis.texts[i]);
                addPoint(run, seeds, {m_axis.numbers[i], m_axis.texts[i]});
            } catch (const Error& error) {
                m_done = before + seeds;
                note(error);
            }
        }
    }

    void addPoint(RunRequest run, int seeds, const std::pair<double, std::string>& setting) {
        CurvePoint point;
        point.asked = setting.second.empty() ? run.budget.value : setting.first;
        point.setting = setting.second;
        point.seeds = seeds;
        point.low = INFINITY;
        point.high = -INFINITY;
        for (int seed = 0; seed < seeds; ++seed) {
            run.seed = seeds == 1 ? run.seed : static_cast<std::uint64_t>(seed);
            run.measure = true;
            const auto result = m_runner.run(run, m_checkpoint.part(m_done / m_total, (m_done + 0.9) / m_total));
            const double value = meanOverHeads(m_runner, *result, m_measure, m_request, m_wholeLayer,
                                               m_checkpoint.part((m_done + 0.9) / m_total, (m_done + 1) / m_total));
            m_done += 1;
            point.mean += value / seeds;
            point.low = std::min(point.low, value);
            point.high = std::max(point.high, value);
            point.retention += keptShareOf(*result, m_request, m_wholeLayer) / seeds;
            point.bytes += static_cast<double>(storedBytes(*result)) / seeds;
            curve().simulated |= result->simulated;
        }
        curve().captures.back().points.push_back(point);
        curve().points = meanOf(curve().captures, true);
        m_partial(std::make_shared<const CurvesData>(m_data));
    }

    const LayerRunner& m_runner;
    const ViewDataRequest& m_request;
    const Checkpoint& m_checkpoint;
    const ViewDataMaker::Partial& m_partial;
    const MeasureCard& m_measure;
    const bool m_wholeLayer;
    const std::vector<std::shared_ptr<const CaptureReader>> m_captures;
    CurvesData m_data;
    PhaseAxis m_axis; ///< of the parameter that varies
    double m_done = 0, m_total = 0;
};

} // namespace

std::string curvesDetail(const ViewDataRequest& request) {
    std::string detail;
    if (!request.options.text("vary").empty())
        for (const PaneRequest& pane : request.panes)
            detail += pane.run.budget.text() + ";";
    for (const std::string& path : filesOf(request.options.text("captures")))
        detail += path + "@" + pathStamp(path) + ";";
    return detail;
}

ViewDataMaker::Value makeCurvesData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial) {
    return CurveMaker(runner, request, checkpoint, partial).run();
}

} // namespace kvscope
