#pragma once

#include "core/base/index.h"

#include <string>

namespace kvscope {

class CaptureReader; // core/capture/capture.h

/// The position that divides the prompt: a policy sees the tokens before it, the queries after it evaluate. As typed:
/// "default", "segment:context", "segment:question", "last:256", "995" or "none".
///
/// - segment:context: the end of the context, before the first question (query-agnostic). With several context segments
///   the last one that begins before the first question counts. The other kinds (system, needle, answer) give the
///   end of their first segment.
/// - segment:question: the end of the first question that ends after that context (query-aware); without a context the
///   first question.
/// - last:W: the last W tokens are after the cut.
/// - default: segment:context where one exists that leaves queries after it, else the last min(256, n/2) tokens.
/// - none: the policy sees everything (cut = n), and measures use the last 256 queries, which it has seen.
struct Cut {
    std::string text = "default";
    TokenIndex token = 0;         ///< tokens [0, token) are seen
    bool evaluatedOnSeen = false; ///< "none": measures use the last queries, which the policy saw too
    std::string label;            ///< "end of context, 995", for captions

    /// Throws Error for a cut outside the capture, a missing segment or an unknown form. Only "none" gives token = n.
    static Cut resolve(const std::string& text, const CaptureReader& capture);
};

} // namespace kvscope
