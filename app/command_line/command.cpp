// Shared by subcommands: options that name a run, lists of layers and heads, progress, quoting.
#include "app/command_line/command.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/capture/capture.h"
#include "core/policies/policy.h"
#include "gpu/engine_factory.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <sstream>
#include <unistd.h>

namespace kvscope {

namespace {

/// The budget of --retention ("0.25") or --budget ("2048"). Throws Error naming the option.
Budget parseBudgetOption(const std::string& text, Budget::Unit unit) {
    const bool tokens = unit == Budget::Unit::Tokens;
    const std::string option = tokens ? "--budget" : "--retention";
    if (text.empty() || text.back() == 't')
        throw Error({"'" + text + "' is not a number", option,
                     tokens ? "Give whole tokens, like --budget 2048" : "Give a fraction, like --retention 0.25"});
    try {
        return Budget::parse(tokens ? text + "t" : text);
    } catch (const Error&) {
        throw Error({"'" + text + "' is " +
                         (tokens ? "no whole number of tokens, at least 1" : "no fraction from above 0 to 1"),
                     option, tokens ? "Give whole tokens, like --budget 2048" : "For tokens write --budget"});
    }
}

} // namespace

CommandContext::CommandContext(std::string commandLine, std::stop_token stop)
    : m_commandLine(std::move(commandLine)), m_stop(std::move(stop)) {}

Checkpoint CommandContext::checkpoint(const std::string& what, double layers) const {
    if (!isatty(STDERR_FILENO)) return Checkpoint(m_stop);
    auto mutex = std::make_shared<std::mutex>();
    auto shown = std::make_shared<int>(-1);
    const auto start = std::chrono::steady_clock::now();
    return Checkpoint(m_stop, [=](double done, double total) {
        const std::lock_guard lock(*mutex);
        const int percent = total > 0 ? static_cast<int>(100 * done / total) : 0;
        if (percent == *shown) return;
        *shown = percent;
        constexpr int kWidth = 30;
        const auto filled = static_cast<std::size_t>(std::clamp(percent, 0, 100) * kWidth / 100);
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        const std::string rate =
            layers > 0 && done > 0 ? fmt::format(", {:.1f} layers/s", layers * done / total / elapsed.count()) : "";
        fmt::print(stderr, "\r{} [{}{}] {:3d} %{}", what, std::string(filled, '#'), std::string(kWidth - filled, ' '),
                   percent, rate);
        std::fflush(stderr);
    });
}

void CommandContext::clearProgress() const {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K");
}

bool Command::chosen() const { return m_command->parsed(); }

void RunOptions::addTo(CLI::App& app, bool withBudget) {
    app.add_option("--policy", policies,
                   "ID[:VARIANT][,parameter=value]...[@BUDGET], one or more. BUDGET: 0.25 (fraction kept), 2048t "
                   "(tokens), or tau=T[:proxy|:k=K|:FILE.json|:FILE.csv], the retention that keeps a quality "
                   "(by the capture's measured rows, a proxy, a curvature, a calibration, a table)")
        ->allow_extra_args(false);
    if (withBudget) {
        app.add_option("--retention", retentionText, "fraction kept, for policies without @BUDGET");
        app.add_option("--budget", budgetText, "tokens kept, for policies without @BUDGET");
    }
    app.add_option("--cut", cut, "default, segment:context, segment:question, last:N, a token number or none");
    addSeedTo(app, seed, "of random choices");
    addEngineTo(app);
}

CLI::Option* addSeedTo(CLI::App& app, std::uint64_t& seed, const std::string& what) {
    const auto read = [&seed](const std::string& text) {
        const auto whole = parseNumber<std::uint64_t>(text);
        if (!whole)
            throw CLI::ValidationError("--seed",
                                       "the seed '" + text +
                                           "' is no whole number from 0 to 18446744073709551615. Give decimal "
                                           "digits, like --seed 42");
        seed = *whole;
    };
    return app.add_option_function<std::string>("--seed", read, what)->type_name("UINT");
}

void RunOptions::addEngineTo(CLI::App& app) {
    app.add_option("--engine", engine, "cpu, torch (LibTorch on the CPU) or cuda (NVIDIA GPU)")
        ->type_name("{cpu,torch,cuda}");
    app.add_option("--threads", threads, "of the engine; 0: all cores")->check(CLI::Range(0, 1024));
    app.add_option("--gpu-memory", gpuMemory, "GiB for tensors that stay on the GPU; 0: most of what is free")
        ->check(CLI::Range(0.0, 1024.0));
    app.add_option("--arithmetic", arithmetic,
                   "exact (default), or fast: float sums, results not comparable to the last token")
        ->check(CLI::IsMember({"exact", "fast"}));
}

Arithmetic RunOptions::arithmeticOr(Arithmetic otherwise) const {
    if (arithmetic.empty()) return otherwise;
    return arithmetic == "fast" ? Arithmetic::Fast : Arithmetic::Exact;
}

std::shared_ptr<const LayerRunner> RunOptions::makeRunner(Arithmetic otherwise) const {
    EngineChoice choice{engine, threads, arithmeticOr(otherwise)};
    choice.memoryBytes = gpuMemory > 0 ? static_cast<std::size_t>(gpuMemory * 0x1p30) : 0;
    return std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeEngine(choice)));
}

void RunOptions::refuseBudgetAlone() const {
    if (retentionText.empty() && budgetText.empty()) return;
    throw Error({"a budget is given, but no policy to use it", retentionText.empty() ? "--budget" : "--retention",
                 "Name policies with --policy; a session or a recorded list has a budget of its own"});
}

std::vector<PolicySpec> RunOptions::specs() const {
    if (!retentionText.empty() && !budgetText.empty())
        throw Error({"--retention and --budget contradict each other", "", "Give one of them"});
    std::vector<Budget> budgets;
    if (!retentionText.empty()) budgets.push_back(parseBudgetOption(retentionText, Budget::Unit::Fraction));
    if (!budgetText.empty()) budgets.push_back(parseBudgetOption(budgetText, Budget::Unit::Tokens));
    return specs(budgets);
}

std::vector<PolicySpec> RunOptions::specs(const std::vector<Budget>& budgets) const {
    if (policies.empty())
        throw Error({"no policy is named", "--policy", "Add --policy ID@BUDGET; `kvscope policies` lists them"});
    std::vector<PolicySpec> parsed;
    for (const std::string& text : policies) {
        PolicySpec spec = PolicySpec::parse(text);
        std::vector<Budget> own = spec.budget ? std::vector{*spec.budget} : budgets;
        if (own.empty() && !policyById(spec.policy).card().usesBudget) own.emplace_back();
        if (own.empty())
            throw Error({"policy '" + text + "' has no budget", "--policy",
                         "Write " + text + "@0.25 (fraction kept) or " + text +
                             "@2048t (tokens), or add --retention or --budget"});
        for (const Budget& budget : own) {
            spec.budget = budget;
            parsed.push_back(spec);
        }
    }
    return parsed;
}

void BudgetLists::addTo(CLI::App& app) {
    app.add_option("--retention", retentions, "fractions kept, like 0.05,0.1,0.25, for policies without @BUDGET")
        ->allow_extra_args(false);
    app.add_option("--budget", tokens, "tokens kept, like 512,2048, for policies without @BUDGET")
        ->allow_extra_args(false);
}

std::vector<Budget> BudgetLists::parsed() const {
    std::vector<Budget> budgets;
    for (const auto& [lists, unit] : {std::pair(&retentions, Budget::Unit::Fraction), {&tokens, Budget::Unit::Tokens}})
        for (const std::string& list : *lists)
            for (const std::string& text : splitAtCommas(list)) budgets.push_back(parseBudgetOption(text, unit));
    return budgets;
}

std::vector<int> parseRangeList(const std::string& text, const std::string& option) {
    std::set<int> values;
    for (const std::string& part : splitAtCommas(text)) {
        const std::size_t dash = part.find('-');
        const auto first = parseNumber<int>(part.substr(0, dash)),
                   last = dash == std::string::npos ? first : parseNumber<int>(part.substr(dash + 1));
        if (!first || !last || *last < *first || *last - *first > 1'000'000 || text.ends_with(','))
            throw Error({"'" + text + "' is no list of numbers and ranges", option, "Write it like 0,2-3"});
        for (std::int64_t value = *first; value <= *last; ++value) // 64 bits: *last may be the largest int
            values.insert(static_cast<int>(value));
    }
    return {values.begin(), values.end()};
}

std::vector<LayerIndex> chosenLayers(const std::string& text, const CaptureReader& capture) {
    std::vector<LayerIndex> layers;
    if (text.empty())
        for (const LayerInfo& info : capture.info().layers) layers.push_back(info.layer);
    for (const int layer : parseRangeList(text, "--layers"))
        layers.push_back(capture.info().layerInfo(LayerIndex(layer)).layer);
    return layers;
}

std::vector<int> chosenKvHeads(const std::string& text, const CaptureReader& capture) {
    const std::vector<int> heads = parseRangeList(text, "--kv-heads");
    if (!heads.empty()) checkHead(heads.back(), capture.info().numKvHeads, "KV head", "--kv-heads", capture.info());
    return heads;
}

void checkHead(int head, int count, const char* kind, const std::string& option, const CaptureInfo& info) {
    if (head < 0 || head >= count)
        throw Error({fmt::format("there is no {} {}", kind, head), option,
                     fmt::format("The capture has {}s 0 to {}", kind, count - 1), info.path});
}

RunRequest makeRequest(std::shared_ptr<const CaptureReader> capture, LayerIndex layer, const PolicySpec& spec,
                       const Cut& cut, std::uint64_t seed, bool measure) {
    return {std::move(capture), layer, spec, *spec.budget, cut, seed, measure, nullptr};
}

void refuseRepeated(const std::vector<std::string>& captures) {
    for (auto capture = captures.begin(); capture != captures.end(); ++capture)
        if (std::any_of(captures.begin(), capture,
                        [&](const std::string& other) { return isSameFile(other, *capture); }))
            throw Error({"a capture is named twice", "captures", "Name each once", *capture});
}

std::vector<std::string> splitAtCommas(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

std::vector<std::string> withoutRepeats(std::vector<std::string> texts) {
    auto end = texts.begin();
    for (std::string& text : texts)
        if (std::find(texts.begin(), end, text) == end) std::swap(*end++, text);
    texts.erase(end, texts.end());
    return texts;
}

namespace {

// CLI11 options with many values would also take the capture that follows them.
const std::string kOption = "--policy";

bool isPolicy(const std::string& word, bool bare) {
    const std::string id = word.substr(0, word.find_first_of(":,@"));
    return (id != word || bare) && findPolicy(id) && !std::filesystem::exists(word);
}

} // namespace

std::vector<std::string> withEachPolicyNamed(const std::vector<std::string>& words) {
    std::vector<std::string> named;
    const bool viewComes = words.size() > 1 && words[0] == "plot" && words[1].starts_with("-");
    bool isValue = false, afterPolicy = false;
    for (const std::string& word : words) {
        const bool further = !isValue && afterPolicy && isPolicy(word, !viewComes);
        if (further) named.push_back(kOption);
        named.push_back(word);
        afterPolicy = further || isValue || word.starts_with(kOption + "=");
        isValue = word == kOption;
    }
    return named;
}

} // namespace kvscope
