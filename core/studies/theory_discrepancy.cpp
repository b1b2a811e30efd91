// The quantity of BalanceKV's Theorem 3.3 for the evaluation queries: how far apart a walk's two groups are in the sum
// that each query takes. Exponents are shifted by their largest possible value, so that nothing overflows.
#include "core/capture/capture.h"
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/citations.h"
#include "core/studies/theory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace kvscope {

namespace {

constexpr std::int64_t kMostQueries = 64; ///< of each query head

std::span<const float> rowOf(const HostTensor& tensor, std::int64_t head, std::int64_t row) {
    const auto width = static_cast<std::size_t>(tensor.shape[2]);
    return {tensor.data.data() + static_cast<std::size_t>(head * tensor.shape[1] + row) * width, width};
}

double dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    return sum;
}

double largestSquare(const HostTensor& tensor, const BalanceWalkLog& walk) {
    double most = 0;
    for (const TokenIndex token : walk.tokens)
        most = std::max(most, dot(rowOf(tensor, walk.kvHead, token), rowOf(tensor, walk.kvHead, token)));
    return most;
}

/// One walk, its largest norms, and what was measured of it.
struct MeasuredWalk {
    const BalanceWalkLog* walk;
    double squaredKey = 0, value = 1, bound = 0, sum = 0, worst = 0;
    std::int64_t beyond = 0;
};

void add(MeasuredWalk& walk, double discrepancy) {
    walk.sum += discrepancy;
    walk.worst = std::max(walk.worst, discrepancy);
    walk.beyond += discrepancy > walk.bound ? 1 : 0;
}

/// Logits s<k_i,q> of the keys before the cut.
std::vector<double> logitsOf(const HostTensor& keys, std::int64_t kvHead, std::span<const float> query, double scaling,
                             std::int64_t cut) {
    std::vector<double> logits;
    for (std::int64_t i = 0; i < cut; ++i) logits.push_back(scaling * dot(rowOf(keys, kvHead, i), query));
    return logits;
}

/// ||sum eta_i e^{s<k_i,q>} v_i|| / (R e^{s|q|^2/2})
double discrepancyAt(const MeasuredWalk& measured, const std::vector<double>& logits, double halfSquare, double scaling,
                     const HostTensor& values) {
    const BalanceWalkLog& walk = *measured.walk;
    const double shift = halfSquare + scaling * measured.squaredKey / 2;
    std::vector<double> sum(walk.tree == 1 ? static_cast<std::size_t>(values.shape[2]) : 1);
    for (std::size_t t = 0; t < walk.tokens.size(); ++t) {
        const TokenIndex token = walk.tokens[t];
        const double weight = walk.signs[t] * std::exp(logits[token] - shift);
        const auto value = rowOf(values, walk.kvHead, token);
        for (std::size_t c = 0; c < sum.size(); ++c)
            sum[c] += weight * (walk.tree == 1 ? static_cast<double>(value[c]) : 1);
    }
    double square = 0;
    for (const double x : sum) square += x * x;
    return std::sqrt(square) / measured.value;
}

std::vector<MeasuredWalk> walksOf(const BalanceLog& log, std::int64_t kvHead, const HostTensor& keys,
                                  const HostTensor& values, double delta) {
    std::vector<MeasuredWalk> walks;
    for (const BalanceWalkLog& walk : log.walks) {
        if (walk.kvHead != kvHead || walk.tokens.empty()) continue;
        const double s = walk.tree == 1 ? static_cast<double>(values.shape[2]) : 1;
        MeasuredWalk measured{&walk};
        measured.squaredKey = largestSquare(keys, walk);
        if (walk.tree == 1) measured.value = std::sqrt(largestSquare(values, walk));
        measured.bound = std::sqrt(s) * 30 * std::log(static_cast<double>(walk.tokens.size()) * s / delta);
        walks.push_back(measured);
    }
    return walks;
}

/// The walk closest to its bound, and the share of all walks and queries above their bounds.
TheoryRow rowOf(const std::vector<MeasuredWalk>& walks, std::int64_t queries) {
    TheoryRow row{.kind = TheoryRow::Kind::Bound,
                  .theorem = "BalanceKV Thm 3.3",
                  .quantity = "discrepancy at a query",
                  .formula = "‖Σ ηᵢ e^{⟨kᵢ,q⟩/√d} vᵢ‖ / (R e^{‖q‖²/(2√d)}) ≤ √s 30 ln(m s/δ), R = max e^{‖k‖²/(2√d)} "
                             "max ‖v‖; measured: of the walk with the least room; beyond: of all walks"};
    const auto room = [](const MeasuredWalk& a, const MeasuredWalk& b) {
        return a.worst / a.bound < b.worst / b.bound;
    };
    const MeasuredWalk& least = *std::ranges::max_element(walks, room);
    const std::int64_t size = std::ssize(least.walk->tokens);
    std::int64_t beyond = 0;
    for (const MeasuredWalk& walk : walks) beyond += walk.beyond;
    row.demanded = least.bound;
    row.measured = least.sum / static_cast<double>(queries);
    row.worst = least.worst;
    row.count = std::ssize(walks) * queries;
    row.beyond = static_cast<double>(beyond) / static_cast<double>(row.count);
    row.caveat = least.bound >= static_cast<double>(size)
                     ? fmt::format("vacuous: no signs of the walk's {} tokens give more than {}", size, size)
                     : "30 is the constant of BalanceKV Algorithm 2; the theorem hides its own";
    return row;
}

double largestOf(const HostTensor& table, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const float* at = table.data.data() + row * table.shape[1];
    return end > begin ? static_cast<double>(*std::max_element(at + begin, at + end)) : 0;
}

} // namespace

std::vector<TheoryRow> discrepancyRows(const LayerRunner& runner, const RunResult& result, double delta,
                                       const Checkpoint& checkpoint) {
    const RunRequest& run = result.request;
    const LayerInfo& layer = run.capture->info().layerInfo(run.layer);
    const Fidelity& fidelity = requireFidelity(result);
    const auto log = std::dynamic_pointer_cast<const BalanceLog>(result.log);
    const auto host = [&](TensorRole role) {
        return runner.engine().download(runner.tensor(run.capture, run.layer, role, checkpoint.silent()));
    };
    const HostTensor keys = host(TensorRole::Keys), values = host(TensorRole::Values),
                     queries = host(TensorRole::Queries);
    const std::int64_t firstRow = fidelity.firstQuery - (run.capture->info().numTokens - layer.queryCount),
                       used = std::min<std::int64_t>(kMostQueries, fidelity.queryCount),
                       queryHeads = std::ssize(layer.gqaGroupOf);
    std::vector<std::vector<MeasuredWalk>> walks;
    for (int head = 0; log && head < keys.shape[0]; ++head) walks.push_back(walksOf(*log, head, keys, values, delta));
    std::vector<std::int64_t> queryCount(walks.size());
    for (std::int64_t h = 0; log && h < queryHeads; ++h) {
        const std::int32_t group = layer.gqaGroupOf[h];
        for (std::int64_t u = 0; u < used; ++u) {
            checkpoint.at(static_cast<double>(h * used + u), static_cast<double>(queryHeads * used));
            const auto query = rowOf(queries, h, firstRow + u * fidelity.queryCount / used);
            const auto logits = logitsOf(keys, group, query, layer.scaling, run.cut.token);
            for (MeasuredWalk& walk : walks[group])
                add(walk, discrepancyAt(walk, logits, layer.scaling * dot(query, query) / 2, layer.scaling, values));
            ++queryCount[group];
        }
    }
    const bool published = result.request.policy.values.choice("steps") == "theory";
    std::vector<TheoryRow> rows;
    for (std::size_t head = 0; head < walks.size(); ++head) {
        if (walks[head].empty()) continue;
        TheoryRow row = rowOf(walks[head], queryCount[head]);
        row.kvHead = static_cast<int>(head);
        row.mayFail = delta;
        if (used < fidelity.queryCount)
            row.caveat += fmt::format("; {} of {} queries of a head, evenly spread", used, fidelity.queryCount);
        row.ifBroken = published ? "nothing: the theorem hides its constant, 30 is that of BalanceKV Algorithm 2"
                                 : "nothing: these are not the steps of BalanceKV Algorithm 2";
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string nothingBalanced(const RunResult& result, int kvHead) {
    const auto log = std::dynamic_pointer_cast<const BalanceLog>(result.log);
    if (!log || std::ranges::any_of(log->walks, [&](const BalanceWalkLog& walk) { return walk.kvHead == kvHead; }))
        return {};
    if (log->stream) return "nothing was balanced: no tree has a whole batch";
    return std::ssize(result.selection.heads[kvHead].kept) < result.visible
               ? "nothing was balanced: sinks and recent tokens fill the budget"
               : "nothing was balanced: every token is kept";
}

std::vector<TheoryNorms> theoryNorms(const LayerRunner& runner, const RunResult& result, const Checkpoint& checkpoint) {
    const Engine& engine = runner.engine();
    const RunRequest& run = result.request;
    const LayerInfo& layer = run.capture->info().layerInfo(run.layer);
    const Fidelity& fidelity = requireFidelity(result);
    const auto all = [&](TensorRole role) { return runner.tensor(run.capture, run.layer, role, checkpoint); };
    const auto normsOf = [&](const Tensor& rows) { return engine.rowNorms(rows, checkpoint); };
    const HostTensor keys = normsOf(engine.rows(all(TensorRole::Keys), 0, run.cut.token)),
                     queries = normsOf(all(TensorRole::Queries));
    const std::int64_t firstRow = fidelity.firstQuery - (run.capture->info().numTokens - layer.queryCount);
    std::vector<TheoryNorms> norms;
    for (std::int64_t h = 0; h < keys.shape[0]; ++h) {
        TheoryNorms one;
        one.tokens = run.cut.token;
        one.keyDim = run.capture->info().headDim;
        one.valueDim = run.capture->info().valueDim;
        one.scaling = layer.scaling;
        one.keyNorm = largestOf(keys, h, 0, keys.shape[1]);
        for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q)
            if (layer.gqaGroupOf[q] == h)
                one.queryNorm = std::max(one.queryNorm, largestOf(queries, static_cast<std::int64_t>(q), firstRow,
                                                                  firstRow + fidelity.queryCount));
        norms.push_back(one);
    }
    return norms;
}

bool TheoryRow::hasMargin() const {
    return kind == Kind::AtLeast ? !std::isnan(set)
                                 : kind == Kind::Bound && !std::isnan(worst) && !std::isnan(demanded);
}

double TheoryRow::marginAgainst(double otherDemand) const {
    if (!hasMargin()) return NAN;
    if (kind == Kind::AtLeast) return set / otherDemand;
    return isSigned ? 1 + otherDemand - worst : otherDemand / worst;
}

std::string TheoryRow::paper() const { return std::string(citedPaper(theorem.substr(0, theorem.find(' '))).reference); }

const std::vector<double>& theoryEpsilons() {
    static const std::vector<double> values = [] {
        constexpr int kSteps = 24;
        std::vector<double> made;
        for (int i = 0; i <= kSteps; ++i) made.push_back(0.01 * std::pow(99.0, static_cast<double>(i) / kSteps));
        return made;
    }();
    return values;
}

} // namespace kvscope
