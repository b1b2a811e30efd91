#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/policies/policy_card.h"

#include <span>
#include <string>

namespace kvscope {

class Engine;

/// A run of one family of policies with its step log.
struct ShownRun {
    RunRequest run;
    std::string source;   ///< "B  BalanceKV, streaming, paper", or the example
    bool standIn = false; ///< no pane runs such a policy
};

/// The active pane if it runs a policy of these families, else the first pane that does, else the example `spec`.
ShownRun shownRun(const ViewDataRequest& request, std::span<const PolicyFamily> families, const std::string& standIn);

/// One head of a tensor on the engine: [H, n, d] -> [n, d], without a copy of the other heads.
HostTensor downloadHead(const Engine& engine, const Tensor& tensor, std::int64_t head);

} // namespace kvscope
