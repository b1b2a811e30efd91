// Rows of a live context as the data of the curves view.
#include "app/study/loss_curves.h"

#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

CurvePoint pointOf(const LiveRow& row, TokenIndex cut) {
    const double nll = row.expected->nll, retention = row.kept / cut;
    const bool isFraction = row.pane && row.pane->run.budget.unit == Budget::Unit::Fraction;
    return {.asked = isFraction ? row.pane->run.budget.value : retention,
            .setting = {},
            .retention = retention,
            .bytes = row.sent ? row.sent->bytes : 0,
            .mean = nll,
            .low = nll,
            .high = nll};
}

bool hasLoss(const LiveRow& row) { return row.expected && std::isfinite(row.expected->nll); }

} // namespace

std::shared_ptr<const CurvesData> lossCurves(std::span<const LossSeries> series, const LiveRow* full, TokenIndex cut,
                                             std::optional<double> retention) {
    auto data = std::make_shared<CurvesData>();
    data->valueTitle = "Loss of the expected answer, nat";
    data->where = "all layers";
    if (retention) data->present = {*retention, formatBudget(std::llround(*retention * cut), cut)};
    bool isEmpty = true;
    if (full && hasLoss(*full)) data->level = {full->expected->nll, "full cache"};
    for (const LossSeries& one : series) {
        Curve& curve = data->curves.emplace_back(Curve{one});
        curve.error = one.error;
        for (const LiveRow* row : one.rows)
            if (hasLoss(*row)) {
                curve.points.push_back(pointOf(*row, cut));
                curve.simulated = curve.simulated || row->simulated;
            }
        isEmpty = isEmpty && curve.points.empty();
        std::ranges::stable_sort(curve.points, {}, &CurvePoint::retention);
    }
    return isEmpty ? nullptr : data;
}

} // namespace kvscope
