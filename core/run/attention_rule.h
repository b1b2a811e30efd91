#pragma once

#include "core/capture/capture.h"
#include "core/engine/attention.h"

namespace kvscope {

/// The rule of a captured layer. All code that computes attention from a capture takes the rule from here, so that no
/// part of it is forgotten.
inline AttentionRule attentionRuleOf(const LayerInfo& layer) {
    return {layer.scaling, layer.softcap, layer.slidingWindow, layer.gqaGroupOf, layer.sinks};
}

} // namespace kvscope
