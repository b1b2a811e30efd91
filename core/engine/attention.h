#pragma once

#include <cstdint>
#include <vector>

namespace kvscope {

/// How a layer computes attention logits from q and k.
struct AttentionRule {
    double scaling = 1;                   ///< on q.k
    double softcap = 0;                   ///< logit -> softcap tanh(logit / softcap); 0: none
    std::int64_t slidingWindow = 0;       ///< query j sees i > j - slidingWindow; 0: all
    std::vector<std::int32_t> gqaGroupOf; ///< [Hq] KV head of each query head
};

/// How the numbers of a GQA group's query heads are combined.
enum class GroupRule { Mean, Sum, Max };

} // namespace kvscope
