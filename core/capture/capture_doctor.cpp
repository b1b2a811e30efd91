// The capture doctor: compares a capture's metadata and tensors with each other and reports what is missing or
// contradictory and what that disables. Checks that read every tensor run only on request.
#include "core/capture/capture_doctor.h"

#include "core/base/error.h"
#include "core/base/row_source.h"
#include "core/capture/capture_metadata.h"
#include "core/capture/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvscope {

std::string_view severityName(Severity severity) {
    switch (severity) {
    case Severity::Ok: return "ok";
    case Severity::Note: return "note";
    case Severity::Warning: return "warning";
    case Severity::Error: return "error";
    }
    return "note";
}

namespace {

using Findings = std::vector<CaptureFinding>;

std::string layerList(const std::vector<int>& layers) {
    return fmt::format("{} {}", layers.size() == 1 ? "layer" : "layers", fmt::join(layers, ", "));
}

template <class Predicate> std::vector<int> layersWhere(const CaptureInfo& info, Predicate predicate) {
    std::vector<int> layers;
    for (const LayerInfo& layer : info.layers)
        if (predicate(layer)) layers.push_back(layer.layer.value);
    return layers;
}

void checkTokens(const CaptureReader& capture, Findings& findings) {
    const TokenTable& tokens = capture.tokens();
    if (tokens.nll.empty())
        findings.push_back(
            {Severity::Note, "there is no NLL of the tokens", "tokens/nll", "Everything but loss columns works"});
    if (tokens.segments.empty())
        findings.push_back({Severity::Note, "there are no segments", "tokens/segments",
                            fmt::format("The cut defaults to last:{} and no needle is highlighted",
                                        std::min<std::int64_t>(256, capture.info().numTokens / 2))});
    for (std::size_t i = 1; i < tokens.positions.size(); ++i)
        if (tokens.positions[i] <= tokens.positions[i - 1]) {
            findings.push_back({Severity::Warning, fmt::format("positions do not rise at token {}", i),
                                "tokens/position_ids",
                                "Causality follows the order of the tokens, rotation the positions"});
            break;
        }
}

void checkQueries(const CaptureInfo& info, Findings& findings) {
    const auto none = layersWhere(info, [](const LayerInfo& l) { return l.queryCount == 0; });
    if (!none.empty())
        findings.push_back(
            {Severity::Warning, layerList(none) + (none.size() == 1 ? " holds no queries" : " hold no queries"),
             "layers/*/q", "Policies that read queries and all measures are off there; key-only policies work"});
    const auto window =
        layersWhere(info, [&](const LayerInfo& l) { return l.queryCount > 0 && l.queryCount < info.numTokens; });
    if (!window.empty()) {
        const std::int64_t w = info.layerInfo(LayerIndex(window.front())).queryCount;
        findings.push_back({Severity::Note,
                            fmt::format("{} {} the last {} of {} queries only", layerList(window),
                                        window.size() == 1 ? "holds" : "hold", w, info.numTokens),
                            "layers/*/q_window",
                            "Window policies use those before the cut; policies over all queries are off"});
    }
}

void checkRope(const CaptureReader& capture, Findings& findings) {
    const CaptureInfo& info = capture.info();
    const auto blind = layersWhere(info, [&](const LayerInfo& l) {
        return l.hasRope && !l.hasKeysPreRope && capture.inverseFrequencies(l.layer).empty();
    });
    if (!blind.empty())
        findings.push_back({Severity::Warning, "keys before RoPE cannot be derived for " + layerList(blind),
                            "rope/inv_freq", "Views and policies of unrotated keys are off there"});
    const auto wrongStage = layersWhere(
        info, [](const LayerInfo& l) { return !l.stage.empty() && l.stage != "post_qk_norm_post_rope_pre_scale"; });
    if (!wrongStage.empty())
        findings.push_back({Severity::Error,
                            "queries and keys of " + layerList(wrongStage) + " are not post-norm, post-RoPE, pre-scale",
                            "stage", "Capture them at attention, not at the projections"});
}

void checkHeads(const CaptureInfo& info, Findings& findings) {
    std::map<double, std::vector<int>> unusual; // layers by scaling
    const double usual = 1 / std::sqrt(static_cast<double>(info.headDim));
    for (const LayerInfo& layer : info.layers) {
        if (std::fabs(layer.scaling - usual) > 1e-6 * usual) unusual[layer.scaling].push_back(layer.layer.value);
    }
    for (const auto& [scaling, layers] : unusual)
        findings.push_back(
            {Severity::Note,
             fmt::format("scaling of {} is {:.6g}, not 1/sqrt(head_dim) = {:.6g}", layerList(layers), scaling, usual),
             "layers/*/scaling", "The capture's own scaling is used everywhere"});
    if (static_cast<int>(info.layers.size()) < info.numLayers)
        findings.push_back(
            {Severity::Note,
             fmt::format("{} of the model's {} layers are in the file", info.layers.size(), info.numLayers), "layers",
             "Whole-model figures cover those"});
    if (!info.hasStoredHash)
        findings.push_back({Severity::Note, "there is no capture hash", "capture_hash",
                            "Lists name the file's size and time instead"});
}

void checkAgainstModel(const CaptureInfo& info, Findings& findings) {
    for (const CaptureCheck& check : info.checks) {
        const bool made = check.outcome != "not made", failed = check.outcome == "failed";
        findings.push_back(
            {failed ? Severity::Error
             : made ? Severity::Ok
                    : Severity::Note,
             checkText(check), "self_check",
             failed ? "Every figure and list says so; capture again with a tool that knows the model" : ""});
    }
    if (info.checks.empty() && info.tool.starts_with("kvscope_capture"))
        findings.push_back({Severity::Note, "the tool did not compare the capture with its model", "self_check",
                            "Capture the prompt again with this version of kvscope-capture"});
    const auto sinks = layersWhere(info, [](const LayerInfo& l) { return !l.sinks.empty(); });
    if (!sinks.empty())
        findings.push_back({Severity::Note, layerList(sinks) + " have attention sinks", "layers/*/sinks",
                            "They are part of every softmax; the CPU computes these layers on all engines"});
}

CaptureFinding findingOf(const Error& error) {
    return {Severity::Error, error.parts().sentence, error.parts().place, error.parts().remedy};
}

void checkHash(const CaptureReader& capture, const Checkpoint& checkpoint, Findings& findings) {
    if (!capture.info().hasStoredHash) return;
    try {
        if (capture.computeHash(checkpoint) == capture.info().hash)
            findings.push_back({Severity::Ok, "the hash is that of the data", "capture_hash", {}});
        else
            findings.push_back({Severity::Error, "the hash is not that of the data", "capture_hash",
                                "The file was changed after it was captured; capture it again"});
    } catch (const Error& error) {
        findings.push_back(findingOf(error));
    }
}

/// Compares the stored unrotated keys, rotated forward, with the stored rotated ones.
void checkRotation(const CaptureReader& capture, const LayerInfo& layer, const Checkpoint& checkpoint,
                   Findings& findings) {
    const auto& frequencies = capture.inverseFrequencies(layer.layer);
    if (!layer.hasKeysPreRope || !layer.hasRope || frequencies.empty()) return;
    HostTensor turned = capture.read(layer.layer, TensorRole::KeysPreRope, checkpoint);
    rotateForward(turned, capture.tokens().positions, frequencies, capture.info().rope);
    const HostTensor keys = capture.read(layer.layer, TensorRole::Keys, checkpoint);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < keys.data.size(); ++i) {
        difference += std::pow(static_cast<double>(keys.data[i]) - turned.data[i], 2);
        size += std::pow(static_cast<double>(keys.data[i]), 2);
    }
    const double relative = std::sqrt(difference / std::max(size, 1e-300));
    constexpr double kRounding = 0.01; // 16-bit rounding of both sides stays well below
    if (relative > kRounding)
        findings.push_back(
            {Severity::Error, fmt::format("rotated k_pre differs from k by {:.1f} % in norm", 100 * relative),
             layerPath(layer.layer, "k_pre"), "Check rope (layout, inv_freq, attention_scaling) and position_ids"});
    else
        findings.push_back({Severity::Ok,
                            fmt::format("rotated k_pre agrees with k to {:.2g} in relative norm", relative),
                            layerPath(layer.layer, "k_pre"),
                            {}});
}

void readAll(const CaptureReader& capture, const Checkpoint& checkpoint, Findings& findings) {
    const auto& layers = capture.info().layers;
    std::size_t sound = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        checkpoint.at(static_cast<double>(i), static_cast<double>(layers.size()));
        try {
            const Checkpoint silent = checkpoint.silent();
            capture.read(layers[i].layer, TensorRole::Keys, silent);
            capture.read(layers[i].layer, TensorRole::Values, silent);
            if (layers[i].queryCount > 0) capture.read(layers[i].layer, TensorRole::Queries, silent);
            if (layers[i].hasQueriesPreRope) capture.read(layers[i].layer, TensorRole::QueriesPreRope, silent);
            if (layers[i].hasOutputProjection) capture.read(layers[i].layer, TensorRole::OutputProjection, silent);
            checkRotation(capture, layers[i], silent, findings);
            ++sound;
        } catch (const Error& error) {
            findings.push_back(findingOf(error));
        }
    }
    if (sound == layers.size())
        findings.push_back({Severity::Ok, fmt::format("{} layers read without NaN or infinity", sound), "layers", {}});
}

} // namespace

std::vector<CaptureFinding> examineCapture(const CaptureReader& capture, const ExamineOptions& options,
                                           const Checkpoint& checkpoint) {
    Findings findings;
    checkTokens(capture, findings);
    checkQueries(capture.info(), findings);
    checkRope(capture, findings);
    checkHeads(capture.info(), findings);
    checkAgainstModel(capture.info(), findings);
    if (options.readEverything) {
        const double half = capture.info().hasStoredHash ? 0.5 : 1; // the hash reads everything once more
        readAll(capture, checkpoint.part(0, half), findings);
        checkHash(capture, checkpoint.part(half, 1), findings);
    }
    return findings;
}

} // namespace kvscope
