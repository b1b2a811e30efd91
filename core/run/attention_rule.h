#pragma once

#include "core/capture/capture.h"
#include "core/engine/attention.h"

namespace kvscope {

/// The rule of a captured layer. Whoever computes attention from a capture takes it from here, so that no part of the
/// rule is forgotten.
inline AttentionRule attentionRuleOf(const LayerInfo& layer) {
    return {layer.scaling, layer.softcap, layer.slidingWindow, layer.gqaGroupOf, layer.sinks};
}

} // namespace kvscope
