// `kvscope sweep`: every measure for everything against everything, as one CSV.
#include "app/command_line/command.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/run/sweep.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <sstream>

namespace kvscope {

namespace {

std::vector<std::string> splitCommas(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');)
        parts.push_back(part);
    return parts;
}

class SweepCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("sweep", "measure policies over retentions, parameters, seeds and captures");
        m_command->add_option("captures", m_captures, "capture files")->required();
        m_options.addTo(*m_command, false);
        m_command->add_option("--retention", m_retentions, "fractions kept, like 0.05,0.1,0.25");
        m_command->add_option("--budget", m_budgets, "tokens kept, like 128,256");
        m_command->add_option("--vary", m_varied, "parameter=v1,v2,...; may be repeated")->allow_extra_args(false);
        m_command->add_option("--seeds", m_seeds, "like 0-9");
        m_command->add_option("--layers", m_layers, "like 0,2-3; all by default");
        m_command->add_option("--out", m_out, "FILE.csv")->required();
    }
    bool chosen() const override { return m_command->parsed(); }

    void run(const CommandContext& context) override {
        requireExtension(m_out, {".csv"});
        const SweepRequest request = makeRequest();
        const auto runner = m_options.makeRunner();
        std::string csv = "# command: " + context.commandLine() + "\n" + sweepCsvHeader(request);
        runSweep(*runner, request, context.checkpoint("sweep"), [&](const SweepRow& row) { csv += sweepCsvLine(request, row); });
        writeFileAtomically(m_out, csv);
    }

private:
    SweepRequest makeRequest() const {
        SweepRequest request;
        if (m_options.policies.empty())
            throw Error({.sentence = "no policy is named", .place = "--policy", .remedy = "Add --policy ID; `kvscope policies` lists them"});
        for (const std::string& text : m_options.policies)
            request.policies.push_back(PolicySpec::parse(text));
        for (const std::string& text : splitCommas(m_retentions))
            request.budgets.push_back(Budget::parse(text));
        for (const std::string& text : splitCommas(m_budgets))
            request.budgets.push_back(Budget::parse(text + "t"));
        for (const std::string& text : m_varied) {
            const std::size_t equals = text.find('=');
            if (equals == std::string::npos)
                throw Error({.sentence = "'" + text + "' varies nothing", .place = "--vary", .remedy = "Write it like window=8,16,32"});
            request.varied.push_back({text.substr(0, equals), splitCommas(text.substr(equals + 1))});
        }
        if (!m_seeds.empty()) {
            const auto seeds = parseRangeList(m_seeds, "--seeds");
            request.seeds.assign(seeds.begin(), seeds.end());
        } else {
            request.seeds = {m_options.seed};
        }
        request.cut = m_options.cut;
        request.layers = parseRangeList(m_layers, "--layers");
        for (const std::string& path : m_captures)
            request.captures.push_back(openCapture(path));
        return request;
    }

    CLI::App* m_command = nullptr;
    RunOptions m_options;
    std::vector<std::string> m_captures, m_varied;
    std::string m_retentions, m_budgets, m_seeds, m_layers, m_out;
};

} // namespace

std::unique_ptr<Command> makeSweepCommand() { return std::make_unique<SweepCommand>(); }

} // namespace kvscope
