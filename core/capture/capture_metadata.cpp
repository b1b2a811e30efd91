// Reads a capture's metadata and checks it against the shapes of its data sets. A capture is untrusted input: every
// size is checked here before memory is allocated for it.
#include "core/capture/capture_metadata.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/number_text.h"
#include "core/capture/unread_head.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <span>

namespace kvscope {

namespace {

// Bounds against hostile files: no real capture reaches them, and their products cannot overflow.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
constexpr std::int64_t kMostBytesPerToken = 4096, kMostSegments = 1 << 20, kLargestSize = 65536;
constexpr const char* kRepair = "Write the capture again with kvscope-capture";

[[noreturn]] void fail(const h5::File& file, std::string sentence, std::string place, std::string remedy = kRepair) {
    throw Error({std::move(sentence), std::move(place), std::move(remedy), file.path()});
}

std::int64_t positive(const h5::File& file, const std::string& name) {
    const auto value = file.integerAttribute("/", name);
    if (!value) fail(file, "a root attribute is missing", name);
    if (*value <= 0 || *value > kLargestSize)
        fail(file, fmt::format("the attribute is {}, which no model has", *value), name);
    return *value;
}

bool areFinite(std::span<const float> numbers) {
    return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

std::string shapeText(const std::vector<std::int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

void requireShape(const h5::File& file, const std::string& dataset, const std::vector<std::int64_t>& expected) {
    const auto shape = file.info(dataset).shape;
    if (shape != expected)
        fail(file, fmt::format("the shape is {}, the attributes ask for {}", shapeText(shape), shapeText(expected)),
             dataset);
}

RopeInfo readRope(const h5::File& file, int headDim) {
    RopeInfo rope;
    rope.rotaryDim = headDim;
    const auto text = file.stringAttribute("/", "rope");
    if (!text) return rope;
    checkNesting(*text, file.path());
    const auto json = parsedJson(*text);
    if (!json.is_object()) fail(file, "the attribute is not a JSON object", "rope");
    try {
        rope.type = json.value("type", "");
        rope.theta = json.value("theta", 0.0);
        rope.attentionScaling = json.contains("attention_scaling") && json["attention_scaling"].is_number()
                                    ? json["attention_scaling"].get<double>()
                                    : 1.0;
        rope.rotaryDim = json.value("rotary_dim", headDim);
        rope.interleaved = json.value("layout", "half") == "interleaved";
        rope.rotaryBegin = json.value("rotary_begin", 0);
    } catch (const nlohmann::json::exception&) {
        fail(file, "a member of the attribute has the wrong type", "rope");
    }
    if (rope.rotaryDim < 0 || rope.rotaryDim > headDim || rope.rotaryDim % 2 != 0 || !(rope.attentionScaling > 0))
        fail(file, "rotary_dim must be even and at most head_dim, attention_scaling positive", "rope");
    if (rope.rotaryBegin < 0 || rope.rotaryBegin > headDim - rope.rotaryDim)
        fail(file, "rotary_begin + rotary_dim must be at most head_dim", "rope");
    return rope;
}

void readSources(const h5::File& file, CaptureInfo& info) {
    const auto text = file.stringAttribute("/", "sources");
    if (!text) return;
    checkNesting(*text, file.path());
    const auto json = parsedOrderedJson(*text);
    if (!json.is_object()) fail(file, "the attribute is not a JSON object", "sources");
    for (const auto& [fact, source] : json.items()) {
        if (!source.is_string()) fail(file, "a member of the attribute is no text", "sources");
        info.sources.emplace_back(fact, source.get<std::string>());
    }
}

/// The result of the capturing tool's comparison with the model.
void readSelfCheck(const h5::File& file, CaptureInfo& info) {
    info.selfCheck = file.stringAttribute("/", "self_check").value_or("");
    if (info.selfCheck.empty()) return;
    checkNesting(info.selfCheck, file.path());
    const auto json = parsedJson(info.selfCheck);
    try {
        for (const auto& check : json.at("checks"))
            info.checks.push_back({.name = check.at("name"),
                                   .outcome = check.at("outcome"),
                                   .difference = check.value("difference", 0.0),
                                   .tolerance = check.value("tolerance", 0.0),
                                   .unit = check.value("unit", ""),
                                   .rows = check.value("rows", std::int64_t{0}),
                                   .note = check.value("note", "")});
    } catch (const nlohmann::json::exception&) {
        fail(file, "the attribute is no list of checks", "self_check");
    }
}

std::int64_t readQueryCount(const h5::File& file, const CaptureInfo& info, LayerIndex layer) {
    const std::string all = layerPath(layer, "q"), window = layerPath(layer, "q_window");
    if (file.exists(all)) {
        requireShape(file, all, {info.numQueryHeads, info.numTokens, info.headDim});
        return info.numTokens;
    }
    if (!file.exists(window)) return 0;
    const auto shape = file.info(window).shape;
    if (shape.size() != 3 || shape[1] > info.numTokens)
        fail(file, "the shape must be (query heads, w, head_dim) with w at most the number of tokens", window);
    requireShape(file, window, {info.numQueryHeads, shape[1], info.headDim});
    return shape[1];
}

void readHeadMap(const h5::File& file, const CaptureInfo& info, LayerInfo& layer, const std::string& group) {
    layer.gqaGroupOf = file.integerListAttribute(group, "kv_of_q");
    if (layer.gqaGroupOf.empty()) {
        if (info.numQueryHeads % info.numKvHeads != 0)
            fail(file, "num_q_heads is no multiple of num_kv_heads and kv_of_q is missing", group);
        for (int h = 0; h < info.numQueryHeads; ++h)
            layer.gqaGroupOf.push_back(h / (info.numQueryHeads / info.numKvHeads));
    }
    const bool inRange =
        std::ranges::all_of(layer.gqaGroupOf, [&](std::int32_t head) { return head >= 0 && head < info.numKvHeads; });
    if (static_cast<int>(layer.gqaGroupOf.size()) != info.numQueryHeads || !inRange)
        fail(file,
             fmt::format("kv_of_q must name a KV head below {} for each of {} query heads", info.numKvHeads,
                         info.numQueryHeads),
             group);
    if (const std::int32_t unread = unreadHead(layer.gqaGroupOf, info.numKvHeads); unread >= 0)
        fail(file, fmt::format("no query head reads KV head {} by kv_of_q", unread), group);
}

void readOptionalTensors(const h5::File& file, const CaptureInfo& info, LayerInfo& layer) {
    const std::string keys = layerPath(layer.layer, "k_pre"), queries = layerPath(layer.layer, "q_pre");
    const std::string projection = layerPath(layer.layer, "o_proj");
    layer.hasKeysPreRope = file.exists(keys);
    layer.hasQueriesPreRope = file.exists(queries);
    layer.hasOutputProjection = file.exists(projection);
    if (layer.hasKeysPreRope) requireShape(file, keys, {info.numKvHeads, info.numTokens, info.headDim});
    if (layer.hasQueriesPreRope) requireShape(file, queries, {info.numQueryHeads, layer.queryCount, info.headDim});
    if (const std::string sinks = layerPath(layer.layer, "sinks"); file.exists(sinks)) {
        requireShape(file, sinks, {info.numQueryHeads});
        layer.sinks = file.read<float>(sinks);
        if (!areFinite(layer.sinks)) fail(file, "the logit of an attention sink is not finite", sinks);
    }
    if (!layer.hasOutputProjection) return;
    const auto shape = file.info(projection).shape;
    if (shape.size() != 3 || shape[0] > kLargestSize)
        fail(file, "the shape must be (hidden, query heads, value_dim)", projection);
    requireShape(file, projection, {shape[0], info.numQueryHeads, info.valueDim});
}

LayerInfo readLayer(const h5::File& file, const CaptureInfo& info, LayerIndex index) {
    const std::string group = layerGroup(index);
    LayerInfo layer;
    layer.layer = index;
    const auto scaling = file.realAttribute(group, "scaling");
    if (!scaling || !(*scaling > 0)) fail(file, "the layer has no positive attribute scaling", group);
    if (!std::isfinite(*scaling)) fail(file, "the attribute scaling is not finite", group);
    layer.scaling = *scaling;
    const double softcap = file.realAttribute(group, "softcap").value_or(0);
    if (!std::isfinite(softcap)) fail(file, "the attribute softcap is not finite", group);
    layer.softcap = std::max(0.0, softcap);
    layer.slidingWindow = std::max<std::int64_t>(0, file.integerAttribute(group, "sliding_window").value_or(0));
    layer.hasRope = file.integerAttribute(group, "has_rope").value_or(1) != 0;
    layer.qkNorm = file.integerAttribute(group, "qk_norm").value_or(0) != 0;
    layer.attentionType = file.stringAttribute(group, "attn_type").value_or("");
    layer.stage = file.stringAttribute(group, "stage").value_or("");
    requireShape(file, layerPath(index, "k"), {info.numKvHeads, info.numTokens, info.headDim});
    requireShape(file, layerPath(index, "v"), {info.numKvHeads, info.numTokens, info.valueDim});
    readHeadMap(file, info, layer, group);
    layer.storedType = storedTypeOf(file, layerPath(index, "k"));
    layer.queryCount = readQueryCount(file, info, index);
    readOptionalTensors(file, info, layer);
    return layer;
}

void readHash(const h5::File& file, CaptureInfo& info) {
    const auto hash = file.stringAttribute("/", "capture_hash");
    info.hasStoredHash = hash && !hash->empty();
    if (info.hasStoredHash) {
        info.hash = *hash;
        return;
    }
    std::error_code ignored;
    const auto modified = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(file.path(), ignored));
    info.hash = fmt::format("size:{},modified:{}", info.fileBytes,
                            std::chrono::duration_cast<std::chrono::seconds>(modified.time_since_epoch()).count());
}

void readFormat(const h5::File& file) {
    if (file.stringAttribute("/", "partial_state"))
        fail(file, "the capture is not whole: kvscope-capture was stopped while it wrote it", "partial_state",
             "Give the same kvscope-capture command again, with --resume");
    const auto format = file.stringAttribute("/", "format");
    if (format != "kvscope-capture")
        fail(file, "this HDF5 file is not a capture: the root attribute format is not \"kvscope-capture\"", "format",
             "Write captures with kvscope-capture");
    const auto version = file.integerAttribute("/", "version");
    if (version != 1)
        fail(file, fmt::format("the capture has version {}, this program reads version 1", version.value_or(0)),
             "version", "Use a matching version of KVScope or capture the prompt again");
}

std::vector<Segment> readSegments(const h5::File& file, std::int64_t tokens) {
    std::vector<Segment> segments;
    const std::string name = "tokens/segments";
    if (!file.exists(name)) return segments;
    const auto shape = file.info(name).shape;
    if (shape.size() != 2 || shape[1] != 3 || shape[0] > kMostSegments)
        fail(file, "segments must have three columns: begin, end, kind", name);
    const auto rows = file.read<std::int32_t>(name);
    for (std::size_t i = 0; i + 2 < rows.size(); i += 3) {
        if (rows[i] < 0 || rows[i] > rows[i + 1] || rows[i + 1] > tokens || rows[i + 2] < 0 ||
            rows[i + 2] >= std::ssize(kSegmentKinds))
            fail(file,
                 fmt::format("segment {} is ({}, {}, {}), outside the {} tokens or of unknown kind", i / 3, rows[i],
                             rows[i + 1], rows[i + 2], tokens),
                 name);
        segments.push_back({rows[i], rows[i + 1], kSegmentKinds[rows[i + 2]]});
    }
    return segments;
}

} // namespace

StoredType storedTypeOf(const h5::File& file, const std::string& dataset) {
    const h5::DatasetInfo info = file.info(dataset);
    using Kind = h5::DatasetInfo::Kind;
    if (info.kind == Kind::Uint && info.bytes == 2 && info.dtypeAttribute == "bfloat16") return StoredType::Bfloat16;
    if (info.kind == Kind::Float && info.bytes == 2 && info.exponentBits == 5) return StoredType::Float16;
    if (info.kind == Kind::Float && info.bytes == 4 && info.exponentBits == 8) return StoredType::Float32;
    fail(file, "the stored type is none of bfloat16 (uint16 with attribute dtype), float16, float32", dataset);
}

std::string layerGroup(LayerIndex layer) { return fmt::format("layers/{:02d}", layer.value); }
std::string layerPath(LayerIndex layer, std::string_view name) { return fmt::format("{}/{}", layerGroup(layer), name); }

std::string_view tensorName(TensorRole role, const LayerInfo& layer, std::int64_t tokens) {
    switch (role) {
    case TensorRole::Keys: return "k";
    case TensorRole::Values: return "v";
    case TensorRole::Queries: return layer.queryCount == tokens ? "q" : "q_window";
    case TensorRole::KeysPreRope: return "k_pre";
    case TensorRole::QueriesPreRope: return "q_pre";
    case TensorRole::OutputProjection: return "o_proj";
    }
    return {};
}

CaptureInfo readCaptureInfo(const h5::File& file) {
    readFormat(file);
    CaptureInfo info;
    info.path = file.path();
    info.fileName = std::filesystem::path(info.path).filename().string();
    std::error_code ignored;
    info.fileBytes = std::filesystem::file_size(info.path, ignored);
    info.modelId = file.stringAttribute("/", "model_id").value_or("");
    info.modelRevision = file.stringAttribute("/", "model_revision").value_or("");
    info.tool = file.stringAttribute("/", "tool").value_or("");
    info.created = file.stringAttribute("/", "created").value_or("");
    info.notes = file.stringAttribute("/", "notes").value_or("");
    info.numLayers = static_cast<int>(positive(file, "num_layers"));
    info.numQueryHeads = static_cast<int>(positive(file, "num_q_heads"));
    info.numKvHeads = static_cast<int>(positive(file, "num_kv_heads"));
    info.headDim = static_cast<int>(positive(file, "head_dim"));
    info.valueDim = static_cast<int>(positive(file, "value_dim"));
    readHash(file, info);
    info.rope = readRope(file, info.headDim);
    readSources(file, info);
    readSelfCheck(file, info);
    const auto ids = file.info("tokens/ids").shape;
    if (ids.size() != 1 || ids[0] > kMostTokens)
        fail(file,
             fmt::format("the token ids must be a list of at most {}, not of shape {}", kMostTokens, shapeText(ids)),
             "tokens/ids");
    if (ids[0] == 0) fail(file, "the capture has no tokens", "tokens/ids", "Capture a prompt of at least one token");
    info.numTokens = ids[0];
    for (const std::string& name : file.children("layers")) {
        const int number = parseNumber<int>(name).value_or(-1);
        if (number < 0 || number >= info.numLayers || fmt::format("{:02d}", number) != name)
            fail(file, fmt::format("the group is no layer below {}", info.numLayers), "layers/" + name);
        info.layers.push_back(readLayer(file, info, LayerIndex(number)));
    }
    if (info.layers.empty()) fail(file, "the capture has no layers", "layers");
    std::ranges::sort(info.layers, {}, &LayerInfo::layer);
    return info;
}

TokenTable readTokenTable(const h5::File& file, const CaptureInfo& info) {
    TokenTable tokens;
    const std::int64_t n = info.numTokens;
    requireShape(file, "tokens/offsets", {n + 1});
    requireShape(file, "tokens/position_ids", {n});
    tokens.ids = file.read<std::int32_t>("tokens/ids");
    tokens.positions = file.read<std::int64_t>("tokens/position_ids");
    tokens.offsets = file.read<std::int64_t>("tokens/offsets");
    const auto text = file.info("tokens/text").shape;
    if (text.size() != 1 || text[0] > n * kMostBytesPerToken)
        fail(file, fmt::format("the text must be a list of at most {} bytes a token", kMostBytesPerToken),
             "tokens/text");
    if (tokens.offsets.front() != 0 || !std::ranges::is_sorted(tokens.offsets) || tokens.offsets.back() != text[0])
        fail(file, "offsets must rise from 0 to the number of text bytes", "tokens/offsets");
    const auto bytes = file.read<unsigned char>("tokens/text");
    tokens.bytes.assign(bytes.begin(), bytes.end());
    if (file.exists("tokens/nll")) {
        requireShape(file, "tokens/nll", {n});
        tokens.nll = file.read<float>("tokens/nll");
    }
    tokens.segments = readSegments(file, n);
    return tokens;
}

std::vector<float> readInverseFrequencies(const h5::File& file, const CaptureInfo& info, const LayerInfo& layer) {
    std::string name = "rope/" + layer.attentionType + "/inv_freq";
    if (layer.attentionType.empty() || !file.exists(name)) name = "rope/inv_freq";
    if (!layer.hasRope || !file.exists(name)) return {};
    requireShape(file, name, {info.rope.rotaryDim / 2});
    auto frequencies = file.read<float>(name);
    if (!areFinite(frequencies)) fail(file, "an inverse frequency of the rotation is not finite", name);
    return frequencies;
}

} // namespace kvscope
