// A landscape over two knobs. Cells are run coarse to fine, so that its shape stands long before its details.
#include "app/study/makers/phase_map_maker.h"

#include "app/study/makers/head_values.h"
#include "app/study/makers/measured_heads.h"
#include "app/study/makers/phase_axis.h"
#include "core/base/error.h"
#include "core/policies/policy.h"
#include "views/common/measure_options.h"

#include <limits>
#include <memory>
#include <optional>

namespace kvscope {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// All places of a grid, those of the coarsest raster first.
std::vector<std::pair<std::size_t, std::size_t>> coarseToFine(std::size_t width, std::size_t height) {
    std::vector<std::pair<std::size_t, std::size_t>> order;
    for (const std::size_t step : {4, 2, 1})
        for (std::size_t y = 0; y < height; y += step)
            for (std::size_t x = 0; x < width; x += step)
                if (step == 4 || x % (2 * step) != 0 || y % (2 * step) != 0)
                    order.emplace_back(x, y);
    return order;
}

class MapMaker {
public:
    MapMaker(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
             const ViewDataMaker::Partial& partial)
        : m_runner(runner), m_request(request), m_checkpoint(checkpoint), m_partial(partial),
          m_measure(measureById(request.options.choice("measure"))) {
        const PaneRequest& shown = request.shownPane();
        if (!shown.recordedPath.empty())
            throw Error(
                {"a recorded list has no parameters to vary", {}, "Make a pane with a policy the active one", {}});
        m_data.measure = m_measure.id;
        m_data.higherIsBetter = higherWins(m_measure);
        m_data.winners = request.options.choice("colour") == "winner";
        if (m_data.winners && m_measure.better == MeasureDirection::Neither)
            throw Error({"nobody wins by '" + m_measure.id + "': neither more nor less of it is better",
                         "phase_map",
                         "Colour by measure, or choose a measure that has a better side",
                         {}});
        m_data.activePane = request.activePane;
        m_data.where = wholeLayer() ? "all heads of the layer" : "KV head " + std::to_string(request.kvHead.value);
        for (std::size_t pane = 0; pane < request.panes.size(); ++pane)
            if (m_data.winners || std::cmp_equal(pane, request.activePane))
                addPane(pane);
        chooseAxes(shown.run.policy);
        const PhaseCell empty{
            false, std::vector<double>(m_runs.size(), kNaN), std::vector<double>(m_runs.size(), kNaN), {}};
        m_data.cells.assign(m_data.x.texts.size() * m_data.y.texts.size(), empty);
    }

    ViewDataMaker::Value run() {
        const auto order = coarseToFine(m_data.x.texts.size(), m_data.y.texts.size());
        const auto total = static_cast<double>(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto done = static_cast<double>(i);
            const Checkpoint part = m_checkpoint.part(done / total, (done + 1) / total);
            runCell(order[i].first, order[i].second, part);
            m_partial(std::make_shared<const PhaseMapData>(m_data));
        }
        return std::make_shared<const PhaseMapData>(m_data);
    }

private:
    bool wholeLayer() const { return m_request.options.choice("heads") == "layer"; }

    void addPane(std::size_t pane) {
        RunRequest run = resolvePane(m_request.panes[pane]);
        run.measure = true;
        const PolicyIdentity identity = policyIdentityOf(run);
        m_data.panes.push_back(
            {static_cast<char>('A' + pane), identity.policyId, identity.policyName, identity.variant});
        m_runs.push_back(std::move(run));
    }

    void chooseAxes(const PolicySpec& policy) {
        const auto points = static_cast<std::size_t>(m_request.options.integer("grid"));
        const PolicyCard& card = policyById(policy.policy).card();
        const std::string typedX = m_request.options.text("x"), typedY = m_request.options.text("y");
        const std::int64_t tokens = m_request.cut.token;
        m_data.x = phaseAxisOf(typedX.empty() ? standardAxis(card, typedY.substr(0, typedY.find('='))) : typedX, policy,
                               points, tokens);
        m_data.y = phaseAxisOf(typedY.empty() ? standardAxis(card, m_data.x.id) : typedY, policy, points, tokens);
        if (m_data.x.id == m_data.y.id)
            throw Error(
                {"both axes are '" + m_data.x.id + "'", "phase_map", "Choose another parameter for one of them", {}});
        for (const PhaseAxis* axis : {&m_data.x, &m_data.y})
            if (axis->id == "budget" && !card.usesBudget)
                throw Error({card.name + " takes no budget", "phase_map", "Choose a parameter of it for the axis", {}});
    }

    /// The setting of one axis for a pane; what its policy does not have stays as it is.
    static void apply(RunRequest& run, const PhaseAxis& axis, std::size_t index) {
        if (run.recorded)
            return;
        if (axis.id == "budget" && policyById(run.policy.policy).card().usesBudget)
            run.budget = Budget::parse(axis.texts[index]);
        else if (run.policy.values.has(axis.id))
            run.policy.values.setText(axis.id, axis.texts[index]);
    }

    void runCell(std::size_t x, std::size_t y, const Checkpoint& checkpoint) {
        checkpoint.at(0, 1); // cached cells do not ask
        PhaseCell& cell = m_data.cells[y * m_data.x.texts.size() + x];
        for (std::size_t pane = 0; pane < m_runs.size(); ++pane) {
            const auto share = static_cast<double>(m_runs.size()), index = static_cast<double>(pane);
            try {
                RunRequest run = m_runs[pane];
                apply(run, m_data.x, x);
                apply(run, m_data.y, y);
                const auto result = m_runner.run(run, checkpoint.part(index / share, (index + 0.9) / share));
                cell.values[pane] = meanOverHeads(m_runner, *result, m_measure, m_request, wholeLayer(),
                                                  checkpoint.part((index + 0.9) / share, (index + 1) / share));
                cell.kept[pane] = keptShareOf(*result, m_request, wholeLayer());
            } catch (const Error& error) {
                if (cell.error.empty())
                    cell.error = error.what();
            }
        }
        cell.computed = true;
    }

    const LayerRunner& m_runner;
    const ViewDataRequest& m_request;
    const Checkpoint& m_checkpoint;
    const ViewDataMaker::Partial& m_partial;
    const MeasureCard& m_measure;
    PhaseMapData m_data;
    std::vector<RunRequest> m_runs;
};

} // namespace

ViewDataMaker::Value makePhaseMapData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial) {
    return MapMaker(runner, request, checkpoint, partial).run();
}

} // namespace kvscope
