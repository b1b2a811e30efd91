// Opens the context of a description, which a worker then reads, and converts the description to text and back.
#include "app/live/live_context.h"

#include "app/live/live_client.h"
#include "core/base/json/json_text.h"
#include "core/base/one_line.h"
#include "core/capture/memory_capture.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <utility>

namespace kvscope::live {

namespace {

SegmentKind kindOf(const std::string& name) {
    if (const auto kind = segmentKindNamed(name)) return *kind;
    throw Error({.sentence = "'" + name + "' is no kind of text",
                 .place = "parts",
                 .remedy = "Give system, context, needle, question or answer"});
}

void checkText(const LiveDescription& description) {
    if (partText(description, SegmentKind::Context).empty())
        throw Error({.sentence = "there is no text to read", .place = "text", .remedy = "Give a context"});
    for (const TextPart& part : description.parts)
        if (!isUtf8(part.text))
            throw Error({.sentence = "the text is not UTF-8",
                         .place = std::string(segmentName(part.kind)),
                         .remedy = "Convert it"});
}

struct SpareWorker {
    std::mutex mutex;
    std::shared_ptr<LiveClient> client; ///< guarded by mutex
};

SpareWorker& spareWorker() {
    static SpareWorker only;
    return only;
}

/// The spare worker; null unless it runs this command. Afterwards there is no spare worker.
std::shared_ptr<LiveClient> takeSpareWorker(const std::string& command) {
    std::shared_ptr<LiveClient> client;
    {
        const std::lock_guard lock(spareWorker().mutex);
        client.swap(spareWorker().client);
    }
    return client && client->options().command == command && client->lost().empty() ? client : nullptr;
}

} // namespace

std::string textOf(const LiveDescription& description) {
    Json parts = Json::array();
    for (const TextPart& part : description.parts)
        parts.push_back({{"kind", std::string(segmentName(part.kind))}, {"text", part.text}});
    const ModelChoice& model = description.model;
    return jsonLine(Json{{"python", description.command},
                         {"model", model.path},
                         {"revision", model.revision},
                         {"device", model.device},
                         {"dtype", model.dtype},
                         {"parts", parts},
                         {"chat", description.form.chat},
                         {"bos", description.form.bos},
                         {"cut", description.cut}});
}

LiveDescription descriptionOf(const std::string& text) {
    const char* key = "live";
    try {
        const Json json = parsedJson(text);
        LiveDescription description;
        const auto take = [&](const char* name, auto& target) {
            key = name;
            json.at(name).get_to(target);
        };
        take("python", description.command);
        take("model", description.model.path);
        take("revision", description.model.revision);
        take("device", description.model.device);
        take("dtype", description.model.dtype);
        take("chat", description.form.chat);
        take("bos", description.form.bos);
        take("cut", description.cut);
        key = "parts";
        for (const Json& part : json.at("parts"))
            description.parts.push_back({kindOf(part.at("kind").get<std::string>()), part.at("text")});
        return description;
    } catch (const Json::exception&) {
        throw Error({.sentence = fmt::format("the live context's '{}' is missing or of the wrong kind", key),
                     .place = "live",
                     .remedy = "Repair or delete the live context"});
    }
}

std::string modelName(const LiveDescription& description) {
    std::filesystem::path path = std::filesystem::path(description.model.path).lexically_normal();
    if (!path.has_filename()) path = path.parent_path(); // "models/tiny/"
    return path.has_filename() ? path.filename().string() : description.model.path;
}

std::string partText(const LiveDescription& description, SegmentKind kind) {
    std::string text;
    for (const TextPart& part : description.parts)
        if (part.kind == kind) text += part.text;
    return text;
}

std::string cutOf(const LiveDescription& description) {
    return description.cut == "question" ? "segment:question" : description.cut;
}

Cut resolvedCut(const LiveDescription& description, const TokenTable& prompt) {
    MemoryCapture tokens;
    tokens.tokenTable = prompt;
    tokens.captureInfo.numTokens = static_cast<std::int64_t>(prompt.ids.size());
    const Cut cut = Cut::resolve(cutOf(description), tokens);
    if (cut.evaluatedOnSeen)
        throw Error({.sentence = "without a cut nothing is pruned before the answer",
                     .place = "cut",
                     .remedy = "Give question, last:N or a token number"});
    return cut;
}

void leaveSpareWorker(std::shared_ptr<LiveClient> worker) {
    const std::lock_guard lock(spareWorker().mutex);
    spareWorker().client.swap(worker);
}

std::shared_ptr<const LiveCapture> openLive(const LiveDescription& description, const Checkpoint& checkpoint,
                                            const StageReport& stage, const WorkerReport& started) {
    const auto begin = [&](const std::string& what) {
        if (stage) stage(what);
    };
    checkText(description);
    begin("starting " + description.command);
    WorkerOptions worker;
    worker.command = description.command;
    worker.startSays = [&](const std::string& line) { begin("starting " + description.command + ": " + line); };
    auto client = takeSpareWorker(description.command);
    if (!client) client = std::make_shared<LiveClient>(worker, checkpoint.part(0, 0.2));
    if (started) started(*client);
    begin("loading " + modelName(description));
    const LiveModel model(client, description.model, checkpoint.part(0.2, 0.4));
    begin("counting tokens");
    TokenTable prompt = model.tokenize(description.parts, description.form, checkpoint.silent());
    const TokenIndex cut = resolvedCut(description, prompt).token;
    begin(fmt::format("reading {} tokens", prompt.ids.size()));
    return model.read(std::move(prompt), cut, description.captureTo, checkpoint.part(0.4, 1));
}

} // namespace kvscope::live
