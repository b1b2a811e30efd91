#pragma once

#include "core/policies/balance/balance_kernel.h"
#include "core/policies/balance/balance_log.h"
#include "views/view_data.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The balancing walks of one KV head and one round (blocked BalanceKV) or level of a tree (streaming), and the band of
/// fair coins on the same kernels.
struct WalkData : ExplainedData {
    bool streaming = false; ///< else blocked
    std::string what;       ///< "round 1" or "C⁰ → C¹, keys of the denominator"
    std::string whyNone;    ///< why there is no walk; else empty
    std::int64_t level = 1; ///< round or level, from 1
    int chosen = -1;        ///< requested block; -1: follows the cursor
    TokenIndex end = 0;     ///< tokens before the cut
    std::shared_ptr<const BalanceLog> log;
    struct Walk {
        const BalanceWalkLog* log = nullptr; ///< in `log`
        CoinBand band;                       ///< empty without coins
        /// M pooled to at most 512 x 512 cells by the entry of largest magnitude; empty where M was not computed.
        std::vector<float> kernel;
        std::int64_t side = 0; ///< cells
        double range = 0;      ///< of the colours: 99.5 % of the entries off the diagonal have a smaller magnitude
    };
    std::vector<Walk> walks; ///< ascending by place; only the chosen one where one was chosen
    int coinRuns = 0;
    std::uint64_t seed = 0;
    std::string whyNoKernel; ///< too many walks at once; else empty
};

} // namespace kvscope
