// Writes captures layer by layer. The hash is taken from the finished file, through the same code that checks it later.
#include "core/capture/capture_writer.h"

#include "core/base/atomic_file.h"
#include "core/capture/capture_hash.h"
#include "core/capture/capture_metadata.h"
#include "core/capture/h5_writer.h"
#include "core/capture/widen.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace kvscope {

namespace {

h5::ElementType elementOf(StoredType type) {
    return type == StoredType::Bfloat16 ? h5::ElementType::Uint16 : type == StoredType::Float16 ? h5::ElementType::Float16 : h5::ElementType::Float32;
}

void writeRoot(h5::Writer& file, const CaptureInfo& info) {
    file.attribute("/", "format", std::string("kvscope-capture"));
    file.attribute("/", "version", std::int64_t{1});
    for (const auto& [name, text] : {std::pair{"created", &info.created}, {"tool", &info.tool}, {"model_id", &info.modelId},
                                     {"model_revision", &info.modelRevision}, {"notes", &info.notes}})
        file.attribute("/", name, *text);
    for (const auto& [name, value] : {std::pair{"num_layers", info.numLayers}, {"num_q_heads", info.numQueryHeads},
                                      {"num_kv_heads", info.numKvHeads}, {"head_dim", info.headDim}, {"value_dim", info.valueDim}})
        file.attribute("/", name, static_cast<std::int64_t>(value));
    const nlohmann::ordered_json rope = {{"type", info.rope.type}, {"theta", info.rope.theta}, {"attention_scaling", info.rope.attentionScaling},
                                         {"rotary_dim", info.rope.rotaryDim}, {"layout", info.rope.interleaved ? "interleaved" : "half"}};
    file.attribute("/", "rope", rope.dump());
}

void writeTokens(h5::Writer& file, const TokenTable& tokens) {
    file.put("tokens/ids", std::span(tokens.ids));
    file.put("tokens/text", std::span(reinterpret_cast<const std::uint8_t*>(tokens.bytes.data()), tokens.bytes.size()));
    file.put("tokens/offsets", std::span(tokens.offsets));
    file.put("tokens/position_ids", std::span(tokens.positions));
    if (!tokens.nll.empty())
        file.put("tokens/nll", std::span(tokens.nll));
    std::vector<std::int32_t> rows;
    for (const Segment& s : tokens.segments)
        rows.insert(rows.end(), {s.begin, s.end, static_cast<std::int32_t>(s.kind)});
    file.put("tokens/segments", std::span<const std::int32_t>(rows), {static_cast<std::int64_t>(tokens.segments.size()), 3});
}

void writeLayerAttributes(h5::Writer& file, const LayerInfo& layer, const std::string& group) {
    file.attribute(group, "scaling", layer.scaling);
    file.attribute(group, "softcap", layer.softcap);
    file.attribute(group, "sliding_window", layer.slidingWindow);
    file.attribute(group, "has_rope", static_cast<std::int64_t>(layer.hasRope));
    file.attribute(group, "qk_norm", static_cast<std::int64_t>(layer.qkNorm));
    file.attribute(group, "attn_type", layer.attentionType);
    file.attribute(group, "stage", std::string("post_qk_norm_post_rope_pre_scale"));
    file.attribute(group, "kv_of_q", std::span(layer.kvOfQ));
}

void writeTensor(h5::Writer& file, const std::string& name, StoredType type, const HostTensor& tensor) {
    if (type == StoredType::Float32) {
        file.write(name, tensor.data.data(), tensor.data.size() * sizeof(float));
        return;
    }
    std::vector<std::uint16_t> bits(tensor.data.size());
    std::transform(tensor.data.begin(), tensor.data.end(), bits.begin(), type == StoredType::Bfloat16 ? narrowToBfloat16 : narrowToFloat16);
    file.write(name, bits.data(), bits.size() * 2);
}

struct Part {
    TensorRole role;
    std::string name;
    std::vector<std::int64_t> shape;
};

std::vector<Part> partsOf(const CaptureInfo& info, const LayerInfo& layer) {
    const std::int64_t n = info.numTokens, kv = info.numKvHeads, q = info.numQueryHeads, d = info.headDim;
    std::vector<Part> parts = {{TensorRole::Keys, "k", {kv, n, d}}, {TensorRole::Values, "v", {kv, n, info.valueDim}}};
    if (layer.queryCount > 0)
        parts.push_back({TensorRole::Queries, layer.queryCount == n ? "q" : "q_window", {q, layer.queryCount, d}});
    if (layer.hasKeysPreRope)
        parts.push_back({TensorRole::KeysPreRope, "k_pre", {kv, n, d}});
    return parts;
}

} // namespace

void writeCapture(const std::string& path, const CaptureInfo& info, const TokenTable& tokens, const std::vector<float>& inverseFrequencies,
                  const std::function<HostTensor(LayerIndex, TensorRole)>& read, const WriteOptions& options, const Checkpoint& checkpoint) {
    AtomicFile target(path);
    h5::Writer file(target.temporaryPath());
    writeRoot(file, info);
    writeTokens(file, tokens);
    if (!inverseFrequencies.empty())
        file.put("rope/inv_freq", std::span(inverseFrequencies));
    for (std::size_t i = 0; i < info.layers.size(); ++i) {
        const LayerInfo& layer = info.layers[i];
        checkpoint.at(static_cast<double>(i), static_cast<double>(info.layers.size()));
        writeLayerAttributes(file, layer, layerPath(layer.layer, "").substr(0, layerPath(layer.layer, "").size() - 1));
        for (const Part& part : partsOf(info, layer)) {
            const std::string name = layerPath(layer.layer, part.name);
            h5::Storage storage;
            if (options.deflateLevel > 0)
                storage = {{1, std::min<std::int64_t>(4096, part.shape[1]), part.shape[2]}, options.deflateLevel};
            file.createDataset(name, elementOf(layer.storedType), part.shape, storage);
            if (layer.storedType == StoredType::Bfloat16)
                file.attribute(name, "dtype", std::string("bfloat16"));
            if (!options.leaveTensorsUnwritten)
                writeTensor(file, name, layer.storedType, read(layer.layer, part.role));
        }
    }
    file.close();
    if (options.withHash && !options.leaveTensorsUnwritten)
        h5::setRootAttribute(target.temporaryPath(), "capture_hash", hashOfCapture(h5::File::openForReading(target.temporaryPath()), checkpoint));
    target.commit();
}

void writeCapture(const std::string& path, const CaptureReader& capture, const WriteOptions& options, const Checkpoint& checkpoint) {
    const CaptureInfo& info = capture.info();
    writeCapture(path, info, capture.tokens(), capture.inverseFrequencies(info.layers.front().layer),
                 [&](LayerIndex layer, TensorRole role) { return capture.read(layer, role, checkpoint); }, options, checkpoint);
}

} // namespace kvscope
