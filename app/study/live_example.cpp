// The example of the manual's page on live models, and of Help > Try it live.
#include "app/study/live_example.h"

#include "app/study/resources.h"
#include "core/base/atomic_file.h"

namespace kvscope {

std::string shippedModel() { return findResource("sample_data/tinylm"); }

std::optional<live::LiveDescription> liveExample() {
    const std::string model = shippedModel(), story = findResource("sample_data/genesis.txt");
    if (model.empty() || story.empty()) return std::nullopt;
    const std::string text = readWholeFile(story, 1 << 20);
    live::LiveDescription example;
    example.model.path = model;
    example.form.bos = true; // as the model was trained
    example.parts = {
        {SegmentKind::Context, text.substr(0, 1500)},
        {SegmentKind::Needle, " The secret code of garden is 48151.\n"},
        {SegmentKind::Context, text.substr(1500, 1500)},
        {SegmentKind::Question, " Question: what is the secret code of garden? Answer: The secret code of garden is"},
        {SegmentKind::Answer, " 48151."}};
    return example;
}

} // namespace kvscope
