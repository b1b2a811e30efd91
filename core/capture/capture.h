#pragma once

#include "core/base/checkpoint.h"
#include "core/base/host_tensor.h"
#include "core/base/index.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope {

class RowSource; // core/base/row_source.h

enum class SegmentKind { System = 0, Context = 1, Needle = 2, Question = 3, Answer = 4 };

inline constexpr std::array kSegmentKinds = {SegmentKind::System, SegmentKind::Context, SegmentKind::Needle,
                                             SegmentKind::Question, SegmentKind::Answer}; ///< each at its number

std::string_view segmentName(SegmentKind kind); ///< "context" ...
std::optional<SegmentKind> segmentKindNamed(std::string_view name);

/// Half-open range of tokens with a meaning; segments may nest.
struct Segment {
    TokenIndex begin = 0, end = 0;
    SegmentKind kind = SegmentKind::Context;
};

std::string_view storedTypeName(StoredType type); ///< "bf16", "f16", "f32"
std::optional<StoredType> storedTypeNamed(std::string_view name);

struct RopeInfo {
    std::string type; ///< "default", "llama3", "yarn" ...
    double theta = 0;
    double attentionScaling = 1; ///< magnitude factor on rotated keys (YaRN)
    int rotaryDim = 0;
    bool interleaved = false; ///< false: half layout
    int rotaryBegin = 0;      ///< first rotated coordinate (DeepSeek rotates the last ones)
};

/// What one layer of the file holds; read without touching its tensors.
struct LayerInfo {
    LayerIndex layer;
    double scaling = 0;             ///< the factor on q.k
    double softcap = 0;             ///< 0: none
    std::int64_t slidingWindow = 0; ///< 0: none
    bool hasRope = true;
    bool qkNorm = false;
    std::string attentionType;            ///< "full_attention" ...
    std::string stage;                    ///< of q and k: what was done to them, as the file states it
    std::vector<std::int32_t> gqaGroupOf; ///< [Hq] KV head that query head h reads
    std::int64_t queryCount = 0;          ///< queries stored: n, or w of `q_window`, or 0
    bool hasKeysPreRope = false, hasQueriesPreRope = false, hasOutputProjection = false;
    StoredType storedType = StoredType::Bfloat16;
    std::vector<float> sinks = {}; ///< [Hq] logit of each query head's attention sink; empty: none
};

/// One comparison that the capturing tool made between the capture and the model.
struct CaptureCheck {
    std::string name;    ///< "attention", "rotation", "loss"
    std::string outcome; ///< "passed", "failed", "not made"
    double difference = 0, tolerance = 0;
    std::string unit;      ///< of both: "relative", "nat per token"
    std::int64_t rows = 0; ///< compared in each layer
    std::string note;      ///< what was compared, and where the difference is largest
};
std::string checkText(const CaptureCheck& check); ///< "attention passed: differs by 2e-06 of at most 0.001 ..."

struct CaptureInfo {
    std::string path, fileName;
    std::string modelId, modelRevision, tool, created, notes;
    /// Of an import: facts ("scaling", "rope" ...) and where each came from, in the order in which they are shown.
    std::vector<std::pair<std::string, std::string>> sources;
    std::string hash; ///< SHA-256 as written in the file, or "size:<bytes>,modified:<unix time>" without one
    bool hasStoredHash = false;
    int numLayers = 0; ///< of the model; the file may hold a subset
    int numQueryHeads = 0, numKvHeads = 0;
    int headDim = 0, valueDim = 0;
    std::int64_t numTokens = 0;
    std::uint64_t fileBytes = 0;
    RopeInfo rope;
    std::vector<LayerInfo> layers;    ///< ascending
    std::string selfCheck;            ///< the attribute `self_check` as written; empty: the tool made no check
    std::vector<CaptureCheck> checks; ///< read from `selfCheck`

    /// Throws Error naming the layers that are there.
    const LayerInfo& layerInfo(LayerIndex layer) const;
    /// "the capture failed its self-check (attention, loss)"; empty unless a check failed. Results and figures carry
    /// it.
    std::string checkWarning() const;
};

/// The tokens of the prompt: a few bytes each, so they are read when the capture opens.
struct TokenTable {
    std::vector<std::int32_t> ids;       ///< [n]
    std::vector<std::int64_t> positions; ///< [n] position ids
    std::vector<float> nll;              ///< [n], first NaN; or empty
    std::vector<Segment> segments;
    std::string bytes;                 ///< text of all tokens
    std::vector<std::int64_t> offsets; ///< [n + 1] into bytes

    std::string_view textOf(TokenIndex token) const; ///< raw bytes, may be a part of a UTF-8 sequence
};

/// The text with visible whitespace, and with control characters and invalid UTF-8 as \xE2; for read-outs and strips.
std::string displayText(std::string_view bytes);

enum class TensorRole { Keys, Values, Queries, KeysPreRope, QueriesPreRope, OutputProjection };

/// An open capture. Const members may be called from several threads.
class CaptureReader {
public:
    virtual ~CaptureReader() = default;
    virtual const CaptureInfo& info() const = 0;
    virtual const TokenTable& tokens() const = 0;
    virtual const std::vector<float>& inverseFrequencies(LayerIndex layer) const = 0; ///< [rotaryDim / 2], maybe empty
    /// [H, rows, d] widened to float. KeysPreRope is derived by inverse rotation where the file lacks it.
    /// Throws Error for a missing or malformed data set and for NaN or infinity (layer, head and token named).
    virtual HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const = 0;
    /// The same numbers, read row by row when they are needed; null where a tensor can only be read as a whole.
    virtual std::shared_ptr<const RowSource> rows(LayerIndex, TensorRole) const { return nullptr; }
    /// Whether `readQueries` reads no other queries than those asked for.
    virtual bool readsQueriesInParts() const { return false; }
    /// Rows [begin, end) of Queries, as `read` gives them.
    virtual HostTensor readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                                   const Checkpoint& checkpoint) const;
    virtual std::string computeHash(const Checkpoint& checkpoint) const = 0; ///< SHA-256, hexadecimal
};

} // namespace kvscope
