// Counts a policy's operations by running it once more on a counting engine with an empty cache, so that the count does
// not depend on earlier runs.
#include "core/studies/policy_work.h"

namespace kvscope {

Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint) {
    if (request.recorded) return {};
    const auto counted = std::make_shared<const CountedEngine>(runner.engine());
    RunRequest choice = request;
    choice.measure = false;
    choice.recordSteps = false;
    LayerRunner(counted).run(choice, checkpoint);
    return counted->total();
}

} // namespace kvscope
