#pragma once

#include "app/live/protocol.h"
#include "core/capture/capture.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvscope::live {

class LiveClient;

struct ModelChoice {
    std::string path; ///< folder or name, as the worker's machine knows it
    std::string revision, device = "cpu", dtype = "f32";
    bool operator==(const ModelChoice&) const = default;
};

struct TextPart {
    SegmentKind kind = SegmentKind::Context;
    std::string text;
    bool operator==(const TextPart&) const = default;
};

struct PromptForm {
    bool chat = false; ///< in the tokenizer's chat template
    bool bos = false;  ///< begins with BOS though the tokenizer writes none
    bool operator==(const PromptForm&) const = default;
};

/// A context that a worker has read: a capture whose tensors are fetched from the worker when they are asked for, each
/// time anew (the run layer keeps what it reads). Their numbers are those of the capture that the worker would write.
class LiveCapture final : public CaptureReader {
public:
    const CaptureInfo& info() const override { return m_info; }
    const TokenTable& tokens() const override { return m_tokens; }
    const std::vector<float>& inverseFrequencies(LayerIndex layer) const override;
    /// Throws Error for a tensor that is missing or has another shape, and for NaN or infinity; Cancelled.
    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override;
    bool readsQueriesInParts() const override;
    HostTensor readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                           const Checkpoint& checkpoint) const override;
    std::string computeHash(const Checkpoint&) const override { return m_info.hash; }

    LiveClient& client() const { return *m_client; }
    const std::string& contextId() const { return m_contextId; }
    TokenIndex cut() const { return m_cut; } ///< policies may prune the tokens before it
    /// The worker writes the capture from what it holds, on its own machine. Throws Error, Cancelled.
    void writeCapture(const std::string& path, const Checkpoint& checkpoint) const;

private:
    friend class LiveModel;
    LiveCapture() = default;
    HostTensor fetch(const LayerInfo& layer, TensorRole role, const char* name, const Checkpoint& checkpoint) const;
    /// `rows`: [begin, end) of the tensor's rows, or null for all. `firstToken`: the token of the first row.
    HostTensor fetch(const LayerInfo& layer, const char* name, const std::vector<std::int64_t>& shape, const Json& rows,
                     std::int64_t firstToken, const Checkpoint& checkpoint) const;
    std::vector<std::int64_t> shapeOf(TensorRole role) const;
    [[noreturn]] void refuseMissing(LayerIndex layer) const;

    std::shared_ptr<LiveClient> m_client;
    std::string m_contextId;
    TokenIndex m_cut = 0;
    CaptureInfo m_info;
    TokenTable m_tokens;
    std::map<LayerIndex, std::vector<float>> m_frequencies;
};

/// The tokens of the parts, in their order. `model` names an open model ("model_id"), or one whose tokenizer is loaded
/// alone ("path", "revision"). Throws Error, Cancelled.
TokenTable tokenize(LiveClient& client, Json model, std::span<const TextPart> parts, PromptForm form,
                    const Checkpoint& checkpoint);

/// A model that a worker has loaded.
class LiveModel {
public:
    /// Throws Error, in the worker's words, for a model that is missing, unsupported or too large.
    LiveModel(std::shared_ptr<LiveClient> client, ModelChoice choice, const Checkpoint& checkpoint);

    /// The model's tokens of the parts, in their order.
    TokenTable tokenize(std::span<const TextPart> parts, PromptForm form, const Checkpoint& checkpoint) const;
    /// Lets the model read the whole prompt once. `captureTo`: a file that the worker writes on its own disk, or empty.
    std::shared_ptr<const LiveCapture> read(TokenTable prompt, TokenIndex cut, const std::string& captureTo,
                                            const Checkpoint& checkpoint) const;

private:
    std::shared_ptr<LiveClient> m_client;
    ModelChoice m_choice;
    std::string m_modelId;
};

} // namespace kvscope::live
