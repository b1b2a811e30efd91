// Curves over budgets: the same runs as a sweep makes, for the policies that are on the screen. A policy that draws
// random numbers runs with several seeds, so that luck is seen as a band.
#include "app/view_data/curves_data.h"

#include "app/view_data/head_values.h"
#include "core/base/error.h"
#include "views/curves/curves_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

namespace kvscope {

namespace {

constexpr std::array kLadder = {0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 0.9};

bool drawsRandomNumbers(const PaneRequest& pane) {
    return pane.recordedPath.empty() && policyById(pane.run.policy.policy).card().usesSeed;
}

bool hasBudgets(const PaneRequest& pane) {
    return pane.recordedPath.empty() && policyById(pane.run.policy.policy).card().usesBudget;
}

class CurveMaker {
public:
    CurveMaker(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
               const ViewDataMaker::Partial& partial)
        : m_runner(runner), m_request(request), m_checkpoint(checkpoint), m_partial(partial),
          m_wholeLayer(request.options.choice("heads") == "layer") {
        m_data.measure = request.options.choice("measure");
        m_data.where = m_wholeLayer ? "all heads of the layer" : "KV head " + std::to_string(request.kvHead.value);
        for (const PaneRequest& pane : request.panes)
            m_total += runsOf(pane);
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
    double runsOf(const PaneRequest& pane) const {
        return (hasBudgets(pane) ? static_cast<double>(kLadder.size()) : 1.0) * seedsOf(pane);
    }

    double valueOf(const RunResult& result) const {
        const Fidelity& fidelity = requireFidelity(result);
        return meanOverHeads(m_data.measure == "retained_mass" ? fidelity.meanRetainedMass : fidelity.meanOutputError, m_request,
                             m_wholeLayer);
    }

    void addCurve(const PaneRequest& pane, char letter) {
        Curve curve;
        curve.letter = letter;
        try {
            PaneRequest mine = pane;
            mine.run = resolvePane(pane, true);
            const Chooser chooser = chooserOf(mine.run);
            curve.policyId = chooser.policyId;
            curve.policyName = chooser.policyName;
            curve.variant = chooser.variant;
            m_data.curves.push_back(curve);
            if (!hasBudgets(pane))
                return addPoint(mine.run, seedsOf(pane));
            for (const double retention : kLadder) {
                mine.run.budget = {Budget::Unit::Fraction, retention};
                addPoint(mine.run, seedsOf(pane));
            }
        } catch (const Error& error) {
            if (m_data.curves.empty() || m_data.curves.back().letter != letter)
                m_data.curves.push_back(curve);
            m_data.curves.back().error = error.what();
        }
    }

    void addPoint(RunRequest run, int seeds) {
        CurvePoint point;
        point.asked = run.budget.value;
        point.seeds = seeds;
        point.low = INFINITY;
        point.high = -INFINITY;
        for (int seed = 0; seed < seeds; ++seed) {
            run.seed = seeds == 1 ? run.seed : static_cast<std::uint64_t>(seed);
            run.measure = true;
            const auto result = m_runner.run(run, m_checkpoint.part(m_done / m_total, (m_done + 1) / m_total));
            m_done += 1;
            const double value = valueOf(*result);
            point.mean += value / seeds;
            point.low = std::min(point.low, value);
            point.high = std::max(point.high, value);
            point.retention += keptShareOf(*result, m_request, m_wholeLayer) / seeds;
            point.bytes += static_cast<double>(storedBytes(*result)) / seeds;
            m_data.curves.back().simulated |= result->simulated;
        }
        m_data.curves.back().points.push_back(point);
        m_partial(std::make_shared<const CurvesData>(m_data));
    }

    const LayerRunner& m_runner;
    const ViewDataRequest& m_request;
    const Checkpoint& m_checkpoint;
    const ViewDataMaker::Partial& m_partial;
    const bool m_wholeLayer;
    CurvesData m_data;
    double m_done = 0, m_total = 0;
};

} // namespace

ViewDataMaker::Value makeCurvesData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial) {
    return CurveMaker(runner, request, checkpoint, partial).run();
}

} // namespace kvscope
