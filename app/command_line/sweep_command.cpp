// `kvscope sweep`: many runs as one table. Rows are written to a temporary file as they are computed, and the table
// gets its name when it is complete.
#include "app/command_line/command.h"
#include "app/command_line/random_options.h"
#include "core/base/atomic_file.h"
#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/capture/open_capture.h"
#include "core/studies/sweep.h"

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <utility>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

/// The cell as JSON: numbers and Booleans as such, null where there is no value. A budget in tokens remains the text
/// "512t".
Json cellJson(const std::string& column, const std::string& text) {
    static const std::set<std::string> kTexts = {"capture", "capture_hash", "policy",     "variant", "spec",
                                                 "cut",     "engine",       "arithmetic", "notes"};
    if (kTexts.contains(column)) return text;
    if (text.empty()) return nullptr;
    Json json = parsedOrderedJson(text);
    return json.is_number() || json.is_boolean() ? json : Json(text);
}

/// The table as CSV, where every row ends with the command, or as one JSON object with one row per line.
class TableText {
public:
    TableText(bool asJson, std::vector<std::string> columns, std::string command)
        : m_asJson(asJson), m_columns(std::move(columns)), m_command(std::move(command)) {}

    std::string head() const {
        if (!m_asJson) return line(m_columns, "command");
        return R"({"format": "kvscope-sweep", "version": 1, "command": )" + jsonLine(Json(m_command)) + ", \"rows\": [";
    }
    std::string row(const std::vector<std::string>& fields) {
        if (!m_asJson) return line(fields, m_command);
        Json row;
        for (std::size_t i = 0; i < m_columns.size(); ++i) row[m_columns[i]] = cellJson(m_columns[i], fields[i]);
        return std::exchange(m_separator, ",\n") + jsonLine(row);
    }
    std::string end() const { return m_asJson ? "\n]}\n" : ""; }

private:
    static std::string line(std::vector<std::string> fields, const std::string& last) {
        fields.push_back(last);
        return csvLine(fields);
    }

    bool m_asJson;
    std::vector<std::string> m_columns;
    std::string m_command, m_separator = "\n";
};

/// The values between commas. Commas inside parentheses or brackets, as in a formula, do not separate values.
std::vector<std::string> valuesIn(const std::string& text) {
    std::vector<std::string> values;
    int depth = 0;
    for (const std::string& part : splitAtCommas(text)) {
        if (depth > 0)
            values.back().append(",").append(part);
        else
            values.push_back(part);
        for (const char c : part) depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    }
    return values;
}

VariedParameter parseVaried(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw Error({"'" + text + "' names no parameter and values", "--vary", "Write it like sink=0,4,16"});
    return {text.substr(0, equals), valuesIn(text.substr(equals + 1))};
}

class SweepCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command =
            app.add_subcommand("sweep", "run policies over budgets, parameters, seeds and captures into one table");
        m_command->add_option("captures", m_captures, "capture files")->required();
        m_options.addTo(*m_command, false);
        m_random.addTo(*m_command, false);
        m_budgets.addTo(*m_command);
        m_command->add_option("--vary", m_varied, "parameter=v1,v2,...; may be repeated")->allow_extra_args(false);
        m_command->add_option("--seeds", m_seeds, "like 0-9; --seed by default");
        m_command->add_option("--layers", m_layers, "like 0,2-3; all by default");
        m_command->add_option("--metrics", m_metrics, "further columns; `kvscope measures` lists them")->delimiter(',');
        m_command->add_flag("--work", m_work,
                            "count the operations and bytes of each choice: it is made once more, from nothing");
        m_command->add_option("--out", m_out, "FILE.csv or FILE.json; kvscope-parquet reads the latter")->required();
    }

    void run(const CommandContext& context) override {
        SweepRequest request = makeRequest();
        m_random.checkSeeds(request.seeds.size());
        if (m_random.replays() && request.captures.size() > 1)
            throw Error(
                {"random numbers of a file belong to one capture", "--uniforms, --sketch", "Sweep one capture"});
        request.random = m_random.sourceFor(request.captures.front()->info());
        const auto runner = m_options.makeRunner();
        AtomicFile file(m_out);
        std::ofstream table(file.temporaryPath(), std::ios::binary);
        TableText text(m_out.ends_with(".json"), sweepColumns(request), context.commandLine());
        table << text.head();
        double layers = 0;
        for (const auto& capture : request.captures)
            layers +=
                static_cast<double>(request.layers.empty() ? capture->info().layers.size() : request.layers.size());
        const Checkpoint progress = context.checkpoint("sweep", layers);
        runSweep(*runner, request, progress, [&](const SweepRow& row) {
            table << text.row(sweepFields(request, row));
            if (!table) failWrite();
        });
        table << text.end();
        table.close();
        if (!table) failWrite();
        file.commit();
    }

private:
    SweepRequest makeRequest() const {
        SweepRequest request;
        for (const std::string& path : m_captures) request.captures.push_back(openCapture(path));
        for (const std::string& text : m_options.policies) request.policies.push_back(PolicySpec::parse(text));
        if (request.policies.empty())
            throw Error({"no policy is named", "--policy", "Add --policy ID; `kvscope policies` lists them"});
        request.budgets = m_budgets.parsed();
        std::set<std::string> named;
        for (const std::string& text : m_varied) {
            request.varied.push_back(parseVaried(text));
            if (!named.insert(request.varied.back().id).second)
                throw Error({"the parameter " + request.varied.back().id + " is varied twice", "--vary",
                             "Give all its values at once, like " + request.varied.back().id + "=v1,v2"});
        }
        request.seeds = {m_options.seed};
        if (!m_seeds.empty()) {
            const std::vector<int> seeds = parseRangeList(m_seeds, "--seeds");
            request.seeds.assign(seeds.begin(), seeds.end());
        }
        request.cut = m_options.cut;
        request.measures = withoutRepeats(m_metrics);
        std::erase_if(request.measures, // these two have columns anyway
                      [](const std::string& id) { return id == "output_error" || id == "retained_mass"; });
        request.countWork = m_work;
        request.layers = parseRangeList(m_layers, "--layers");
        return request;
    }

    [[noreturn]] void failWrite() const {
        throw Error({"the table cannot be written", "--out", "Check that the disk is not full", m_out});
    }

    RunOptions m_options;
    RandomOptions m_random;
    BudgetLists m_budgets;
    std::vector<std::string> m_captures, m_varied, m_metrics;
    std::string m_seeds, m_layers, m_out;
    bool m_work = false;
};

} // namespace

std::unique_ptr<Command> makeSweepCommand() { return std::make_unique<SweepCommand>(); }

} // namespace kvscope
