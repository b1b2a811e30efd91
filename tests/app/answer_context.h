#pragma once

#include "app/live/live_context.h"
#include "tests/live/fake_worker.h"
#include "tests/support/random_capture.h"

#include <memory>

namespace kvscope::testing {

constexpr TokenIndex kCut = 61;

/// 83 tokens, of which the answer has the last eight.
inline std::shared_ptr<MemoryCapture> contextWith(bool hasAnswer = true) {
    auto made = makeRandomCapture(7, 83, 2, 4, 2, 16);
    made->tokenTable.segments = {{0, kCut, SegmentKind::Context}, {kCut, hasAnswer ? 75 : 83, SegmentKind::Question}};
    if (hasAnswer) made->tokenTable.segments.push_back({75, 83, SegmentKind::Answer});
    return made;
}

inline live::LiveDescription contextOf(const FakeWorker& fake, const std::string& mode = "right") {
    live::LiveDescription description;
    description.command = fake.command(mode);
    description.model.path = "tiny";
    description.parts = {{SegmentKind::Context, "ignored"}};
    return description;
}

/// Opened by a worker without a model.
inline std::shared_ptr<const live::LiveCapture> opened(const FakeWorker& fake, const std::string& mode = "right") {
    return live::openLive(contextOf(fake, mode), {});
}

} // namespace kvscope::testing
