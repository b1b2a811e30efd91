#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace kvscope {

/// How a layer computes attention logits from q and k.
struct AttentionRule {
    double scaling = 1;                   ///< on q.k
    double softcap = 0;                   ///< logit -> softcap tanh(logit / softcap); 0: none
    std::int64_t slidingWindow = 0;       ///< query j sees i > j - slidingWindow; 0: all
    std::vector<std::int32_t> gqaGroupOf; ///< [Hq] KV head of each query head
    /// [Hq] logit of each query head's attention sink (gpt-oss): a further term e^sink of every softmax denominator,
    /// with value 0, weight 1 and no key, seen by every query. Empty: none.
    std::vector<float> sinks = {};

    /// Logit of the query head's sink; -infinity without one.
    double sinkOf(std::int64_t queryHead) const {
        return sinks.empty() ? -std::numeric_limits<double>::infinity()
                             : double{sinks[static_cast<std::size_t>(queryHead)]};
    }
};

/// How the numbers of a GQA group's query heads are combined.
enum class GroupRule { Mean, Sum, Max };

} // namespace kvscope
