// A policy is run once more on an engine that counts, with a cache of its own that is empty, so that the count does not
// depend on what somebody looked at before.
#include "core/studies/policy_work.h"

namespace kvscope {

Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint) {
    if (request.recorded)
        return {};
    const auto counted = std::make_shared<const CountedEngine>(runner.engine());
    RunRequest choice = request;
    choice.measure = false;
    choice.recordSteps = false;
    LayerRunner(counted).run(choice, checkpoint);
    return counted->total();
}

} // namespace kvscope
