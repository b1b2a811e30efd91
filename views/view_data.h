#pragma once

#include <memory>
#include <string>

namespace kvscope {

/// What a view shows beside the results of the panes: computed by the host on a worker, frozen, and handed in, because
/// views know no engine. Each kind derives its own.
struct ViewData {
    virtual ~ViewData() = default;
};

/// The steps of one policy, which need not be the active pane's: another pane or an example may stand in.
struct ExplainedData : ViewData {
    std::string policy;   ///< id
    std::string source;   ///< "B  BalanceKV, streaming, paper", or the example in words
    bool standIn = false; ///< no pane has what the view shows
};

/// The data of one view as they stand.
struct DataState {
    std::shared_ptr<const ViewData> value; ///< null while the first is being computed, or if there can be none
    bool computing = false;                ///< `value` is a part of what was requested, or older
    double progress = 0;                   ///< 0..1 while computing
    std::string error;                     ///< why there is none
};

} // namespace kvscope
