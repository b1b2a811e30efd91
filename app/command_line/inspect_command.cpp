// `kvscope inspect`: what a capture holds, what is missing or contradictory, and what that disables.
#include "app/command_line/command.h"
#include "app/study/pane_request.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/capture/capture_doctor.h"
#include "core/capture/open_capture.h"
#include "core/policies/policy.h"
#include "core/run/layer_reads.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

struct Disabled {
    std::string policy, reason;
};

/// Policies that this capture cannot run with their first variant, with the reasons.
std::vector<Disabled> disabledPolicies(const CaptureReader& capture) {
    std::vector<Disabled> disabled;
    for (const Policy* policy : allPolicies()) {
        if (!policy->card().colonParameter.empty()) continue; // what a formula needs depends on its text
        const std::string& id = policy->card().id;
        std::string missing;
        for (const LayerInfo& layer : capture.info().layers)
            if (missing.empty()) missing = missingInput(specOfVariant(id, {}), capture, layer);
        if (!missing.empty()) disabled.push_back({id, "needs " + missing + ", which some layers lack"});
    }
    return disabled;
}

/// One line for each source, with the facts that came from it.
void printSources(const CaptureInfo& info) {
    std::vector<std::pair<std::string, std::vector<std::string>>> lines;
    for (const auto& [fact, source] : info.sources) {
        const auto known = std::ranges::find(lines, source, &decltype(lines)::value_type::first);
        if (known == lines.end())
            lines.push_back({source, {fact}});
        else
            known->second.push_back(fact);
    }
    for (const auto& [source, facts] : lines) fmt::print("  known from   {}: {}\n", source, fmt::join(facts, ", "));
}

Json captureJson(const CaptureReader& capture) {
    const CaptureInfo& info = capture.info();
    Json sources = Json::object();
    for (const auto& [fact, source] : info.sources) sources[fact] = source;
    Json segments = Json::array(), layers = Json::array();
    for (const Segment& s : capture.tokens().segments)
        segments.push_back({{"kind", std::string(segmentName(s.kind))}, {"begin", s.begin}, {"end", s.end}});
    for (const LayerInfo& l : info.layers)
        layers.push_back({{"layer", l.layer.value},
                          {"attention", l.attentionType},
                          {"scaling", l.scaling},
                          {"softcap", l.softcap},
                          {"qk_norm", l.qkNorm},
                          {"sliding_window", l.slidingWindow},
                          {"sinks", !l.sinks.empty()},
                          {"rope", l.hasRope},
                          {"queries", l.queryCount},
                          {"stored", std::string(storedTypeName(l.storedType))},
                          {"k_pre", l.hasKeysPreRope},
                          {"o_proj", l.hasOutputProjection}});
    Json scores = Json::array();
    for (const auto& [name, spec] : policiesOfScores(info.path))
        scores.push_back({{"name", name}, {"policy", spec.text()}});
    Json checks = Json::array();
    for (const CaptureCheck& c : info.checks)
        checks.push_back({{"name", c.name},
                          {"outcome", c.outcome},
                          {"difference", c.difference},
                          {"tolerance", c.tolerance},
                          {"unit", c.unit},
                          {"rows", c.rows},
                          {"note", c.note}});
    return {{"file", info.path},
            {"hash", info.hash},
            {"hash_stored", info.hasStoredHash},
            {"bytes", info.fileBytes},
            {"model", info.modelId},
            {"revision", info.modelRevision},
            {"tokens", info.numTokens},
            {"model_layers", info.numLayers},
            {"query_heads", info.numQueryHeads},
            {"kv_heads", info.numKvHeads},
            {"head_dim", info.headDim},
            {"value_dim", info.valueDim},
            {"sources", sources},
            {"segments", segments},
            {"layers", layers},
            {"self_check", checks},
            {"scores", scores}};
}

void printCapture(const CaptureReader& capture) {
    const CaptureInfo& info = capture.info();
    fmt::print("{}\n  model        {} {}\n  tokens       {}\n  layers       {} of {} in the file\n  heads        {} "
               "query, {} KV\n"
               "  head dim     {} (values {})\n  size         {:.1f} MiB\n  hash         {}\n",
               info.path, info.modelId, info.modelRevision, info.numTokens, info.layers.size(), info.numLayers,
               info.numQueryHeads, info.numKvHeads, info.headDim, info.valueDim,
               static_cast<double>(info.fileBytes) / 1048576, info.hash);
    if (!info.notes.empty()) fmt::print("  notes        {}\n", info.notes);
    printSources(info);
    for (const Segment& s : capture.tokens().segments)
        fmt::print("  {:<12} tokens {} to {} (end not included)\n", segmentName(s.kind), s.begin, s.end);
    for (const auto& [name, spec] : policiesOfScores(info.path)) // quoted for a shell
        fmt::print("  scores       {}: --policy '{}'\n", name, spec.text());
    fmt::print("\n  layer  stored  queries  scaling   softcap  q/k norm  window  RoPE  o_proj\n");
    for (const LayerInfo& l : info.layers)
        fmt::print("  {:>5}  {:<6}  {:>7}  {:<8.4g}  {:<7}  {:<8}  {:>6}  {:<4}  {}\n", l.layer.value,
                   storedTypeName(l.storedType), l.queryCount, l.scaling,
                   l.softcap == 0 ? "none" : fmt::format("{:.4g}", l.softcap), l.qkNorm ? "yes" : "no",
                   l.slidingWindow == 0 ? "all" : std::to_string(l.slidingWindow), l.hasRope ? "yes" : "no",
                   l.hasOutputProjection ? "yes" : "no");
}

class InspectCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("inspect", "print what a capture holds and what is wrong with it");
        m_command->add_option("capture", m_capture, "capture file")->required();
        m_command->add_flag(
            "--verify", m_verify,
            "read everything: hash, NaN and infinity, RoPE; the exit code is 2 where a finding is an error");
        m_command->add_flag("--json", m_asJson, "as one object");
    }

    void run(const CommandContext& context) override {
        const auto capture = openCapture(m_capture);
        const auto findings = examineCapture(*capture, {.readEverything = m_verify}, context.checkpoint("verify"));
        const auto disabled = disabledPolicies(*capture);
        context.clearProgress();
        print(*capture, findings, disabled);
        const auto errors = std::ranges::count(findings, Severity::Error, &CaptureFinding::severity);
        if (m_verify && errors > 0) // scripts read the exit code
            throw Error({fmt::format("errors among the findings: {}", errors), "--verify",
                         "Do as the findings say, or capture the prompt again", m_capture});
    }

private:
    void print(const CaptureReader& capture, const std::vector<CaptureFinding>& findings,
               const std::vector<Disabled>& disabled) const {
        if (m_asJson) {
            Json json = captureJson(capture);
            json["findings"] = Json::array();
            for (const CaptureFinding& f : findings)
                json["findings"].push_back({{"severity", std::string(severityName(f.severity))},
                                            {"what", f.what},
                                            {"place", f.place},
                                            {"remedy", f.remedy}});
            json["disabled_policies"] = Json::array();
            for (const Disabled& d : disabled)
                json["disabled_policies"].push_back({{"policy", d.policy}, {"reason", d.reason}});
            fmt::print("{}\n", jsonLines(json, 2));
            return;
        }
        printCapture(capture);
        fmt::print("\n");
        for (const CaptureFinding& f : findings)
            fmt::print("  {:<8} {}{}{}\n", severityName(f.severity), f.what,
                       f.place.empty() ? "" : " (" + f.place + ")", f.remedy.empty() ? "" : ". " + f.remedy);
        for (const Disabled& d : disabled) fmt::print("  disabled {}: {}\n", d.policy, d.reason);
    }

    std::string m_capture;
    bool m_verify = false, m_asJson = false;
};

} // namespace

std::unique_ptr<Command> makeInspectCommand() { return std::make_unique<InspectCommand>(); }

} // namespace kvscope
