// `kvscope evict`: the kept list of a policy as a file.
#include "app/command_line/command.h"
#include "app/command_line/random_options.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/policies/step_log.h"
#include "core/run/record_results.h"
#include "core/run/run_grid.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

class EvictCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("evict", "write the kept tokens of a policy");
        m_command->add_option("capture", m_capture, "capture file")->required();
        m_options.addTo(*m_command);
        m_random.addTo(*m_command);
        m_command->add_option("--layers", m_layers, "what is written, like 0,2-3; all by default");
        m_command->add_option("--kv-heads", m_heads, "what is written, like 0-1; all by default");
        m_command->add_flag("--scores", m_scores, "write the scores of all tokens too");
        m_command->add_option("--steps", m_steps,
                              "FILE.json for what the policy wrote down while it decided, per layer");
        m_command->add_option("--out", m_out, "FILE.json, FILE.csv or FILE.h5")->required();
    }

    void run(const CommandContext& context) override {
        const auto specs = m_options.specs();
        if (specs.size() != 1) throw Error({"a list holds one policy", "--policy", "Run evict once per policy"});
        const auto capture = openCapture(m_capture);
        const Cut cut = Cut::resolve(m_options.cut, *capture);
        const auto layers = chosenLayers(m_layers, *capture);
        RecordFilter filter{chosenKvHeads(m_heads, *capture), m_scores, context.commandLine()};
        const auto runner = m_options.makeRunner();
        const auto random = m_random.sourceFor(capture->info());
        const Checkpoint progress = context.checkpoint("evict");
        std::vector<GridPoint> points;
        for (const LayerIndex layer : layers) {
            points.push_back({makeRequest(capture, layer, specs[0], cut, m_options.seed, false)});
            points.back().run.random = random;
            points.back().run.recordSteps = !m_steps.empty();
        }
        std::vector<std::shared_ptr<const RunResult>> results;
        runGrid(*runner, points, progress,
                {[&](std::size_t, const auto& result, const Checkpoint&) { results.push_back(result); }},
                LayersLeft::Forget);
        if (!m_steps.empty()) writeFileAtomically(m_steps, stepsText(results));
        m_random.finish();
        writeSelection(m_out, recordSelection(results, filter), capture->tokens());
        context.clearProgress();
        for (const std::string& note : notesOf(results)) fmt::print(stderr, "{}\n", note);
    }

private:
    /// One object per layer: the layer's number, and the step log under the names that the policy's explanation uses.
    static std::string stepsText(const std::vector<std::shared_ptr<const RunResult>>& results) {
        std::string text;
        for (const auto& result : results) {
            if (!result->log)
                throw Error({result->request.policy.policy + " writes no steps", "--steps",
                             "Leave it out: this policy decides in one step"});
            text += fmt::format("{}{{\"layer\":{},\"log\":{}}}", text.empty() ? "" : ",\n", result->request.layer.value,
                                result->log->json());
        }
        return "[" + text + "]\n";
    }

    RunOptions m_options;
    RandomOptions m_random;
    std::string m_capture, m_layers, m_heads, m_out, m_steps;
    bool m_scores = false;
};

} // namespace

std::unique_ptr<Command> makeEvictCommand() { return std::make_unique<EvictCommand>(); }

} // namespace kvscope
