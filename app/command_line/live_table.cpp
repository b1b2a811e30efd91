// Rows of live answers as columns, as lines on a terminal, and what is wrong with those that have no answer.
#include "app/command_line/live_table.h"

#include "core/base/error.h"
#include "core/base/one_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

std::string nameOf(const LiveRow& row) { return row.isFull() ? "full cache" : row.pane->run.policy.text(); }

std::string number(double value, const char* form) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(form), value) : std::string("-");
}

/// The number of tokens kept before the cut; NaN where the policy has made no choice.
double keptBy(const LiveRow& row) { return row.isFull() || row.sent ? row.kept : NAN; }

std::string divergenceOf(const LiveRow& row) {
    if (row.isFull()) return {};
    if (!row.greedy) return "-";
    return row.greedy->firstDivergence ? fmt::format("{}", *row.greedy->firstDivergence) : "never";
}

std::string textOf(const LiveRow& row) {
    if (!row.error.empty()) return "no answer: " + oneLine(row.error);
    return (row.greedy ? shortened(oneLine(row.greedy->text), 60) : "") + (row.simulated ? " (simulated)" : "");
}

} // namespace

TableRow liveColumns(const LiveRow& row, const Cut& cut) {
    const PolicySpec spec = row.isFull() ? PolicySpec() : row.pane->run.policy;
    const auto measure = [&](double live::ExpectedAnswer::*member) {
        return row.expected ? numberOrNull((*row.expected).*member) : Json();
    };
    return {
        {"policy", row.isFull() ? "full" : spec.policy},
        {"variant", spec.variant},
        {"spec", row.isFull() ? "" : spec.text()},
        {"retention", numberOrNull(keptBy(row) / cut.token)},
        {"kept", numberOrNull(keptBy(row))},
        {"stored_tokens", row.isFull() || row.sent ? numberOrNull(row.stored) : Json()},
        {"stored_bytes", row.sent ? numberOrNull(row.sent->bytes) : Json()},
        {"simulated", row.simulated},
        {"nll", measure(&live::ExpectedAnswer::nll)},
        {"kl", measure(&live::ExpectedAnswer::klMean)},
        {"flip_rate", measure(&live::ExpectedAnswer::flipRate)},
        {"first_divergence", row.greedy && row.greedy->firstDivergence ? Json(*row.greedy->firstDivergence) : Json()},
        {"text", row.greedy ? Json(row.greedy->text) : Json()},
        {"notes", fmt::format("{}", fmt::join(row.notes, "; "))},
        {"error", row.error.empty() ? Json() : Json(row.error)}};
}

void addQualities(std::vector<TableRow>& table, const std::vector<LiveRow>& rows, double contextNll) {
    for (std::size_t i = 0; i < rows.size() && rows.front().expected; ++i) {
        const double full = rows.front().expected->nll;
        table[i].emplace_back("quality", rows[i].expected ? numberOrNull(full / rows[i].expected->nll) : Json());
        if (std::isfinite(contextNll)) table[i].emplace_back("nll_context", contextNll);
    }
}

void printLiveRows(const std::vector<LiveRow>& rows, const Cut& cut) {
    std::size_t width = 10;
    for (const LiveRow& row : rows) width = std::clamp(nameOf(row).size(), width, std::size_t{40});
    fmt::print("{:<{}}  retention     kept      NLL       KL   flips  diverges  text\n", "policy", width);
    for (const LiveRow& row : rows) {
        const auto measure = [&](double live::ExpectedAnswer::*member) {
            return row.expected ? (*row.expected).*member : NAN;
        };
        fmt::print("{:<{}}  {:>9} {:>8} {:>8} {:>8} {:>7}  {:>8}  {}\n", shortened(nameOf(row), width), width,
                   number(keptBy(row) / cut.token, "{:.4f}"), number(keptBy(row), "{:.1f}"),
                   number(measure(&live::ExpectedAnswer::nll), "{:.4f}"),
                   number(measure(&live::ExpectedAnswer::klMean), "{:.4f}"),
                   number(100 * measure(&live::ExpectedAnswer::flipRate), "{:.0f} %"), divergenceOf(row), textOf(row));
    }
}

std::string failuresOf(const std::vector<LiveRow>& rows) {
    std::vector<std::string> failures;
    for (const LiveRow& row : rows)
        if (!row.error.empty()) failures.push_back(rows.size() == 2 ? row.error : nameOf(row) + ": " + row.error);
    if (failures.empty()) return {};
    std::string all = fmt::format("{}", fmt::join(failures, "; "));
    if (!rows.front().error.empty() || failures.size() == rows.size() - 1) throw Error({.sentence = std::move(all)});
    return fmt::format("{} of {} policies {} no answer: {}", failures.size(), rows.size() - 1,
                       failures.size() == 1 ? "has" : "have", all);
}

} // namespace kvscope
