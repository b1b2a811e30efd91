// Captures made up from a seed: keys in clusters around a common direction, sinks at the start, a needle that the question's
// queries look for, rotation by position. Every number is a function of its place, so that any tensor can be made alone.
#include "core/capture/synthetic_capture.h"

#include "core/base/error.h"
#include "core/base/gaussian.h"
#include "core/capture/capture_writer.h"
#include "core/capture/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

enum Round : std::uint32_t { kKeyNoise, kValueNoise, kQueryNoise, kCentre, kCommon, kSinkDirection, kNeedleDirection, kClusterOf };

constexpr std::array<const char*, 32> kWords = {" the", " cache", " stores", " one", " key", " and", " value", " per", " token", " when", " it",
    " fills", " a", " policy", " decides", " which", " tokens", " stay", ".", " Every", " head", " reads", " what", " the", " others", " wrote", ",",
    " and", " a", " budget", " limits", " them"};
constexpr std::array<const char*, 8> kNeedleWords = {" The", " secret", " code", " is", " 5", "2", "6", "."};

std::int64_t questionLength(const SyntheticSpec& spec) { return std::clamp<std::int64_t>(spec.tokens / 32, 1, 32); }
std::int64_t answerLength(const SyntheticSpec& spec) { return std::clamp<std::int64_t>(spec.tokens / 128, 1, 8); }
std::int64_t contextEnd(const SyntheticSpec& spec) { return std::max<std::int64_t>(1, spec.tokens - questionLength(spec) - answerLength(spec)); }
std::int64_t needleStart(const SyntheticSpec& spec) { return spec.needleBegin >= 0 ? spec.needleBegin : contextEnd(spec) * 2 / 5; }
bool inNeedle(const SyntheticSpec& spec, std::int64_t token) {
    return token >= needleStart(spec) && token < needleStart(spec) + spec.needleLength;
}

[[noreturn]] void refuse(const std::string& sentence, const char* place, const std::string& remedy) {
    throw Error({.sentence = sentence, .place = place, .remedy = remedy});
}

struct Generator {
    const SyntheticSpec& spec;
    std::uint32_t layer, head;

    double normal(std::uint32_t round, std::int64_t token, int coordinate) const {
        return gaussianAt({spec.seed, layer, head, round, static_cast<std::uint32_t>(token), static_cast<std::uint32_t>(coordinate)});
    }
    int clusterOf(std::int64_t token) const {
        const double u = uniformAt({spec.seed, layer, head, kClusterOf, static_cast<std::uint32_t>(token / 3), 0}); // neighbours share one
        return static_cast<int>(u * spec.clusters);
    }
    /// Key before rotation; spread about 1 per coordinate.
    double key(std::int64_t token, int c) const {
        const double common = spec.collinearity * normal(kCommon, 0, c);
        if (token < spec.sinks)
            return common + 2.5 * normal(kSinkDirection, 0, c) + 0.1 * normal(kKeyNoise, token, c);
        if (inNeedle(spec, token))
            return -0.5 * common + 1.2 * normal(kNeedleDirection, 0, c) + 0.5 * normal(kKeyNoise, token, c);
        const double centre = spec.clusters > 0 ? normal(kCentre, clusterOf(token), c) : 0;
        return common + 0.8 * centre + 0.6 * normal(kKeyNoise, token, c);
    }
    double query(std::int64_t token, int c) const {
        // Queries look away from what all keys share, towards the sinks a little, and in the question towards the needle.
        double q = -0.4 * spec.collinearity * normal(kCommon, 0, c) + 0.5 * normal(kSinkDirection, 0, c) + 0.8 * normal(kQueryNoise, token, c);
        if (spec.clusters > 0)
            q += 0.5 * normal(kCentre, clusterOf(token), c);
        if (spec.needleLength > 0 && token >= contextEnd(spec))
            q += 1.2 * normal(kNeedleDirection, 0, c);
        return q;
    }
};

} // namespace

void checkSynthetic(const SyntheticSpec& spec) {
    if (spec.tokens < 1 || spec.tokens > (std::int64_t{1} << 24))
        refuse("a capture has 1 to 16,777,216 tokens", "--tokens", "Choose a number in that range");
    if (spec.layers < 1 || spec.layers > 1000 || spec.kvHeads < 1 || spec.queryHeads < 1 || spec.headDim < 1 || spec.headDim > 4096)
        refuse("layers, heads and head dim must be positive", "--layers, --q-heads, --kv-heads, --head-dim", "Choose sizes that a model has");
    if (spec.queryHeads % spec.kvHeads != 0)
        refuse(fmt::format("{} query heads cannot share {} KV heads evenly", spec.queryHeads, spec.kvHeads), "--q-heads", "Make it a multiple of --kv-heads");
    if (spec.rope && spec.headDim % 2 != 0)
        refuse("rotation needs an even head dim", "--head-dim", "Make it even or add --no-rope");
    if (spec.queryWindow < 0 || spec.queryWindow > spec.tokens)
        refuse("the query window is longer than the prompt", "--q-window", fmt::format("Choose 0 (all) to {}", spec.tokens));
    if (spec.needleLength > 0 && spec.tokens > 64 && (needleStart(spec) < 0 || needleStart(spec) + spec.needleLength > contextEnd(spec)))
        refuse("the needle lies outside the context", "--needle-begin, --needle-length", fmt::format("The context ends at token {}", contextEnd(spec)));
    if (spec.clusters < 0 || spec.sinks < 0 || spec.needleLength < 0 || spec.collinearity < 0)
        refuse("clusters, sinks, needle length and collinearity cannot be negative", "kvscope synth", "Choose 0 or more");
}

CaptureInfo syntheticInfo(const SyntheticSpec& spec) {
    CaptureInfo info;
    info.modelId = "kvscope/synthetic";
    info.modelRevision = "1";
    info.tool = "kvscope synth";
    info.notes = fmt::format("synthetic, seed {}: says nothing about real models", spec.seed);
    info.numLayers = spec.layers;
    info.numQueryHeads = spec.queryHeads;
    info.numKvHeads = spec.kvHeads;
    info.headDim = info.valueDim = spec.headDim;
    info.numTokens = spec.tokens;
    info.rope = {"default", spec.ropeTheta, 1.0, spec.headDim, false};
    for (int l = 0; l < spec.layers; ++l) {
        LayerInfo layer;
        layer.layer = LayerIndex(l);
        layer.scaling = 1 / std::sqrt(static_cast<double>(spec.headDim));
        layer.hasRope = spec.rope;
        layer.attentionType = "full_attention";
        layer.stage = "post_qk_norm_post_rope_pre_scale";
        layer.queryCount = spec.queryWindow > 0 ? spec.queryWindow : spec.tokens;
        layer.storedType = spec.storedType;
        for (int h = 0; h < spec.queryHeads; ++h)
            layer.kvOfQ.push_back(h / (spec.queryHeads / spec.kvHeads));
        info.layers.push_back(std::move(layer));
    }
    return info;
}

TokenTable syntheticTokens(const SyntheticSpec& spec) {
    TokenTable table;
    table.offsets.push_back(0);
    for (std::int64_t t = 0; t < spec.tokens; ++t) {
        const bool needle = inNeedle(spec, t);
        const auto place = static_cast<std::size_t>(needle ? t - needleStart(spec) : t);
        const std::size_t word = needle ? place % kNeedleWords.size() : (place * 7 + place / 32) % kWords.size();
        table.ids.push_back(static_cast<std::int32_t>(needle ? kWords.size() + word : word));
        table.positions.push_back(t);
        table.bytes += needle ? kNeedleWords[word] : kWords[word];
        table.offsets.push_back(static_cast<std::int64_t>(table.bytes.size()));
    }
    const auto end = static_cast<TokenIndex>(contextEnd(spec)), question = static_cast<TokenIndex>(spec.tokens - answerLength(spec));
    table.segments.push_back({0, end, SegmentKind::Context});
    if (spec.needleLength > 0 && needleStart(spec) + spec.needleLength <= end)
        table.segments.push_back({static_cast<TokenIndex>(needleStart(spec)), static_cast<TokenIndex>(needleStart(spec) + spec.needleLength), SegmentKind::Needle});
    if (question > end)
        table.segments.push_back({end, question, SegmentKind::Question});
    if (static_cast<std::int64_t>(question) < spec.tokens && question >= end)
        table.segments.push_back({question, static_cast<TokenIndex>(spec.tokens), SegmentKind::Answer});
    return table;
}

std::vector<float> syntheticFrequencies(const SyntheticSpec& spec) {
    std::vector<float> frequencies;
    for (int i = 0; spec.rope && i < spec.headDim / 2; ++i)
        frequencies.push_back(static_cast<float>(std::pow(spec.ropeTheta, -2.0 * i / spec.headDim)));
    return frequencies;
}

HostTensor syntheticTensor(const SyntheticSpec& spec, LayerIndex layer, TensorRole role) {
    const bool queries = role == TensorRole::Queries;
    const std::int64_t rows = queries && spec.queryWindow > 0 ? spec.queryWindow : spec.tokens, first = spec.tokens - rows;
    const int heads = queries ? spec.queryHeads : spec.kvHeads, group = spec.queryHeads / spec.kvHeads;
    HostTensor tensor{Shape{heads, rows, spec.headDim}, {}};
    tensor.data.reserve(static_cast<std::size_t>(tensor.shape.count()));
    std::vector<std::int64_t> positions;
    for (int h = 0; h < heads; ++h) {
        const Generator make{spec, static_cast<std::uint32_t>(layer.value), static_cast<std::uint32_t>(queries ? h / group : h)};
        for (std::int64_t r = 0; r < rows; ++r)
            for (int c = 0; c < spec.headDim; ++c) {
                const double x = role == TensorRole::Keys      ? make.key(first + r, c)
                                 : role == TensorRole::Values ? make.normal(kValueNoise, first + r, c)
                                                              : make.query(first + r, c) + 0.3 * make.normal(kQueryNoise, first + r, c + 4096 * (1 + h % group));
                tensor.data.push_back(static_cast<float>(x));
            }
    }
    for (std::int64_t r = 0; r < rows; ++r)
        positions.push_back(first + r);
    if (spec.rope && role != TensorRole::Values)
        rotateForward(tensor, positions, syntheticFrequencies(spec), {"default", spec.ropeTheta, 1.0, spec.headDim, false});
    return tensor;
}

void writeSyntheticCapture(const SyntheticSpec& spec, const std::string& path, int deflateLevel, bool sparse, const Checkpoint& checkpoint) {
    checkSynthetic(spec);
    WriteOptions options;
    options.deflateLevel = deflateLevel;
    options.leaveTensorsUnwritten = sparse;
    writeCapture(path, syntheticInfo(spec), syntheticTokens(spec), syntheticFrequencies(spec),
                 [&](LayerIndex layer, TensorRole role) { return syntheticTensor(spec, layer, role); }, options, checkpoint);
}

} // namespace kvscope
