#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/policies/policy_card.h"

#include <span>
#include <string>

namespace kvscope {

/// A run of one family of policies with its step log.
struct ShownRun {
    RunRequest run;
    std::string source;   ///< "B  BalanceKV, streaming, paper", or the example
    bool standIn = false; ///< no pane runs such a policy
};

/// The active pane if it runs a policy of these families, else the first pane that does, else `standIn`.
ShownRun shownRun(const ViewDataRequest& request, std::span<const PolicyFamily> families, const std::string& standIn);

} // namespace kvscope
