// A model behind a worker: its tokens, and the context that it has read, as a capture.
#include "app/live/live_capture.h"

#include "app/live/context_info.h"
#include "app/live/live_client.h"
#include "app/live/tensor_stream.h"
#include "app/live/worker_error.h"
#include "core/capture/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace kvscope::live {

namespace {

std::string fromBase64(const std::string& text) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        if (c == '=') break;
        static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const std::size_t digit = kDigits.find(c);
        if (digit == std::string_view::npos)
            throw Error({.sentence = "the worker's token texts are no base64",
                         .remedy = "Give worker and program the same version"});
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xffu);
    }
    return bytes;
}

void refuseNonFinite(const HostTensor& tensor, const std::string& place, std::int64_t firstToken) {
    const auto bad = std::ranges::find_if(tensor.data, [](float x) { return !std::isfinite(x); });
    if (bad == tensor.data.end()) return;
    const std::int64_t row = (bad - tensor.data.begin()) / tensor.shape[2];
    throw Error({.sentence = fmt::format("{} in head {}, token {}", std::isnan(*bad) ? "NaN" : "infinity",
                                         row / tensor.shape[1], firstToken + row % tensor.shape[1]),
                 .place = place,
                 .remedy = "Load the model with another --dtype: fp16 overflows where bf16 and fp32 do not"});
}

Json readParameters(const std::string& modelId, const TokenTable& prompt, TokenIndex cut,
                    const std::string& captureTo) {
    Json segments = Json::array();
    for (const Segment& segment : prompt.segments)
        segments.push_back({segment.begin, segment.end, std::string(segmentName(segment.kind))});
    return {{"model_id", modelId},
            {"ids", prompt.ids},
            {"segments", segments},
            {"cut", cut},
            {"capture_to", captureTo.empty() ? Json() : Json(captureTo)}};
}

} // namespace

LiveModel::LiveModel(std::shared_ptr<LiveClient> client, ModelChoice choice, const Checkpoint& checkpoint)
    : m_client(std::move(client)), m_choice(std::move(choice)) {
    const Json revision = m_choice.revision.empty() ? Json() : Json(m_choice.revision);
    const Json answer = m_client->call(
        "model/open",
        {{"path", m_choice.path}, {"revision", revision}, {"device", m_choice.device}, {"dtype", m_choice.dtype}}, {},
        checkpoint);
    m_modelId = understand("model/open", [&] { return answer.at("model_id").get<std::string>(); });
}

TokenTable LiveModel::tokenize(std::span<const TextPart> parts, PromptForm form, const Checkpoint& checkpoint) const {
    return live::tokenize(*m_client, {{"model_id", m_modelId}}, parts, form, checkpoint);
}

TokenTable tokenize(LiveClient& client, Json model, std::span<const TextPart> parts, PromptForm form,
                    const Checkpoint& checkpoint) {
    Json segments = Json::array();
    for (const TextPart& part : parts)
        segments.push_back({{"kind", std::string(segmentName(part.kind))}, {"text", part.text}});
    model.update(Json{{"segments", segments}, {"chat", form.chat}, {"bos", form.bos}});
    const Json answer = client.call("text/tokenize", std::move(model), {}, checkpoint);
    return understand("text/tokenize", [&] {
        TokenTable tokens;
        tokens.ids = answer.at("ids").get<std::vector<std::int32_t>>();
        tokens.positions.resize(tokens.ids.size());
        std::iota(tokens.positions.begin(), tokens.positions.end(), 0);
        tokens.offsets.push_back(0);
        for (const Json& text : answer.at("bytes")) {
            tokens.bytes += fromBase64(text.get<std::string>());
            tokens.offsets.push_back(static_cast<std::int64_t>(tokens.bytes.size()));
        }
        if (tokens.ids.empty() || tokens.offsets.size() != tokens.ids.size() + 1)
            throw Error({.sentence = fmt::format("the worker gives {} tokens and the texts of {}", tokens.ids.size(),
                                                 tokens.offsets.size() - 1),
                         .remedy = "Give a text that is not empty"});
        tokens.segments = segmentsOf(answer.at("segments"), static_cast<std::int64_t>(tokens.ids.size()));
        return tokens;
    });
}

std::shared_ptr<const LiveCapture> LiveModel::read(TokenTable prompt, TokenIndex cut, const std::string& captureTo,
                                                   const Checkpoint& checkpoint) const {
    const Json answer =
        m_client->call("context/read", readParameters(m_modelId, prompt, cut, captureTo), {}, checkpoint);
    return understand("context/read", [&] {
        std::shared_ptr<LiveCapture> capture(new LiveCapture);
        capture->m_client = m_client;
        capture->m_contextId = answer.at("context_id").get<std::string>();
        capture->m_cut = cut;
        capture->m_info = captureInfoOf(answer.at("info"), static_cast<std::int64_t>(prompt.ids.size()));
        capture->m_frequencies = frequenciesOf(answer.at("info"), capture->m_info);
        const Json& tokens = answer.at("tokens");
        prompt.positions = tokens.at("positions").get<std::vector<std::int64_t>>();
        const std::vector<double> losses = numbersOf(tokens.value("nll", Json()));
        prompt.nll.assign(losses.begin(), losses.end());
        const std::size_t n = prompt.ids.size();
        if (tokens.at("ids").get<std::vector<std::int32_t>>() != prompt.ids || prompt.positions.size() != n ||
            (!prompt.nll.empty() && prompt.nll.size() != n))
            throw Error({.sentence = "the worker has read other tokens than it was asked to",
                         .remedy = "Give worker and program the same version"});
        capture->m_tokens = std::move(prompt);
        CaptureInfo& info = capture->m_info;
        if (info.modelId.empty()) info.modelId = m_choice.path;
        info.fileName = std::filesystem::path(info.modelId).filename().string() + " (live)";
        const Json hash = answer.value("capture_hash", Json());
        info.hasStoredHash = hash.is_string() && !hash.get<std::string>().empty();
        info.hash = info.hasStoredHash ? hash.get<std::string>() : "live:" + capture->m_contextId;
        return std::shared_ptr<const LiveCapture>(std::move(capture));
    });
}

const std::vector<float>& LiveCapture::inverseFrequencies(LayerIndex layer) const {
    m_info.layerInfo(layer); // throws Error for a missing layer
    return m_frequencies.at(layer);
}

HostTensor LiveCapture::read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const {
    const LayerInfo& info = m_info.layerInfo(layer);
    switch (role) {
    case TensorRole::Keys: return fetch(info, role, "k", checkpoint);
    case TensorRole::Values: return fetch(info, role, "v", checkpoint);
    case TensorRole::Queries: return readQueries(layer, 0, info.queryCount, checkpoint);
    case TensorRole::OutputProjection:
        if (info.hasOutputProjection) return fetch(info, role, "o_proj", checkpoint);
        break;
    case TensorRole::QueriesPreRope: break;
    case TensorRole::KeysPreRope: {
        HostTensor keys = fetch(info, TensorRole::Keys, "k", checkpoint);
        const std::vector<float>& frequencies = m_frequencies.at(layer);
        if (info.hasRope && !frequencies.empty()) rotateBack(keys, m_tokens.positions, frequencies, m_info.rope);
        return keys;
    }
    }
    refuseMissing(layer);
}

bool LiveCapture::readsQueriesInParts() const { return m_client->can("rows"); }

HostTensor LiveCapture::readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                                    const Checkpoint& checkpoint) const {
    const LayerInfo& info = m_info.layerInfo(layer);
    if (info.queryCount == 0) refuseMissing(layer);
    const bool all = begin == 0 && end == info.queryCount;
    return fetch(info, "q", {m_info.numQueryHeads, end - begin, m_info.headDim}, all ? Json() : Json{begin, end},
                 m_info.numTokens - info.queryCount + begin, checkpoint);
}

void LiveCapture::refuseMissing(LayerIndex layer) const {
    throw Error({.sentence = fmt::format("layer {} does not hold this tensor", layer.value),
                 .place = m_info.fileName,
                 .remedy = "Capture the prompt with it"});
}

void LiveCapture::writeCapture(const std::string& path, const Checkpoint& checkpoint) const {
    m_client->call("context/save", {{"context_id", m_contextId}, {"capture_to", path}}, {}, checkpoint);
}

std::vector<std::int64_t> LiveCapture::shapeOf(TensorRole role) const {
    if (role == TensorRole::Keys) return {m_info.numKvHeads, m_info.numTokens, m_info.headDim};
    if (role == TensorRole::Values) return {m_info.numKvHeads, m_info.numTokens, m_info.valueDim};
    return {TensorStream::kAsStated, m_info.numQueryHeads, m_info.valueDim}; // o_proj: the model's width
}

HostTensor LiveCapture::fetch(const LayerInfo& layer, TensorRole role, const char* name,
                              const Checkpoint& checkpoint) const {
    return fetch(layer, name, shapeOf(role), {}, 0, checkpoint);
}

HostTensor LiveCapture::fetch(const LayerInfo& layer, const char* name, const std::vector<std::int64_t>& shape,
                              const Json& rows, std::int64_t firstToken, const Checkpoint& checkpoint) const {
    const std::string place = fmt::format("layer {}, {}", layer.layer.value, name);
    TensorStream stream(place, shape, checkpoint);
    m_client->call("tensors/get",
                   {{"context_id", m_contextId}, {"layer", layer.layer.value}, {"role", name}, {"rows", rows}}, {},
                   checkpoint, stream.taker());
    HostTensor tensor = stream.finish();
    refuseNonFinite(tensor, place, firstToken);
    return tensor;
}

} // namespace kvscope::live
