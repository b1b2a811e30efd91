#pragma once

#include "app/study/pane_request.h"

#include <optional>
#include <vector>

namespace kvscope {

/// Where one query attends in all layers and query heads, and how much of it a policy evicted: softmax weights over all
/// tokens, with the queries of the full cache. After a pruned context the queries of later layers differ a little.
struct AnswerAttention {
    struct Token {
        TokenIndex token = 0;
        double weight = 0;
        double keptIn = 1; ///< fraction of the heads that keep it
    };
    struct Head {
        LayerIndex layer;
        QueryHeadIndex head;
        double evicted = 0;         ///< sum of the weights of evicted tokens
        std::vector<Token> largest; ///< among the tokens before the cut
    };
    TokenIndex query = 0;
    int queryHeads = 0;      ///< of a layer
    std::vector<Head> heads; ///< by layer, then by query head
    Head mean;               ///< over all heads; its layer and head have no meaning
};

/// For a pane, or for the full cache, which evicts nothing. Throws Error where a layer has no such query, Cancelled.
AnswerAttention answerAttention(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture,
                                const Cut& cut, const std::optional<PaneRequest>& pane, TokenIndex query,
                                const Checkpoint& checkpoint);

} // namespace kvscope
