// Counts of calls as text.
#include "core/engine/engine_state.h"

namespace kvscope {

std::string textOf(const CallCounts& counts) {
    std::string text;
    for (const auto& [primitive, calls] : counts)
        text +=
            (text.empty() ? "" : ", ") + primitive + " (" + std::to_string(calls) + (calls == 1 ? " call)" : " calls)");
    return text;
}

} // namespace kvscope
