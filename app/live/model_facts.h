#pragma once

#include "app/live/live_context.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kvscope::live {

/// What a model is and needs, by its configuration alone.
struct ModelFacts {
    std::string architecture;
    std::int64_t layers = 0, queryHeads = 0, kvHeads = 0, headDim = 0;
    std::map<std::string, double> bytesToLoad; ///< by type: "f32", "bf16", "f16"
    std::int64_t mostTokens = 0;               ///< context length; 0: not stated
    double bytesPerToken = 0;                  ///< keys, values and queries of a token in a type of two bytes
    std::string dtype;                         ///< the checkpoint's
    bool isSupported = false;
    std::string why; ///< why it is not supported, or a note on a supported model
};

/// A device of the worker's machine; its free bytes are 0 where the worker does not state them.
struct Device {
    std::string name;
    double free = 0;
};

/// Throws Error in the worker's words: there is no such model; Cancelled.
ModelFacts inspectModel(LiveClient& client, const ModelChoice& model, const Checkpoint& checkpoint);
std::vector<Device> devicesOf(const LiveClient& client);

/// Names (organisation/model) of the models that are complete in the Hub's cache of the worker's machine, 1000 at most;
/// none from a worker that does not list them. Throws Error, Cancelled.
std::vector<std::string> cachedModels(LiveClient& client, const Checkpoint& checkpoint);

/// The bytes that weights and a context of this many tokens take in a type ("auto": the checkpoint's).
double bytesToLoad(const ModelFacts& facts, const std::string& dtype);
double bytesOfContext(const ModelFacts& facts, const std::string& dtype, std::int64_t tokens);

/// The prompt's tokens, by the model's tokenizer alone. Throws Error, Cancelled.
TokenTable tokensOf(LiveClient& client, const LiveDescription& description, const Checkpoint& checkpoint);

} // namespace kvscope::live
