// A measure over two parameters. Cells are computed coarse to fine, so that the shape appears early.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/measured_heads.h"
#include "app/study/makers/phase_axis.h"
#include "core/base/error.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"
#include "views/common/measure_options.h"

#include <cmath>
#include <memory>
#include <optional>

namespace kvscope {

namespace {

/// All places of a grid, those of the coarsest raster first.
std::vector<std::pair<std::size_t, std::size_t>> coarseToFine(std::size_t width, std::size_t height) {
    std::vector<std::pair<std::size_t, std::size_t>> order;
    for (const std::size_t step : {4, 2, 1})
        for (std::size_t y = 0; y < height; y += step)
            for (std::size_t x = 0; x < width; x += step)
                if (step == 4 || x % (2 * step) != 0 || y % (2 * step) != 0) order.emplace_back(x, y);
    return order;
}

class MapMaker : ViewDataWork {
public:
    explicit MapMaker(const ViewDataWork& work)
        : ViewDataWork(work), m_measure(measureById(request.options.choice("measure"))), m_head(measuredHead(request)) {
        const PaneRequest& shown = request.shownPane();
        if (!shown.recordedPath.empty())
            throw Error({"a recorded list has no parameters to vary", "", "Make a pane with a policy the active one"});
        m_data.measure = m_measure.id;
        m_data.higherIsBetter = higherWins(m_measure);
        m_data.winners = request.options.choice("colour") == "winner";
        if (m_data.winners && m_measure.better == MeasureDirection::Neither)
            throw Error({"nobody wins by '" + m_measure.id + "': neither more nor less of it is better", "phase_map",
                         "Colour by measure, or choose a measure that has a better side"});
        m_data.activePane = request.activePane;
        m_data.where = measuredWords(m_head);
        for (std::size_t pane = 0; pane < request.panes.size(); ++pane)
            if (m_data.winners || std::cmp_equal(pane, request.activePane)) addPane(pane);
        chooseAxes(shown.run.policy);
        const PhaseCell empty{
            false, std::vector<double>(m_runs.size(), NAN), std::vector<double>(m_runs.size(), NAN), {}, false};
        m_data.cells.assign(m_data.x.texts.size() * m_data.y.texts.size(), empty);
    }

    ViewDataMaker::Value run() {
        std::vector<GridPoint> points;
        std::vector<std::size_t> cellOf;
        for (const auto& [x, y] : coarseToFine(m_data.x.texts.size(), m_data.y.texts.size()))
            for (const RunRequest& run : m_runs) {
                points.push_back(gridPoint([&, x = x, y = y] { return at(run, x, y); }));
                cellOf.push_back(y * m_data.x.texts.size() + x);
            }
        const auto end = [&](std::size_t point) {
            if (point % m_runs.size() + 1 < m_runs.size()) return;
            m_data.cells[cellOf[point]].computed = true;
            deliver(m_data);
        };
        const auto finished = [&](std::size_t point, const auto& result, const Checkpoint& rest) {
            const std::size_t pane = point % m_runs.size();
            PhaseCell& cell = m_data.cells[cellOf[point]];
            cell.values[pane] = meanOverHeads(runner, *result, m_measure, m_head, rest);
            cell.kept[pane] = keptShareOf(*result, m_head);
            cell.balancedNothing |= balancedNothing(*result);
            end(point);
        };
        const auto failed = [&](std::size_t point, const Error& error) {
            if (std::string& told = m_data.cells[cellOf[point]].error; told.empty()) told = error.what();
            end(point);
        };
        runGrid(runner, points, checkpoint, {finished, failed});
        return std::make_shared<const PhaseMapData>(m_data);
    }

private:
    void addPane(std::size_t pane) {
        RunRequest run = resolvePane(request.panes[pane]);
        run.measure = true;
        m_data.panes.push_back(policyIdentityOf(run, pane));
        m_runs.push_back(std::move(run));
    }

    void chooseAxes(const PolicySpec& policy) {
        const auto points = static_cast<std::size_t>(request.options.integer("grid"));
        const PolicyCard& card = policyById(policy.policy).card();
        const std::string typedX = request.options.text("x"), typedY = request.options.text("y");
        const std::int64_t tokens = request.cut.token;
        m_data.x = phaseAxisOf(typedX.empty() ? standardAxis(card, typedY.substr(0, typedY.find('='))) : typedX, policy,
                               points, tokens);
        m_data.y = phaseAxisOf(typedY.empty() ? standardAxis(card, m_data.x.id) : typedY, policy, points, tokens);
        if (m_data.x.id == m_data.y.id)
            throw Error(
                {"both axes are '" + m_data.x.id + "'", "phase_map", "Choose another parameter for one of them"});
        for (const PhaseAxis* axis : {&m_data.x, &m_data.y})
            if (axis->id == "budget" && !card.usesBudget)
                throw Error({card.name + " takes no budget", "phase_map", "Choose a parameter of it for the axis"});
    }

    /// Sets one axis for a pane; a parameter that its policy lacks is ignored.
    static void apply(RunRequest& run, const PhaseAxis& axis, std::size_t index) {
        if (run.recorded) return;
        if (axis.id == "budget" && policyById(run.policy.policy).card().usesBudget)
            run.budget = Budget::parse(axis.texts[index]);
        else if (run.policy.values.has(axis.id))
            run.policy.values.setText(axis.id, axis.texts[index]);
    }

    RunRequest at(RunRequest run, std::size_t x, std::size_t y) const {
        apply(run, m_data.x, x);
        apply(run, m_data.y, y);
        return run;
    }

    const MeasureCard& m_measure;
    const std::optional<KvHeadIndex> m_head; ///< none: the whole layer
    PhaseMapData m_data;
    std::vector<RunRequest> m_runs;
};

} // namespace

ViewDataMaker phaseMapMaker() {
    using enum DataScope;
    return {"phase_map", {Layer, KvHead, Cut, Panes, ActivePane}, runMaker<MapMaker>};
}

} // namespace kvscope
