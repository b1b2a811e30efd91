// `kvscope measure`: what a selection costs, per query head, over the queries after the cut.
#include "app/command_line/command.h"
#include "core/base/atomic_file.h"
#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/run/calibration.h"
#include "core/run/selection_file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
    const RunResult& result;
    const std::vector<MeasureValues>& measures;
    int layer, queryHead, kvHead;
    std::string spec;
};

/// The number of a measure that belongs to a query head: its own, that of its KV head, or that of the layer.
double valueFor(const MeasureValues& values, int queryHead, int kvHead) {
    switch (measureById(values.id).shape) {
    case MeasureShape::PerKvHead:
        return values.perHead[static_cast<std::size_t>(kvHead)];
    case MeasureShape::PerLayerQuery:
        return values.perHead.front();
    default:
        return values.perHead[static_cast<std::size_t>(queryHead)];
    }
}

/// Column name and value, in the order of the CSV.
std::vector<std::pair<std::string, Json>> columnsOf(const Row& row, const std::string& command) {
    const RunResult& r = row.result;
    const Fidelity& f = requireFidelity(r);
    const auto kept = static_cast<std::int64_t>(r.selection.heads[static_cast<std::size_t>(row.kvHead)].kept.size());
    std::vector<std::pair<std::string, Json>> columns = {
        {"capture", r.request.capture->info().fileName}, {"layer", row.layer}, {"query_head", row.queryHead}, {"kv_head", row.kvHead},
        {"policy", r.request.recorded ? r.request.recorded->policy : r.request.policy.policy},
        {"variant", r.request.recorded ? r.request.recorded->variant : r.request.policy.variant}, {"spec", row.spec},
        {"cut", r.request.cut.text}, {"cut_token", r.request.cut.token},
        {"budget", r.request.recorded ? r.request.recorded->budgetRequested : askedBudget(r).text()}, {"budget_requested_tokens", r.requested}, {"kept", kept},
        {"retention", static_cast<double>(kept) / static_cast<double>(r.visible)}, {"seed", r.request.seed}};
    for (const MeasureValues& values : row.measures)
        columns.push_back({values.id, valueFor(values, row.queryHead, row.kvHead)});
    columns.insert(columns.end(), {{"queries", f.queryCount}, {"first_query", f.firstQuery}, {"seen_queries", f.seenQueries},
                                   {"skipped", f.skipped}, {"stated", "before W_o"}, {"simulated", r.simulated},
                                   {"engine", r.engine}, {"arithmetic", r.arithmetic}, {"notes", fmt::format("{}", fmt::join(r.notes, "; "))},
                                   {"command", command}});
    return columns;
}

std::string cellText(const Json& value) {
    if (value.is_string())
        return value.get<std::string>();
    return value.is_number_float() ? numberText(value.get<double>()) : value.dump();
}

class MeasureCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("measure", "measure what a selection costs, over the queries after the cut");
        m_command->add_option("capture", m_capture, "capture file")->required();
        m_options.addTo(*m_command);
        m_command->add_option("--selection", m_selections, "a recorded list instead of a policy; may be repeated")->allow_extra_args(false);
        m_command->add_option("--layers", m_layers, "what is written, like 0,2-3; all by default");
        m_command->add_option("--kv-heads", m_heads, "what is written, like 0-1; all by default");
        m_command->add_option("--metrics", m_metrics, "output_error,retained_mass by default; `kvscope measures` lists them")->delimiter(',');
        m_command->add_option("--out", m_out, "FILE.json or FILE.csv")->required();
    }
    bool chosen() const override { return m_command->parsed(); }

    void run(const CommandContext& context) override {
        checkOutput(m_out, {".json", ".csv"});
        for (const std::string& metric : m_metrics)
            measureById(metric); // refused before any work is done
        const auto capture = openCapture(m_capture);
        const auto requests = makeRequests(capture);
        const auto heads = chosenKvHeads(m_heads, *capture);
        const auto runner = m_options.makeRunner();
        const Checkpoint progress = context.checkpoint("measure");
        std::vector<std::vector<std::pair<std::string, Json>>> rows;
        std::size_t done = 0;
        for (const RunRequest& request : requests) {
            const auto total = static_cast<double>(requests.size()), from = static_cast<double>(done++);
            const auto result = runner->run(request, progress.part(from / total, (from + 0.5) / total));
            const auto measures = runner->measure(*result, m_metrics, progress.part((from + 0.5) / total, (from + 1) / total));
            const auto& kvOfQ = capture->info().layerInfo(request.layer).kvOfQ;
            for (std::size_t q = 0; q < kvOfQ.size(); ++q)
                if (heads.empty() || std::binary_search(heads.begin(), heads.end(), kvOfQ[q]))
                    rows.push_back(columnsOf({*result, measures, request.layer.value, static_cast<int>(q), kvOfQ[q], specText(request)},
                                             context.commandLine()));
        }
        writeFileAtomically(m_out, m_out.ends_with(".json") ? jsonText(rows, context) : csvText(rows));
    }

private:
    static std::string specText(const RunRequest& request) {
        return request.recorded ? "recorded:" + request.recorded->policy : request.policy.text();
    }

    std::vector<RunRequest> makeRequests(const std::shared_ptr<const CaptureReader>& capture) const {
        std::vector<RunRequest> requests;
        const auto layers = chosenLayers(m_layers, *capture);
        if (!m_options.policies.empty() || m_selections.empty()) {
            const Cut cut = Cut::resolve(m_options.cut, *capture);
            for (const PolicySpec& spec : m_options.specs())
                for (const LayerIndex layer : layers)
                    requests.push_back(makeRequest(capture, layer, spec, cut, m_options.seed, true));
        }
        for (const std::string& path : m_selections) {
            const auto recorded = std::make_shared<const RecordedSelection>(readSelection(path));
            checkAgainst(*recorded, *capture);
            std::set<int> there;
            for (const RecordedHead& head : recorded->heads)
                there.insert(head.layer);
            for (const LayerIndex layer : layers)
                if (there.contains(layer.value)) {
                    PolicySpec none;
                    none.budget = Budget{};
                    RunRequest request = makeRequest(capture, layer, none, cutOf(*recorded, *capture), recorded->seed, true);
                    request.recorded = recorded;
                    requests.push_back(std::move(request));
                }
        }
        return requests;
    }

    static std::string csvText(const std::vector<std::vector<std::pair<std::string, Json>>>& rows) {
        std::string text;
        std::vector<std::string> names;
        for (const auto& row : rows) {
            std::vector<std::string> fields;
            names.clear();
            for (const auto& [name, value] : row) {
                names.push_back(name);
                fields.push_back(cellText(value));
            }
            text += text.empty() ? csvLine(names) + csvLine(fields) : csvLine(fields);
        }
        return text;
    }

    static std::string jsonText(const std::vector<std::vector<std::pair<std::string, Json>>>& rows, const CommandContext& context) {
        Json list = Json::array();
        for (const auto& row : rows) {
            Json object = Json::object();
            for (const auto& [name, value] : row)
                if (name != "command")
                    object[name] = value;
            list.push_back(std::move(object));
        }
        return Json{{"format", "kvscope-measures"}, {"version", 1}, {"command", context.commandLine()}, {"rows", list}}.dump(1) + "\n";
    }

    CLI::App* m_command = nullptr;
    RunOptions m_options;
    std::vector<std::string> m_selections, m_metrics{"output_error", "retained_mass"};
    std::string m_capture, m_layers, m_heads, m_out;
};

} // namespace

std::unique_ptr<Command> makeMeasureCommand() { return std::make_unique<MeasureCommand>(); }

} // namespace kvscope
