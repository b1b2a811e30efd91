// Which of the engines' cases say something about the kernels.
#include "tests/bench/gpu_check/kernel_cases.h"

#include <set>

namespace kvscope::check {

namespace {

/// Of the routes by Gram matrix, with a sketch: those cases say so.
bool hasLeverageKernel(const EngineCase& c) {
    return c.name.starts_with("leverage/gram-sketched") || c.name.starts_with("leverage/cholesky-sketched");
}

} // namespace

const std::vector<EngineCase>& kernelCases() {
    static const std::set<std::string> primitives = {"rowNorms",           "anchor",
                                                     "similarity",         "greedyCenters",
                                                     "balancingWalks",     "attentionColumnSums",
                                                     "attentionChunkSums", "attentionMap",
                                                     "weightedAttention",  "leverage"};
    static const std::vector<EngineCase> cases = [] {
        std::vector<EngineCase> all = allCases();
        std::erase_if(all, [](const EngineCase& c) {
            const bool hasNoKernel =
                c.name.find("/median") != std::string::npos || c.name.find("/fifty-heads") != std::string::npos ||
                (c.name.find("/sinks") != std::string::npos && !c.name.starts_with("weightedAttention")) ||
                (c.name.starts_with("leverage") && (!KVSCOPE_HAS_CPU_ENGINE || !hasLeverageKernel(c)));
            return !c.naive || hasNoKernel || !primitives.contains(c.name.substr(0, c.name.find('/')));
        });
        return all;
    }();
    return cases;
}

CaseResult resultOf(const EngineCase& c, const Engine& engine) {
    return {c.name, errorOf(c.prepare(engine)().numbers, c.naive()), allowedErrorOf(c, engine)};
}

} // namespace kvscope::check
