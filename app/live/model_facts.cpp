// What can be known about a model and a text before the model is loaded.
#include "app/live/model_facts.h"

#include "app/live/live_client.h"
#include "core/base/one_line.h"

namespace kvscope::live {

namespace {

std::string typeOf(const ModelFacts& facts, const std::string& dtype) { return dtype == "auto" ? facts.dtype : dtype; }

} // namespace

ModelFacts inspectModel(LiveClient& client, const ModelChoice& model, const Checkpoint& checkpoint) {
    const Json revision = model.revision.empty() ? Json() : Json(model.revision);
    const Json answer = client.call("model/inspect", {{"path", model.path}, {"revision", revision}}, {}, checkpoint);
    return understand("model/inspect", [&] {
        ModelFacts facts;
        answer.at("architecture").get_to(facts.architecture);
        answer.at("layers").get_to(facts.layers);
        answer.at("query_heads").get_to(facts.queryHeads);
        answer.at("kv_heads").get_to(facts.kvHeads);
        answer.at("head_dim").get_to(facts.headDim);
        answer.at("bytes_to_load").get_to(facts.bytesToLoad);
        answer.at("bytes_per_token").get_to(facts.bytesPerToken);
        if (const auto most = answer.find("max_positions"); most != answer.end() && most->is_number_integer())
            most->get_to(facts.mostTokens);
        facts.dtype = answer.value("dtype", "f32");
        answer.at("supported").get_to(facts.isSupported);
        answer.at("why").get_to(facts.why);
        return facts;
    });
}

std::vector<Device> devicesOf(const LiveClient& client) {
    return understand("initialize", [&] {
        std::vector<Device> devices;
        for (const Json& device : client.worker().value("devices", Json::array()))
            devices.push_back({device.at("name"), device.value("free", 0.0)});
        return devices;
    });
}

std::vector<std::string> cachedModels(LiveClient& client, const Checkpoint& checkpoint) {
    constexpr std::size_t kMost = 1000, kMostBytes = 200;
    if (!client.can("list")) return {};
    const Json answer = client.call("model/list", Json::object(), {}, checkpoint);
    return understand("model/list", [&] {
        std::vector<std::string> models;
        for (const Json& name : answer.at("models")) {
            const std::string model = oneLine(name.get<std::string>());
            if (!model.empty() && model.size() <= kMostBytes) models.push_back(model);
            if (models.size() == kMost) break;
        }
        return models;
    });
}

double bytesToLoad(const ModelFacts& facts, const std::string& dtype) {
    const auto found = facts.bytesToLoad.find(typeOf(facts, dtype));
    return found == facts.bytesToLoad.end() ? 0 : found->second;
}

double bytesOfContext(const ModelFacts& facts, const std::string& dtype, std::int64_t tokens) {
    return facts.bytesPerToken * static_cast<double>(tokens) * (typeOf(facts, dtype) == "f32" ? 2 : 1);
}

TokenTable tokensOf(LiveClient& client, const LiveDescription& description, const Checkpoint& checkpoint) {
    const ModelChoice& model = description.model;
    const Json revision = model.revision.empty() ? Json() : Json(model.revision);
    return tokenize(client, {{"path", model.path}, {"revision", revision}}, description.parts, description.form,
                    checkpoint);
}

} // namespace kvscope::live
