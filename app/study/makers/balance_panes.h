#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/policies/policy_card.h"

#include <span>
#include <string>

namespace kvscope {

class Engine;

/// The run that a view of one family of policies shows, with its steps recorded.
struct ShownRun {
    RunRequest run;
    std::string source;   ///< "B  BalanceKV, streaming, paper", or what stands in
    bool standIn = false; ///< no pane runs such a policy
};

/// The active pane if it runs a policy of these families, else the first pane that does, else the spec that stands in.
ShownRun shownRun(const ViewDataRequest& request, std::span<const PolicyFamily> families, const std::string& standIn);

/// One head of a tensor on the engine: [H, n, d] -> [n, d], without a copy of the other heads.
HostTensor downloadHead(const Engine& engine, const Tensor& tensor, std::int64_t head);

} // namespace kvscope
