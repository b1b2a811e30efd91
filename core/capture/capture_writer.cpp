// Writes captures. Attributes and tokens go first, then tensors as they come; the hash is computed from the finished
// file, because it runs over the data sets in the order of their paths and not in the order in which they were made.
#include "core/capture/capture_writer.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/row_source.h"
#include "core/capture/capture_hash.h"
#include "core/capture/capture_metadata.h"
#include "core/capture/h5_writer.h"
#include "core/capture/widen.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace kvscope {

namespace {

constexpr std::int64_t kChunkRows = 4096; // (1 head, 4096 tokens, d) is 1 MiB at 16 bits and d = 128

h5::ElementType elementType(StoredType type) {
    switch (type) {
    case StoredType::Bfloat16: return h5::ElementType::Uint16;
    case StoredType::Float16: return h5::ElementType::Float16;
    case StoredType::Float32: return h5::ElementType::Float32;
    }
    return h5::ElementType::Float32;
}

void writeRoot(h5::Writer& file, const CaptureInfo& info) {
    const std::string root = "/";
    file.attribute(root, "format", std::string("kvscope-capture"));
    file.attribute(root, "version", std::int64_t{1});
    const std::pair<const char*, const std::string*> texts[] = {
        {"model_id", &info.modelId}, {"model_revision", &info.modelRevision},
        {"tool", &info.tool},        {"created", &info.created},
        {"notes", &info.notes},      {"self_check", &info.selfCheck}};
    for (const auto& [name, text] : texts)
        if (!text->empty()) file.attribute(root, name, *text);
    const std::pair<const char*, int> sizes[] = {{"num_layers", info.numLayers},
                                                 {"num_q_heads", info.numQueryHeads},
                                                 {"num_kv_heads", info.numKvHeads},
                                                 {"head_dim", info.headDim},
                                                 {"value_dim", info.valueDim}};
    for (const auto& [name, size] : sizes) file.attribute(root, name, std::int64_t{size});
    const RopeInfo& rope = info.rope;
    nlohmann::json json{{"type", rope.type},
                        {"theta", rope.theta},
                        {"attention_scaling", rope.attentionScaling},
                        {"rotary_dim", rope.rotaryDim},
                        {"layout", rope.interleaved ? "interleaved" : "half"}};
    if (rope.rotaryBegin > 0) json["rotary_begin"] = rope.rotaryBegin;
    file.attribute(root, "rope", jsonLine(json));
    nlohmann::ordered_json sources;
    for (const auto& [fact, source] : info.sources) sources[fact] = source;
    if (!sources.empty()) file.attribute(root, "sources", jsonLine(sources));
}

void writeTokens(h5::Writer& file, const TokenTable& tokens) {
    file.put("tokens/ids", tokens.ids);
    file.put("tokens/text", tokens.bytes);
    file.put("tokens/offsets", tokens.offsets);
    file.put("tokens/position_ids", tokens.positions);
    if (!tokens.nll.empty()) file.put("tokens/nll", tokens.nll);
    if (tokens.segments.empty()) return;
    std::vector<std::int32_t> rows;
    for (const Segment& segment : tokens.segments)
        rows.insert(rows.end(), {segment.begin, segment.end, static_cast<std::int32_t>(segment.kind)});
    file.put("tokens/segments", rows, {static_cast<std::int64_t>(rows.size() / 3), 3});
}

void writeLayerAttributes(h5::Writer& file, const LayerInfo& layer) {
    const std::string group = layerGroup(layer.layer);
    file.attribute(group, "scaling", layer.scaling);
    file.attribute(group, "softcap", layer.softcap);
    file.attribute(group, "sliding_window", layer.slidingWindow);
    file.attribute(group, "has_rope", std::int64_t{layer.hasRope});
    file.attribute(group, "qk_norm", std::int64_t{layer.qkNorm});
    file.attribute(group, "attn_type", layer.attentionType);
    file.attribute(group, "stage", layer.stage);
    file.attribute(group, "kv_of_q", std::span<const std::int32_t>(layer.gqaGroupOf));
    if (!layer.sinks.empty()) file.put(group + "/sinks", layer.sinks);
}

std::vector<std::uint16_t> narrowed(std::span<const float> values, StoredType type) {
    std::vector<std::uint16_t> bits(values.size());
    std::ranges::transform(values, bits.begin(), type == StoredType::Bfloat16 ? narrowToBfloat16 : narrowToFloat16);
    return bits;
}

// The largest number that does not round to infinity.
float largestStored(StoredType type) {
    switch (type) {
    case StoredType::Bfloat16: return 0x1.FEFFFEp127f;
    case StoredType::Float16: return 65519.996f;
    case StoredType::Float32: return std::numeric_limits<float>::max();
    }
    return 0;
}

std::vector<TensorRole> storedRoles(const LayerInfo& layer) {
    std::vector<TensorRole> roles{TensorRole::Keys, TensorRole::Values};
    if (layer.queryCount > 0) roles.push_back(TensorRole::Queries);
    if (layer.hasKeysPreRope) roles.push_back(TensorRole::KeysPreRope);
    if (layer.hasQueriesPreRope) roles.push_back(TensorRole::QueriesPreRope);
    if (layer.hasOutputProjection) roles.push_back(TensorRole::OutputProjection);
    return roles;
}

// One list for all layers where they agree, else one for each attention type.
void copyFrequencies(const CaptureReader& source, CaptureWriter& writer) {
    std::map<std::string, std::vector<float>> byType;
    std::set<std::vector<float>> different;
    for (const LayerInfo& layer : source.info().layers) {
        const auto& frequencies = source.inverseFrequencies(layer.layer);
        if (frequencies.empty()) continue;
        byType[layer.attentionType] = frequencies;
        different.insert(frequencies);
    }
    if (different.size() == 1)
        writer.writeInverseFrequencies("", *different.begin());
    else
        for (const auto& [type, frequencies] : byType) writer.writeInverseFrequencies(type, frequencies);
}

} // namespace

struct CaptureWriter::State {
    AtomicFile file;
    std::string path;
    CaptureInfo info;
    CaptureWriteOptions options;
    std::optional<h5::Writer> h5;

    State(const std::string& target, const CaptureInfo& captureInfo, const CaptureWriteOptions& writeOptions)
        : file(target), path(target), info(captureInfo), options(writeOptions) {
        h5.emplace(file);
    }

    std::vector<std::int64_t> shapeOf(const LayerInfo& layer, TensorRole role) const {
        const bool queries = role == TensorRole::Queries || role == TensorRole::QueriesPreRope;
        const int width = role == TensorRole::Values ? info.valueDim : info.headDim;
        return {queries ? info.numQueryHeads : info.numKvHeads, queries ? layer.queryCount : info.numTokens, width};
    }

    std::string create(const LayerInfo& layer, TensorRole role, const std::vector<std::int64_t>& shape, bool reserved) {
        const std::string name = layerPath(layer.layer, tensorName(role, layer, info.numTokens));
        h5::Storage storage;
        storage.reserveSpace = reserved;
        storage.deflateLevel = options.deflateLevel;
        if (!reserved) storage.chunk = {1, std::min(kChunkRows, shape[1]), shape[2]};
        h5->createDataset(name, elementType(layer.storedType), shape, storage);
        if (layer.storedType == StoredType::Bfloat16) h5->attribute(name, "dtype", std::string("bfloat16"));
        return name;
    }

    /// `rowsAt(head, first row, count)` returns a pointer to these rows.
    template <class RowsAt>
    void writeTensor(LayerIndex index, TensorRole role, const Shape& shape, const Checkpoint& checkpoint,
                     const RowsAt& rowsAt) {
        const LayerInfo& layer = info.layerInfo(index);
        const std::int64_t heads = shape[0], rows = shape[1], width = shape[2];
        const std::vector<std::int64_t> sizes{heads, rows, width};
        assert(role == TensorRole::OutputProjection || sizes == shapeOf(layer, role));
        const std::string name = create(layer, role, sizes, false);
        for (std::int64_t head = 0; head < heads; ++head)
            for (std::int64_t row = 0; row < rows; row += kChunkRows) {
                checkpoint.at(static_cast<double>(head * rows + row), static_cast<double>(heads * rows));
                const std::int64_t count = std::min(kChunkRows, rows - row);
                writeRows(name, layer.storedType, head, row,
                          {rowsAt(head, row, count), static_cast<std::size_t>(count * width)}, width);
            }
    }

    void writeRows(const std::string& name, StoredType type, std::int64_t head, std::int64_t row,
                   std::span<const float> values, std::int64_t width) {
        const float largest = largestStored(type);
        const auto bad = std::ranges::find_if(values, [&](float x) { return !(std::fabs(x) <= largest); });
        if (bad != values.end())
            throw Error({fmt::format("{} in head {}, row {} cannot be stored as {}", *bad, head,
                                     row + (bad - values.begin()) / width, storedTypeName(type)),
                         name, "Store the capture as f32 or repair the data", path});
        const h5::Block block{{head, row, 0}, {1, static_cast<std::int64_t>(values.size()) / width, width}};
        if (type == StoredType::Float32) {
            h5->write(name, values.data(), values.size_bytes(), &block);
            return;
        }
        const auto bits = narrowed(values, type);
        h5->write(name, bits.data(), bits.size() * 2, &block);
    }
};

CaptureWriter::CaptureWriter(const std::string& path, const CaptureInfo& info, const TokenTable& tokens,
                             const CaptureWriteOptions& options)
    : m_state(std::make_unique<State>(path, info, options)) {
    h5::Writer& file = *m_state->h5;
    writeRoot(file, info);
    writeTokens(file, tokens);
    for (const LayerInfo& layer : info.layers) writeLayerAttributes(file, layer);
}

CaptureWriter::~CaptureWriter() = default;

void CaptureWriter::writeInverseFrequencies(const std::string& attentionType, const std::vector<float>& frequencies) {
    const std::string name = attentionType.empty() ? "rope/inv_freq" : "rope/" + attentionType + "/inv_freq";
    m_state->h5->put(name, frequencies);
}

void CaptureWriter::write(LayerIndex layer, TensorRole role, const HostTensor& tensor, const Checkpoint& checkpoint) {
    m_state->writeTensor(layer, role, tensor.shape, checkpoint, [&](std::int64_t head, std::int64_t row, std::int64_t) {
        return tensor.data.data() + (head * tensor.shape[1] + row) * tensor.shape[2];
    });
}

void CaptureWriter::write(LayerIndex layer, TensorRole role, const RowSource& rows, const Checkpoint& checkpoint) {
    std::vector<float> block(static_cast<std::size_t>(kChunkRows * rows.shape()[2]));
    m_state->writeTensor(layer, role, rows.shape(), checkpoint,
                         [&](std::int64_t head, std::int64_t row, std::int64_t count) {
                             rows.read(head, row, count, block.data());
                             return block.data();
                         });
}

void CaptureWriter::reserve(LayerIndex layer, TensorRole role) {
    const LayerInfo& info = m_state->info.layerInfo(layer);
    m_state->create(info, role, m_state->shapeOf(info, role), true);
}

void CaptureWriter::finish(const Checkpoint& checkpoint) {
    m_state->h5->close();
    m_state->h5.reset();
    const std::string& temporary = m_state->file.temporaryPath();
    if (m_state->options.withHash) {
        const std::string hash = hashOfCapture(h5::File::openForReading(temporary), checkpoint);
        h5::Writer again(m_state->file, h5::Writer::Mode::Append);
        again.attribute("/", "capture_hash", hash);
        again.close();
    }
    m_state->file.commit();
}

void writeCapture(const CaptureReader& source, const std::string& path, const CaptureWriteOptions& options,
                  const Checkpoint& checkpoint) {
    const CaptureInfo& info = source.info();
    CaptureWriter writer(path, info, source.tokens(), options);
    copyFrequencies(source, writer);
    for (std::size_t i = 0; i < info.layers.size(); ++i) {
        checkpoint.at(static_cast<double>(i), static_cast<double>(info.layers.size() + 1));
        const LayerIndex layer = info.layers[i].layer;
        const Checkpoint silent = checkpoint.silent();
        for (const TensorRole role : storedRoles(info.layers[i])) {
            if (const auto rows = source.rows(layer, role))
                writer.write(layer, role, *rows, silent);
            else
                writer.write(layer, role, source.read(layer, role, silent), silent);
        }
    }
    writer.finish(checkpoint.silent());
}

} // namespace kvscope
