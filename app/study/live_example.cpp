// The example of the manual's page on live models, and of Help > Try it live.
#include "app/study/live_example.h"

#include "app/study/resources.h"
#include "core/base/atomic_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace kvscope {

std::string shippedModel() { return findResource("sample_data/tinylm"); }

std::vector<std::string> cachedModels() {
    const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
    std::filesystem::path folder = variable("HF_HUB_CACHE"), home = variable("HF_HOME");
    if (home.empty()) home = std::filesystem::path(variable("HOME")) / ".cache/huggingface";
    if (folder.empty()) folder = home / "hub";
    std::vector<std::string> models;
    std::error_code unreadable; // as if it were empty
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("models--")) continue;
        const std::size_t dashes = name.find("--", 8);
        models.push_back(dashes == name.npos ? name.substr(8)
                                             : name.substr(8, dashes - 8) + "/" + name.substr(dashes + 2));
    }
    std::ranges::sort(models);
    return models;
}

std::optional<live::LiveDescription> liveExample() {
    const std::string model = shippedModel(), story = findResource("sample_data/genesis.txt");
    if (model.empty() || story.empty()) return std::nullopt;
    const std::string text = readWholeFile(story, 1 << 20);
    live::LiveDescription example;
    example.model.path = model;
    example.form.bos = true; // as it was trained
    example.parts = {
        {SegmentKind::Context, text.substr(0, 1500)},
        {SegmentKind::Needle, " The secret code of garden is 48151.\n"},
        {SegmentKind::Context, text.substr(1500, 1500)},
        {SegmentKind::Question, " Question: what is the secret code of garden? Answer: The secret code of garden is"},
        {SegmentKind::Answer, " 48151."}};
    return example;
}

} // namespace kvscope
