#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/arithmetic.h"
#include "core/run/run.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace kvscope {

struct CaptureInfo;

/// Shared state of a running subcommand: the stop token of Ctrl+C, the progress bar, the command line as typed.
class CommandContext {
public:
    CommandContext(std::string commandLine, std::stop_token stop);
    const std::string& commandLine() const { return m_commandLine; }
    /// Progress goes to stderr when that is a terminal.
    /// `layers`: how many the work goes through, shown as a rate; 0: no rate.
    Checkpoint checkpoint(const std::string& what, double layers = 0) const;
    void clearProgress() const;
    bool pipes() const { return m_pipes; } ///< the output goes to standard output: its path is temporary
    void setPipes(bool pipes) { m_pipes = pipes; }

private:
    bool m_pipes = false;
    std::string m_commandLine;
    std::stop_token m_stop;
};

/// A subcommand: its options live in the object, `run` does the work and throws Error or Cancelled.
class Command {
public:
    virtual ~Command() = default;
    virtual void addTo(CLI::App& app) = 0; ///< makes m_command
    bool chosen() const;
    virtual void run(const CommandContext& context) = 0;

protected:
    CLI::App* m_command = nullptr;
};

std::unique_ptr<Command> makePoliciesCommand();
std::unique_ptr<Command> makeViewsCommand();
std::unique_ptr<Command> makeMeasuresCommand();
std::unique_ptr<Command> makeReproduceCommand();
std::unique_ptr<Command> makeInspectCommand();
std::unique_ptr<Command> makeSynthCommand();
std::unique_ptr<Command> makeConvertCommand();
std::unique_ptr<Command> makeEvictCommand();
std::unique_ptr<Command> makeMeasureCommand();
std::unique_ptr<Command> makeSweepCommand();
std::unique_ptr<Command> makeCalibrateCommand();
std::unique_ptr<Command> makePlotCommand();
std::unique_ptr<Command> makeTheoryCommand();
std::unique_ptr<Command> makeReportCommand();
std::unique_ptr<Command> makeHandoutCommand();
std::unique_ptr<Command> makeLiveCommand();
std::unique_ptr<Command> makeSchemaCommand();
std::unique_ptr<Command> makeCompletionCommand();
std::unique_ptr<Command> makeManCommand();

/// Several budgets, for policies without one of their own.
struct BudgetLists {
    std::vector<std::string> retentions, tokens; ///< as typed: "0.05,0.1" and "512,2048"

    void addTo(CLI::App& app); ///< --retention and --budget
    /// The retentions, then the tokens. Throws Error naming the option.
    std::vector<Budget> parsed() const;
};

/// Options that name a run: policies, budget, cut, seed, engine. Shared by the subcommands that run policies.
struct RunOptions {
    std::vector<std::string> policies;
    std::string retentionText, budgetText; ///< as typed; empty: not given
    std::string cut = "default", engine = "cpu";
    std::uint64_t seed = 0;
    int threads = 0;
    std::string arithmetic; ///< empty: the session's, else exact
    double gpuMemory = 0;   ///< GiB

    void addTo(CLI::App& app, bool withBudget = true);
    void addEngineTo(CLI::App& app);                     ///< the options of the engine alone
    Arithmetic arithmeticOr(Arithmetic otherwise) const; ///< as typed, else `otherwise`
    /// Throws Error for an engine that does not work here.
    std::shared_ptr<const LayerRunner> makeRunner(Arithmetic otherwise = Arithmetic::Exact) const;
    /// Throws Error where --retention or --budget is given: for commands that also run without --policy.
    void refuseBudgetAlone() const;
    /// The parsed policies, each with its own budget, --retention or --budget. Throws Error where one is missing.
    std::vector<PolicySpec> specs() const;
    /// Each policy with its own budget, else with every one of `budgets`. Throws Error when there is none.
    std::vector<PolicySpec> specs(const std::vector<Budget>& budgets) const;
};

/// --seed: decimal digits, up to 64 bits. Other texts are refused when the command line is parsed.
CLI::Option* addSeedTo(CLI::App& app, std::uint64_t& seed, const std::string& what);

/// "0,2-3" -> 0 2 3. Throws Error naming the option.
std::vector<int> parseRangeList(const std::string& text, const std::string& option);
/// The layers asked for, or all of the capture. Throws Error for a layer that the capture lacks.
std::vector<LayerIndex> chosenLayers(const std::string& text, const CaptureReader& capture);
std::vector<int> chosenKvHeads(const std::string& text, const CaptureReader& capture);

/// Throws Error, naming the option, unless the capture has this `kind` of head ("KV head", "query head").
void checkHead(int head, int count, const char* kind, const std::string& option, const CaptureInfo& info);

/// A request for one layer of a spec that has a budget.
RunRequest makeRequest(std::shared_ptr<const CaptureReader> capture, LayerIndex layer, const PolicySpec& spec,
                       const Cut& cut, std::uint64_t seed, bool measure);

/// The JSON Schema of resources/schemas with this name, or nothing.
std::string_view schemaText(std::string_view id);

/// Throws Error where a capture is named twice, by any of its names: it would count as two samples.
void refuseRepeated(const std::vector<std::string>& captures);

/// "a,b" -> a b.
std::vector<std::string> splitAtCommas(const std::string& text);
/// Each text once, where it stands first.
std::vector<std::string> withoutRepeats(std::vector<std::string> texts);

/// Expands `--policy A B` to `--policy A --policy B`. A word after a policy counts as one when it begins with a
/// policy's id and is no file, so captures may stand anywhere. For `plot`, a bare id before the view is taken as the
/// view, because some views share a policy's id.
std::vector<std::string> withEachPolicyNamed(const std::vector<std::string>& words);

} // namespace kvscope
