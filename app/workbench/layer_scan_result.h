#pragma once

#include <string>
#include <vector>

namespace kvscope {

/// What the head picker shows of a layer: one number per KV head, or why there is none.
struct LayerScanResult {
    std::string key;            ///< of the request that this answers
    std::vector<double> values; ///< [Hkv]: of the active pane, or of the layer itself; empty where refused
    std::string refusal, help;  ///< a short sentence, and all that is to be said about it
};

} // namespace kvscope
