#pragma once

#include "core/capture/capture.h"

#include <string>

namespace kvscope {

/// What a policy may see, and what it is judged on (policies.md 0.9), as typed:
/// "default", "segment:context", "segment:question", "last:256", "995" or "none".
struct Cut {
    std::string text = "default";
    TokenIndex token = 0;      ///< tokens [0, token) are seen
    bool judgedOnSeen = false; ///< "none": measures use the last queries, which the policy saw too
    std::string label;         ///< "end of context, 995", for captions

    /// Throws Error for a cut outside the capture, a missing segment or an unknown form.
    static Cut resolve(const std::string& text, const CaptureReader& capture);
};

} // namespace kvscope
