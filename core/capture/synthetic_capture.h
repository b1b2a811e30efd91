#pragma once

#include "core/capture/memory_capture.h"

#include <cstdint>
#include <string>

namespace kvscope {

/// A seeded capture with a known structure. Nothing in it says anything about real models; the file's notes say so.
struct SyntheticSpec {
    std::int64_t tokens = 4096;
    int layers = 2, queryHeads = 8, kvHeads = 2, headDim = 64;
    std::uint64_t seed = 0;
    int clusters = 12;             ///< of keys before rotation; 0: none
    int sinks = 4;                 ///< first tokens that draw attention whatever the query
    std::int64_t needleBegin = -1; ///< -1: at 40 % of the context
    std::int64_t needleLength = 16; ///< 0: none
    double collinearity = 0.6;     ///< length of the component that all keys share, in units of their spread
    bool rope = true;              ///< rotate queries and keys (rings in the projection)
    double ropeTheta = 10000;
    StoredType storedType = StoredType::Bfloat16;
    std::int64_t queryWindow = 0;  ///< store only the last so many queries; 0: all
};

/// Throws Error for sizes that fit no model (heads that do not divide, odd head dim with rotation ...).
void checkSynthetic(const SyntheticSpec& spec);

/// What the file will say, without its tensors.
CaptureInfo syntheticInfo(const SyntheticSpec& spec);
TokenTable syntheticTokens(const SyntheticSpec& spec);
std::vector<float> syntheticFrequencies(const SyntheticSpec& spec);
/// One tensor: keys, values or queries of a layer. A function of the spec alone.
HostTensor syntheticTensor(const SyntheticSpec& spec, LayerIndex layer, TensorRole role);

/// Writes it as a capture, one tensor in memory at a time; `sparse` declares the tensors and stores none. Throws Error.
void writeSyntheticCapture(const SyntheticSpec& spec, const std::string& path, int deflateLevel, bool sparse, const Checkpoint& checkpoint);

} // namespace kvscope
