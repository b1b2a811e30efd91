// A recorded list must explain itself to somebody who has neither the program nor the session.
#include "app/session/list_export.h"

namespace kvscope {

RecordedSelection recordOf(const RunResult& result, const std::string& command) {
    const RunRequest& request = result.request;
    RecordedSelection record;
    record.captureFile = request.capture->info().fileName;
    record.captureHash = request.capture->info().hash;
    record.captureTokens = request.capture->info().numTokens;
    record.cut = request.cut.text;
    record.cutToken = request.cut.token;
    record.policy = request.policy.policy;
    record.variant = request.policy.variant;
    for (const ParameterSpec& spec : request.policy.values.table())
        record.parameters.emplace_back(spec.id, request.policy.values.text(spec.id));
    record.budgetRequested = request.budget.text();
    record.budgetKept = result.requested;
    record.seed = request.seed;
    record.engine = result.engine;
    record.arithmetic = result.arithmetic;
    record.simulated = result.simulated;
    record.command = command;
    for (std::size_t head = 0; head < result.selection.heads.size(); ++head) {
        const HeadSelection& chosen = result.selection.heads[head];
        record.heads.push_back({request.layer.value, static_cast<int>(head), chosen.kept, chosen.numeratorWeights,
                                chosen.denominatorWeights, {}, static_cast<double>(chosen.margin)});
    }
    return record;
}

} // namespace kvscope
