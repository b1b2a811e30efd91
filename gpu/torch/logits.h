#pragma once

#include "core/engine/attention.h"
#include "gpu/torch/torch_device.h"
#include "gpu/torch/torch_tensor.h"

#include <cstdint>
#include <vector>

namespace kvscope::gpu {

/// Keys that each row of a block of logits sees: positions from <= p < end.
struct Visible {
    std::vector<std::int64_t> from, end; ///< one per row

    void add(std::int64_t first, std::int64_t last) {
        from.push_back(first);
        end.push_back(last);
    }
    /// Causal, with the rule's sliding window.
    void addCausal(std::int64_t position, const AttentionRule& rule) {
        add(rule.slidingWindow > 0 ? position - rule.slidingWindow + 1 : 0, position + 1);
    }
};

/// Scaled and softcapped products of rows [.., R, d] and keys [.., m, d], in their type: [.., R, m].
at::Tensor logitsOf(const at::Tensor& rows, const at::Tensor& keys, const AttentionRule& rule);

/// The mask [R, m], true where row r does not see the key; an undefined tensor when every row sees every key.
/// `positions` [m] on the device, all in [first, last].
at::Tensor hiddenFrom(const TorchDevice& device, const Visible& visible, const at::Tensor& positions,
                      std::int64_t first, std::int64_t last);

/// Softmax without its division, in place: logits become e^(l - rowMax), masked ones 0. Returns rowMax [.., R, 1],
/// -infinity where a row sees no key.
at::Tensor exponentiate(at::Tensor& logits, const at::Tensor& hidden);

/// 1 / x; 0 where x is 0. NaN stays.
at::Tensor inverseSumsOf(const at::Tensor& rowSums);

/// Query heads that read KV head `kv`.
std::vector<std::int64_t> queryHeadsOf(const AttentionRule& rule, std::int64_t kv);

} // namespace kvscope::gpu
