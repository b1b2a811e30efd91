// `kvscope theory`: requirements of the papers' theorems at a capture's norms, beside parameters and measured values,
// one line per KV head and statement.
#include "app/command_line/command.h"
#include "app/command_line/table_rows.h"
#include "core/capture/open_capture.h"
#include "core/metrics/fidelity.h"
#include "core/run/calibrated_budget.h"
#include "core/run/stored_rows.h"
#include "core/studies/theory_table.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

/// JSON knows no infinity: demands beyond the double range are written as "inf".
Json numberJson(double value) { return std::isinf(value) ? Json("inf") : Json(value); }

/// How the numbers were made, in the columns of `kvscope measure`. `run` is the measured run that the rows are about.
TableRow marksOf(const RunResult& run, int kvHead) {
    const Fidelity& fidelity = requireFidelity(run);
    const double kept = run.selection.heads[kvHead].attendedTokens();
    return {{"budget", askedBudget(run).text()},
            {"budget_requested_tokens", run.requested},
            {"kept", countJson(kept)},
            {"retention", kept / static_cast<double>(run.visible)},
            {"stored_tokens", countJson(meanStoredTokens(run, KvHeadIndex(kvHead)))},
            {"seed", run.request.seed},
            {"queries", fidelity.queryCount},
            {"first_query", fidelity.firstQuery},
            {"seen_queries", fidelity.seenQueries},
            {"simulated", run.simulated},
            {"engine", run.engine},
            {"arithmetic", run.arithmetic},
            {"notes", fmt::format("{}", fmt::join(run.notes, "; "))}};
}

TableRow columnsOf(const RunResult& run, const TheoryRow& row, const TheoryAsked& asked) {
    const RunRequest& request = run.request;
    const bool bound = row.kind == TheoryRow::Kind::Bound, demand = row.kind == TheoryRow::Kind::AtLeast;
    const double limit = row.demanded;
    const auto ratio = [&](double value) {
        return bound && row.hasMargin() && !row.isSigned ? numberJson(value / limit) : Json(nullptr);
    };
    TableRow columns = {{"capture", request.capture->info().fileName},
                        {"layer", request.layer.value},
                        {"kv_head", row.kvHead},
                        {"policy", request.policy.policy},
                        {"variant", request.policy.variant},
                        {"spec", request.policy.text()},
                        {"cut", request.cut.text},
                        {"cut_token", request.cut.token},
                        {"theorem", row.theorem},
                        {"quantity", row.quantity},
                        {"kind", bound    ? "bound"
                                 : demand ? "demand"
                                          : "describes"},
                        {"demanded", bound ? Json(nullptr) : numberJson(limit)},
                        {"set", numberJson(row.set)},
                        {"met", demand && row.hasMargin() ? Json(row.set >= row.demanded) : Json(nullptr)},
                        {"bound", bound ? numberJson(limit) : Json(nullptr)},
                        {"measured", numberJson(row.measured)},
                        {"worst", numberJson(row.worst)},
                        {"measured_over_bound", ratio(row.measured)},
                        {"worst_over_bound", ratio(row.worst)},
                        {"measurements", bound ? Json(std::max<std::int64_t>(1, row.count)) : Json(nullptr)},
                        {"share_beyond", numberJson(row.beyond)},
                        {"may_fail", numberJson(row.mayFail)},
                        {"epsilon", asked.epsilon},
                        {"delta", asked.delta},
                        {"formula", row.formula},
                        {"unit", row.unit},
                        {"caveat", row.caveat},
                        {"violation_means", row.ifBroken},
                        {"paper", row.paper()}};
    const TableRow marks = marksOf(run, row.kvHead);
    columns.insert(columns.end(), marks.begin(), marks.end());
    return columns;
}

class TheoryCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand(
            "theory", "what the theorems demand at a capture's norms, beside parameters and measured errors");
        m_command->add_option("capture", m_capture, "capture file")->required();
        m_options.addTo(*m_command);
        m_command->add_option("--layers", m_layers, "like 0,2-3; all by default");
        m_command->add_option("--kv-heads", m_heads, "what is written, like 0-1; all by default");
        m_command->add_option("--epsilon", m_asked.epsilon, "the error that is asked for");
        m_command->add_option("--delta", m_asked.delta, "the probability of failure that is allowed");
        m_command->add_option("--out", m_out, "FILE.json or FILE.csv")->required();
    }

    void run(const CommandContext& context) override {
        const auto capture = openCapture(m_capture);
        const auto specs = m_options.specs();
        const auto layers = chosenLayers(m_layers, *capture);
        const auto heads = chosenKvHeads(m_heads, *capture);
        const Cut cut = Cut::resolve(m_options.cut, *capture);
        const auto runner = m_options.makeRunner();
        const Checkpoint progress = context.checkpoint("theory");
        std::size_t done = 0;
        std::vector<TableRow> rows;
        for (const PolicySpec& spec : specs)
            for (const LayerIndex layer : layers) {
                const RunRequest request = makeRequest(capture, layer, spec, cut, m_options.seed, true);
                const Checkpoint part = progress.step(done++, specs.size() * layers.size());
                const TheoryTable table = theoryTable(*runner, request, m_asked, part);
                for (const TheoryRow& row : table.rows)
                    if (heads.empty() || std::ranges::binary_search(heads, row.kvHead))
                        rows.push_back(columnsOf(*table.run, row, m_asked));
            }
        writeRows(m_out, "kvscope-theory", rows, context.commandLine());
    }

private:
    RunOptions m_options;
    TheoryAsked m_asked;
    std::string m_capture, m_layers, m_heads, m_out;
};

} // namespace

std::unique_ptr<Command> makeTheoryCommand() { return std::make_unique<TheoryCommand>(); }

} // namespace kvscope
