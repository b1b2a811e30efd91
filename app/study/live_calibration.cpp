// Calibration of a live context: turns the rows that `kvscope live` writes as a table into triples.
#include "app/study/live_calibration.h"

#include "app/study/answer_needs.h"
#include "app/study/live_rows.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/run/calibrated_budget.h"
#include "core/run/stage_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::size_t kBatch = 8; // selections in one request

/// The policy at each retention, with the model's losses.
std::vector<LiveRow> rowsOf(const LayerRunner& runner, const live::LiveAnswers& answers, const PaneRequest& pane,
                            const Checkpoint& checkpoint) {
    const std::vector<double>& grid = proxyBudgetGrid();
    std::vector<LiveRow> rows;
    for (const double retention : grid) {
        LiveRow& row = rows.emplace_back(LiveRow{.pane = pane});
        row.pane->run.budget = {Budget::Unit::Fraction, retention, {}};
        sendRow(row, runner, answers, checkpoint.part(0, 0.8).step(rows.size() - 1, grid.size()));
    }
    for (std::size_t begin = 0; begin < rows.size(); begin += kBatch)
        askRows(std::span(rows).subspan(begin, std::min(kBatch, rows.size() - begin)), answers, {.mostTokens = 0},
                checkpoint.part(0.8, 1).step(begin / kBatch, (rows.size() + kBatch - 1) / kBatch));
    return rows;
}

CalibrationData triplesFrom(const std::vector<LiveRow>& rows, double full, const live::LiveCapture& capture) {
    CalibrationData data;
    const std::string& context = capture.info().fileName;
    data.origin = fmt::format("losses of the expected answer, asked of the model at {} retentions", rows.size());
    std::size_t missing = 0;
    std::string error;
    for (const LiveRow& row : rows) {
        const double quality = row.expected ? full / row.expected->nll : NAN;
        if (!std::isfinite(quality) || !(quality > 0)) {
            if (++missing == 1) error = row.error.empty() ? "a loss is 0 or not finite" : row.error;
            continue;
        }
        data.triples.push_back({context, row.kept / capture.cut(), contextNllOf(capture, capture.cut()), quality});
        data.simulated |= row.simulated;
        for (const std::string& note : row.notes)
            if (std::ranges::find(data.notes, note) == data.notes.end()) data.notes.push_back(note);
    }
    if (data.triples.empty()) throw Error({.sentence = error});
    if (missing > 0)
        data.notes.push_back(fmt::format("retentions without a loss are left out: {} ({})", missing, error));
    data.cuts[context] = capture.cut();
    return data;
}

} // namespace

bool isCalibratable(const std::shared_ptr<const live::LiveCapture>& capture, const Cut& cut) {
    return isAnswerExpected(live::LiveAnswers(capture, live::LiveAnswers::Rounds::None)) && !cut.evaluatedOnSeen &&
           cut.token == capture->cut();
}

std::shared_ptr<const CalibrationData> liveTriples(const LayerRunner& runner,
                                                   const std::shared_ptr<const live::LiveCapture>& capture,
                                                   PaneRequest pane, const Checkpoint& checkpoint) {
    const AnswerNeeds needs(runner, capture);
    checkCut(pane.run, *capture);
    pane.run.budget = Budget(); // the grid replaces it
    pane.run.policy.budget.reset();
    return runner.cache().get<CalibrationData>(
        runner.keyOf(capture) + "calibration|" + resultKey(pane), checkpoint, [&] {
            const double full = needs.fullLoss(checkpoint.silent());
            CalibrationData data = triplesFrom(rowsOf(runner, needs.answers(), pane, checkpoint), full, *capture);
            noteMeasuring(data, data.simulated, runner.engine().arithmetic());
            noteTinyLoss(data, full);
            return StageCache::Made<CalibrationData>{std::move(data),
                                                     proxyBudgetGrid().size() * sizeof(CalibrationTriple)};
        });
}

} // namespace kvscope
