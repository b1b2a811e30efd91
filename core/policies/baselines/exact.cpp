// Keeps every token: the reference of every measure, with error 0 and retained mass 1.
#include "core/policies/citations.h"
#include "core/policies/keep_best.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

PolicyCard makeCard() {
    return {.id = "exact",
            .name = "Exact",
            .summary = "Keeps every token: the uncompressed cache.",
            .paper = citation("Vaswani", "Eq. 1"),
            .variants = {{"all", "Everything", "no parameter, no budget", {}}},
            .parameters = std::make_shared<const ParameterTable>(),
            .usesBudget = false,
            .blockRefusal = "it evicts nothing, so its blocks change nothing",
            .scoreLabel = "no score"};
}

class Exact : public Policy {
public:
    Exact() : Policy(makeCard()) {}

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues&, std::int64_t) const override {
        return keepEverything(input);
    }
};

} // namespace

const Policy& exactPolicy() { return onlyPolicy<Exact>(); }

} // namespace kvscope
