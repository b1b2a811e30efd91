#pragma once

#include "core/policies/balance/balance_errors.h"
#include "core/policies/balance/balance_log.h"
#include "views/view_data.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The trees of one KV head of streaming BalanceKV, and the errors of one query.
struct MergeTreeData : ExplainedData {
    std::shared_ptr<const BalanceStream> stream;
    std::int64_t kvHead = 0;
    std::int64_t tree = -1; ///< the one that is shown, in stream->trees; -1: no value lies in the chosen octave
    int wantedBucket = 0;   ///< the chosen octave
    TokenIndex query = -1;  ///< -1: none, and `whyNoQuery`
    std::string whyNoQuery;
    struct Node {
        double discrepancy = NAN; ///< for the query; NaN: there is none, or it is not evaluated yet
        double largest = 0;       ///< max |1 - 2p|, which is |y| / (c R^2)
        std::int64_t repeats = 0;
    };
    std::vector<std::vector<Node>> nodes; ///< as BalanceTree::nodes
    struct Octave {
        int bucket = 0;
        std::int64_t tree = 0; ///< in stream->trees
    };
    std::vector<Octave> octaves; ///< that hold values, ascending
    /// Errors of the stored samples for the query, at ascending cursors; empty without a query.
    struct At {
        TokenIndex cursor = 0;
        StreamErrors errors;
    };
    std::vector<At> errors;

    const Node& numbersOf(std::int64_t level, std::int64_t place) const { ///< level from 1
        return nodes[level - 1][place];
    }
    const BalanceTree* shown() const { return tree < 0 ? nullptr : &stream->trees[tree]; }
};

} // namespace kvscope
