#pragma once

#include "core/capture/capture.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

enum class Severity { Ok, Note, Warning, Error };
std::string_view severityName(Severity severity); ///< "ok", "note", "warning", "error"

/// One finding of the doctor.
struct CaptureFinding {
    Severity severity = Severity::Note;
    std::string what;   ///< a sentence without the final full stop
    std::string place;  ///< data set or attribute
    std::string remedy; ///< what to do, or what still works
};

struct ExamineOptions {
    bool readEverything = false; ///< hash, NaN and infinity, stored k_pre against rotated keys
};

/// What is missing or contradictory in a capture and what that disables. Never throws for what the capture contains.
std::vector<CaptureFinding> examineCapture(const CaptureReader& capture, const ExamineOptions& options,
                                           const Checkpoint& checkpoint);

} // namespace kvscope
